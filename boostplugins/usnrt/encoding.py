"""From a table with categories and missing values to what trees divide and networks read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

MAX_ONE_HOT = 50  # levels with a column of their own; rarer ones share none


@dataclass(frozen=True)
class TableEncoder:
    """Codes, means and scales learned from training rows.

    The tree sees numbers (NaN: missing) and level numbers (-1: unknown). The networks see numbers
    with mean 0 and variance 1 over the training rows, 0 where missing; one column that marks
    missing values for each feature that had some in training; and one-hot columns, at most 50 a
    feature, the most frequent levels first; an unknown level is all zeros.

    Parameters
    ----------
    levels : tuple of tuple of str
        Known levels of each column, sorted; empty for numbers.
    shown : tuple of ndarray of int
        Level numbers that have a one-hot column.
    center, scale : ndarray of shape (n_features,)
        Means and standard deviations; 0 and 1 for categories and constants.
    marked : ndarray of bool of shape (n_features,)
        Features with a column that marks missing values.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.usnrt.encoding import TableEncoder
    >>> encoder = TableEncoder.fit(np.array([[1.0], [3.0], [np.nan]]), [])
    >>> encoder.inputs(encoder.table(np.array([[5.0], [np.nan]])), np.float64)
    array([[3., 0.],
           [0., 1.]])
    """

    levels: tuple[tuple[str, ...], ...]
    shown: tuple[np.ndarray, ...]
    center: np.ndarray
    scale: np.ndarray
    marked: np.ndarray

    @classmethod
    def fit(cls, X: np.ndarray | pd.DataFrame, categorical: list[int]) -> TableEncoder:
        """Learn levels, means and scales.

        Parameters
        ----------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Training rows; categories as strings.
        categorical : list of int
            Categorical columns.

        Returns
        -------
        TableEncoder
            The encoder.
        """
        d = X.shape[1]
        levels: list[tuple[str, ...]] = []
        shown = []
        center, scale, marked = np.zeros(d), np.ones(d), np.zeros(d, dtype=bool)
        for j in range(d):
            column = _column(X, j)
            if j in categorical:
                names, counts = np.unique(column.astype(str), return_counts=True)
                levels.append(tuple(str(name) for name in names))
                frequent = np.argsort(-counts, kind="stable")[:MAX_ONE_HOT]
                shown.append(np.sort(frequent) if len(names) > 1 else frequent[:0])
                continue
            levels.append(())
            shown.append(np.zeros(0, dtype=np.intp))
            column = column.astype(np.float64)
            marked[j] = np.isnan(column).any()
            if not np.isnan(column).all():
                center[j], scale[j] = mean_and_scale(column[~np.isnan(column)])
        return cls(tuple(levels), tuple(shown), center, scale, marked)

    @property
    def n_levels(self) -> np.ndarray:
        """Levels of each column, 0 for numbers."""
        return np.array([len(names) for names in self.levels], dtype=np.int64)

    @property
    def n_inputs(self) -> int:
        """Columns that the networks see."""
        numbers = sum(not names for names in self.levels)
        return int(numbers + self.marked.sum() + sum(len(codes) for codes in self.shown))

    def table(self, X: np.ndarray | pd.DataFrame) -> np.ndarray:
        """Number the levels.

        Parameters
        ----------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Rows, categories as strings.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Numbers and level numbers, float64; -1 for an unknown level.
        """
        out = np.empty(X.shape, dtype=np.float64)
        for j, names in enumerate(self.levels):
            column = _column(X, j)
            out[:, j] = pd.Index(names).get_indexer(pd.Index(column.astype(str))) if names else column
        return out

    def inputs(self, table: np.ndarray, dtype: Any) -> np.ndarray:
        """Standardise and one-hot encode.

        Parameters
        ----------
        table : ndarray of shape (n_samples, n_features)
            Result of `table`.
        dtype : dtype
            float32 or float64.

        Returns
        -------
        ndarray of shape (n_samples, n_inputs)
            What the networks see; numbers are cut at 1e6 standard deviations to stay finite.
        """
        parts = []
        for j, names in enumerate(self.levels):
            column = table[:, j]
            if names:
                parts.append(column[:, None] == self.shown[j][None, :])
                continue
            with np.errstate(over="ignore"):
                standard = np.clip((column - self.center[j]) / self.scale[j], -1e6, 1e6)
            parts.append(np.where(np.isnan(column), 0.0, standard)[:, None])
            if self.marked[j]:
                parts.append(np.isnan(column)[:, None])
        return np.ascontiguousarray(np.concatenate(parts, axis=1), dtype=dtype)


def mean_and_scale(values: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation that neither overflow nor mistake rounding for spread.

    Parameters
    ----------
    values : ndarray of shape (n_samples,)
        Finite numbers.

    Returns
    -------
    tuple of float
        Mean and standard deviation; 1 in place of 0 for a constant.
    """
    size = float(np.abs(values).max())
    if size == 0.0:
        return 0.0, 1.0
    scaled = values / size
    center = float(scaled.mean())
    spread = float(np.sqrt(np.mean((scaled - center) ** 2)))
    if spread < 1e-13:
        return float(values[0]), 1.0
    return center * size, spread * size


def _column(X: np.ndarray | pd.DataFrame, j: int) -> np.ndarray:
    return X.iloc[:, j].to_numpy() if isinstance(X, pd.DataFrame) else X[:, j]
