"""Seeds, labels and rows as the estimators take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import DataConversionWarning

from boostplugins._validation import check_integer, refuse_times
from boostplugins._warnings import warn


def seed_of(random_state: Any) -> int:
    """Turn a random state into a seed.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
        As scikit-learn and numpy know it; None asks the system.

    Returns
    -------
    int
        Seed, >= 0.
    """
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        return check_integer("random_state", random_state, 0)
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise TypeError(f"random_state must be an integer >= 0, a generator or None, got {random_state!r}")


def labels_of(y: Any, n: int, name: str = "y") -> np.ndarray:
    """Take the labels out of a vector, a column, a Series or a DataFrame of one column.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, 1)
        Labels.
    n : int
        Rows expected.
    name : str, default="y"
        Name of the labels, for messages.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels, of any type.
    """
    if y is None:
        raise ValueError(f"{name} must be given, got None; requires y to be passed, but the target y is None")
    warn_of_column(y)
    values = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{name} must have shape (n_samples,), got {values.shape}")
    refuse_times(name, values)
    if len(values) != n:
        raise ValueError(
            f"X and {name} must have the same number of rows (inconsistent), got {n} and {len(values)}"
        )
    refuse_odd_labels(name, values)
    return values


def refuse_odd_labels(name: str, values: np.ndarray) -> None:
    """Refuse labels that are missing, infinite or of types that cannot be put in order.

    Parameters
    ----------
    name : str
        Name of the labels, for messages.
    values : ndarray of shape (n_samples,)
        Labels.
    """
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity; drop such rows")
    if values.dtype.kind != "O":
        return
    if pd.isna(values).any():
        raise ValueError(f"{name} must have a label in every row, got missing ones; drop such rows")
    try:
        np.unique(values)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in values})
        raise ValueError(f"{name} must hold labels of one type, got {kinds}; make them strings") from None


def warn_of_column(y: Any) -> None:
    """Warn that an array of one column is taken as a vector, as scikit-learn asks.

    Parameters
    ----------
    y : array-like
        Responses; a DataFrame of one column is no mistake.
    """
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 1:
        warn(
            "A column-vector y was passed when a 1d array was expected; its one column is used",
            DataConversionWarning,
        )


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Take rows of an array or a DataFrame.

    Parameters
    ----------
    X : ndarray or DataFrame of shape (n_samples, n_features)
        Features.
    rows : ndarray of shape (n_rows,)
        Numbers of the rows.

    Returns
    -------
    ndarray or DataFrame of shape (n_rows, n_features)
        These rows.
    """
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def nothing_to_split(X: Any) -> bool:
    """Say whether no feature has two different values, missing ones counting as a value.

    Parameters
    ----------
    X : ndarray or DataFrame of shape (n_samples, n_features)
        Features.

    Returns
    -------
    bool
        True where a tree could not split.
    """
    if hasattr(X, "iloc"):
        return all(X.iloc[:, column].nunique(dropna=False) < 2 for column in range(X.shape[1]))
    first = X[:1]
    return bool(((first == X) | (np.isnan(first) & np.isnan(X))).all())
