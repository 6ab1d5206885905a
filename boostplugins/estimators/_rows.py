"""Training rows: features, responses, weights and offset, checked and cut together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from boostplugins._validation import check_target, check_weight
from boostplugins.estimators._labels import warn_of_column

Rows = tuple[Any, np.ndarray, "np.ndarray | None", "np.ndarray | None"]


def check_rows(
    X: Any,
    y: ArrayLike,
    weight: ArrayLike | None,
    offset: ArrayLike | None,
    name: str,
    read: Callable[[ArrayLike, str], np.ndarray] = check_target,
) -> Rows:
    """Check responses, weights and offset of rows.

    Parameters
    ----------
    X : ndarray or DataFrame of shape (n_samples, n_features)
        Features, checked already.
    y, weight, offset : array-like of shape (n_samples,)
        Responses, and weights and offset or None.
    name : str
        Name of the responses, for messages: "y", or "y of" a data set.
    read : callable, optional
        Checks the responses, as ``read(y, name)``.

    Returns
    -------
    tuple
        All four.
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    warn_of_column(y)
    values, of = read(y, name), name.removeprefix("y")
    if len(values) != len(X):
        raise ValueError(f"X and {name} must have as many rows, got {len(X)} and {len(values)}")
    if offset is not None:
        offset = check_target(offset, f"offset{of}")
        if len(offset) != len(values):
            raise ValueError(f"offset{of} must have {len(values)} rows, got {len(offset)}")
    return X, values, check_weight(weight, len(values), f"sample_weight{of}"), offset


def held_out(eval_set: Any, most: int) -> tuple[Any, Any, Any, Any]:
    """Take held-out rows apart.

    Parameters
    ----------
    eval_set : tuple, or list with one
        ``(X, y)``, and ``sample_weight`` and ``offset`` where they are taken.
    most : int
        Parts that are taken, 3 or 4.

    Returns
    -------
    tuple
        Features, responses, weights and offset; None for what is not there.

    Raises
    ------
    ValueError
        For anything else.
    """
    forms = ("(X, y)", "(X, y, sample_weight)", "(X, y, sample_weight, offset)")[: most - 1]
    if isinstance(eval_set, list) and len(eval_set) == 1 and _is_pair(eval_set[0]):
        eval_set = eval_set[0]
    if not isinstance(eval_set, (tuple, list)):
        found = f"a {type(eval_set).__name__}"
    elif any(_is_pair(part) for part in eval_set):
        found = f"{len(eval_set)} held-out sets"
    elif not 2 <= len(eval_set) <= most:
        found = f"{len(eval_set)} parts"
    else:
        X, y, weight, offset = [*eval_set, None, None][:4]
        return X, y, weight, offset
    raise ValueError(f"eval_set must be {' or '.join(forms)}, of one held-out set; got {found}")


def _is_pair(part: Any) -> bool:
    """Whether something is (X, y, ...) itself rather than a part of it."""
    return isinstance(part, tuple) and 2 <= len(part) <= 4 and len(np.shape(part[0])) == 2


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
