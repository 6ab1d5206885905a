"""Features as gates see them: standardised numbers, marks of missing values, levels as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# A feature whose deviation is below this share of its size is constant but for rounding.
_CONSTANT = 1e-12
# Share of the rows below which a level gets no column of its own.
_RARE = 0.01
# Standardised values beyond are clipped: sums of products then stay finite.
_LIMIT = 1e12


@dataclass(frozen=True)
class Encoder:
    """Turns features into standardised columns.

    A number gives one column, and a second one that marks missing values where training had some
    (a missing number is the training mean); a category gives one column a level (levels that
    training did not hold, or in less than 1 % of the rows, are all zeros before standardising).
    Constant columns become 0.

    Parameters
    ----------
    levels : tuple
        For each feature its levels, or None for a number.
    marked : ndarray of bool of shape (n_features,)
        Numbers with missing values in training.
    source : ndarray of int of shape (n_columns,)
        Feature of each column.
    center, scale : ndarray of shape (n_columns,)
        Means and standard deviations; the scale of a constant column is infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.soft_trees.encoding import Encoder
    >>> encoder = Encoder.fit(np.array([[1.0, 5.0], [3.0, 5.0]]), [], np.ones(2))
    >>> encoder.transform(np.array([[3.0, 7.0]]))
    array([[1., 0.]])
    """

    levels: tuple[tuple[str, ...] | None, ...]
    marked: np.ndarray
    source: np.ndarray
    center: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(cls, X: Any, categorical: list[int], weight: np.ndarray) -> Encoder:
        """Learn levels, means and deviations.

        Parameters
        ----------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Features; numbers with NaN for missing, categories as strings.
        categorical : list of int
            Numbers of the categorical features.
        weight : ndarray of shape (n_samples,)
            Weights.

        Returns
        -------
        Encoder
            The encoder.
        """
        levels: list[tuple[str, ...] | None] = []
        marked = np.zeros(X.shape[1], dtype=bool)
        source: list[int] = []
        for j in range(X.shape[1]):
            column = _column(X, j)
            if j in categorical:
                found = _frequent_levels(column, weight)
                levels.append(found)
                source += [j] * len(found)
            else:
                levels.append(None)
                marked[j] = np.isnan(column.astype(np.float64)).any()
                source += [j] * (1 + int(marked[j]))
        blank = cls(tuple(levels), marked, np.array(source, dtype=np.int64), np.empty(0), np.empty(0))
        columns = blank._columns(X)
        share = weight / weight.sum()
        center = np.array([_mean(c, share) for c in columns.T])
        with np.errstate(over="ignore"):
            deviation = np.abs(np.where(np.isnan(columns), 0.0, columns - center))
        # Squares of huge or tiny deviations leave the range of float64.
        largest = np.where((deviation.max(axis=0) > 0), deviation.max(axis=0), 1.0)
        scale = largest * np.sqrt(share @ (deviation / largest) ** 2)
        constant = ~(scale > _CONSTANT * np.abs(center)) | (scale < 1e-300)
        return cls(blank.levels, marked, blank.source, center, np.where(constant, np.inf, scale))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.levels)

    def transform(self, X: Any) -> np.ndarray:
        """Encode rows.

        Parameters
        ----------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Features as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            Standardised columns without missing values.
        """
        with np.errstate(over="ignore"):
            out = (self._columns(X) - self.center) / self.scale
        out[np.isnan(out)] = 0.0
        return np.ascontiguousarray(np.clip(out, -_LIMIT, _LIMIT))

    def _columns(self, X: Any) -> np.ndarray:
        out = np.empty((X.shape[0], len(self.source)))
        at = 0
        for j, levels in enumerate(self.levels):
            column = _column(X, j)
            if levels is None:
                out[:, at] = column
                at += 1
                if self.marked[j]:
                    out[:, at] = np.isnan(out[:, at - 1])
                    at += 1
            else:
                for level in levels:
                    out[:, at] = column == level
                    at += 1
        return out

    def columns_of(self, features: list[int]) -> np.ndarray:
        """Columns that some features give.

        Parameters
        ----------
        features : list of int
            Features.

        Returns
        -------
        ndarray of int
            Numbers of columns.
        """
        return np.flatnonzero(np.isin(self.source, features))


def _frequent_levels(column: np.ndarray, weight: np.ndarray) -> tuple[str, ...]:
    """Levels that hold their share of the rows; the others have no column, like unknown ones."""
    levels, number = np.unique(column.astype(str), return_inverse=True)
    share = np.bincount(number, weights=weight) / weight.sum()
    return tuple(str(level) for level in levels[share >= _RARE])


def _column(X: Any, j: int) -> np.ndarray:
    return X.iloc[:, j].to_numpy() if hasattr(X, "iloc") else X[:, j]


def _mean(column: np.ndarray, share: np.ndarray) -> float:
    seen = ~np.isnan(column)
    mass = share[seen].sum()
    if not mass > 0:
        return 0.0
    # Centred on one value first: the mean of a constant is then that constant, exactly.
    pivot = column[seen][0]
    return float(pivot + share[seen] @ (column[seen] - pivot) / mass)
