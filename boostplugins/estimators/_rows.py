"""Training rows: features, responses, weights and offset, checked and cut together."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import DataConversionWarning

from boostplugins._validation import check_target, check_weight

Rows = tuple[Any, np.ndarray, "np.ndarray | None", "np.ndarray | None"]


def check_rows(X: Any, y: ArrayLike, weight: ArrayLike | None, offset: ArrayLike | None, name: str) -> Rows:
    """Check responses, weights and offset of rows.

    Parameters
    ----------
    X : ndarray or DataFrame of shape (n_samples, n_features)
        Features, checked already.
    y, weight, offset : array-like of shape (n_samples,)
        Responses, and weights and offset or None.
    name : str
        Name of the responses, for messages.

    Returns
    -------
    tuple
        All four.
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; its one column is used",
            DataConversionWarning,
            stacklevel=4,
        )
    values = check_target(y, name)
    if len(values) != len(X):
        raise ValueError(f"X and {name} must have as many rows, got {len(X)} and {len(values)}")
    if offset is not None:
        offset = check_target(offset, "offset")
        if len(offset) != len(values):
            raise ValueError(f"offset must have {len(values)} rows, got {len(offset)}")
    return X, values, check_weight(weight, len(values)), offset


def pick(rows: Rows, index: np.ndarray) -> Rows:
    """Take some rows.

    Parameters
    ----------
    rows : tuple
        Features, responses, weights and offset.
    index : ndarray of int
        Numbers of the rows.

    Returns
    -------
    tuple
        The same of these rows.
    """
    X, y, weight, offset = rows
    part = X.iloc[index].reset_index(drop=True) if hasattr(X, "iloc") else X[index]
    return (
        part,
        y[index],
        None if weight is None else weight[index],
        None if offset is None else offset[index],
    )
