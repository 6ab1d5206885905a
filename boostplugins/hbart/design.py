"""Covariates of the log-linear variance: which columns, standardised inside, reported in the user's units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from boostplugins.hbart.columns import Columns

# Scale of 0/1 columns of levels and missing values: the standard deviation of a balanced one. With its own
# one the same prior would let a level of few rows have the largest effect.
INDICATOR_SCALE = 0.5


def expand(matrix: np.ndarray, columns: Columns, which: Sequence[int], missing: Sequence[bool]) -> Any:
    """Turn columns into regressors: means for missing values with an indicator, one column a level.

    Parameters
    ----------
    matrix : ndarray of shape (n, p)
        Rows, NaN for missing values.
    columns : Columns
        What the columns are.
    which : sequence of int
        Columns to take.
    missing : sequence of bool
        Whether a column gets an indicator of missing values.

    Returns
    -------
    tuple of (ndarray of shape (n, d), list of str)
        Regressors and their names; NaN where an ordered value is missing, or a level that has no
        indicator to say so.
    """
    parts, names = [], []
    for j in which:
        levels, column = columns.levels[j], matrix[:, j]
        if levels is None:
            parts.append(column)
            names.append(columns.names[j])
        else:
            # Without an indicator no training row lacked a level: all zeros would be like none of them.
            unknown = np.isnan(column) & (not missing[j])
            for number, level in enumerate(levels):
                parts.append(np.where(unknown, np.nan, column == number))
                names.append(f"{columns.names[j]}={level}")
        if missing[j]:
            parts.append(np.isnan(column).astype(np.float64))
            names.append(f"{columns.names[j]} missing")
    return (np.column_stack(parts) if parts else np.empty((len(matrix), 0))), names


@dataclass(frozen=True)
class VarianceDesign:
    """Standardised covariates of the variance.

    Attributes
    ----------
    which : tuple of int
        Columns of X used.
    missing : tuple of bool
        Columns of X with an indicator of missing values.
    transform : callable or None
        User's function of X, in place of columns.
    names : tuple of str
        Names of the covariates.
    centre, scale : ndarray of shape (k,)
        Means and standard deviations in training; of the indicators of levels and of missing values the
        scale is that of a balanced one, however rare the level.
    low, high : ndarray of shape (k,), optional
        Ranges in training, to which covariates of new rows are cut; both the mean for a constant one.
        Without limit in models saved before there were ranges.
    """

    which: tuple[int, ...]
    missing: tuple[bool, ...]
    transform: Callable[[Any], Any] | None
    names: tuple[str, ...]
    centre: np.ndarray
    scale: np.ndarray
    low: np.ndarray | float = -np.inf
    high: np.ndarray | float = np.inf

    @classmethod
    def learn(cls, X: Any, matrix: np.ndarray, columns: Columns, features: Any) -> VarianceDesign:
        """Choose and standardise covariates.

        Parameters
        ----------
        X : array-like
            Training rows as the user gave them.
        matrix : ndarray of shape (n, p)
            The same as numbers.
        columns : Columns
            What the columns are.
        features : None, sequence of int or str, callable, or transformer
            All columns, some, or a function of X; an object with `fit` and `transform` is fitted.

        Returns
        -------
        VarianceDesign
            What was learnt.
        """
        transform = None
        which: tuple[int, ...] = ()
        if hasattr(features, "transform"):
            transform = clone(features, safe=False).fit(X).transform  # the user's own one stays unfitted
        elif callable(features):
            transform = features
        elif features is None:
            which = tuple(range(len(columns.names)))
        else:
            which = tuple(columns.position(name) for name in features)
        missing = tuple(bool(m) for m in np.isnan(matrix).any(axis=0))
        blank = cls(which, missing, transform, (), np.empty(0), np.empty(0))
        raw, names = blank._raw(X, matrix, columns)
        present = ~np.isnan(raw)
        number = np.maximum(present.sum(axis=0), 1)
        centre = np.where(present, raw, 0.0).sum(axis=0) / number
        squares = raw - centre  # in place: there may be millions of rows
        squares *= squares
        squares[~present] = 0.0
        scale = np.sqrt(squares.sum(axis=0) / number)
        del squares
        # A constant column has no effect that data could show: cut to its mean it has none anywhere.
        varies = scale > 1e-12 * np.maximum(np.abs(centre), 1e-300)
        scale = np.where(blank.indicators(columns), INDICATOR_SCALE, scale)
        low = np.where(varies, np.where(present, raw, np.inf).min(axis=0), centre)
        high = np.where(varies, np.where(present, raw, -np.inf).max(axis=0), centre)
        return cls(which, missing, transform, tuple(names), centre, np.where(varies, scale, 1.0), low, high)

    def indicators(self, columns: Columns) -> np.ndarray:
        """Say which covariates are indicators.

        Parameters
        ----------
        columns : Columns
            What the columns are.

        Returns
        -------
        ndarray of bool of shape (k,), or of shape () for a function's covariates
            True for levels and for being missing; a function's covariates are numbers.
        """
        if self.transform is not None:
            return np.array(False)
        flags: list[bool] = []
        for j in self.which:
            levels = columns.levels[j]
            flags += [False] if levels is None else [True] * len(levels)
            flags += [True] * self.missing[j]
        return np.array(flags, dtype=bool)

    def _raw(self, X: Any, matrix: np.ndarray, columns: Columns) -> tuple[np.ndarray, list[str]]:
        if self.transform is None:
            return expand(matrix, columns, self.which, self.missing)
        raw = np.asarray(self.transform(X), dtype=np.float64)
        raw = raw[:, None] if raw.ndim == 1 else raw
        if raw.ndim != 2 or len(raw) != len(matrix) or not np.isfinite(raw).all():
            raise ValueError(
                f"variance_features must return finite numbers of shape ({len(matrix)}, n_covariates), "
                f"got shape {raw.shape}"
            )
        return raw, [f"z{j}" for j in range(raw.shape[1])]

    def standardised(self, X: Any, matrix: np.ndarray, columns: Columns) -> np.ndarray:
        """Compute the standardised covariates of rows.

        Parameters
        ----------
        X : array-like
            Rows as the user gave them.
        matrix : ndarray of shape (n, p)
            The same as numbers.
        columns : Columns
            What the columns are.

        Returns
        -------
        ndarray of shape (n, k)
            Covariates of mean 0 and, but for indicators, standard deviation 1 in training, cut to their
            range there; a missing value is 0, and so are all columns of a missing or unseen level that no
            indicator stands for.
        """
        raw, _ = self._raw(X, matrix, columns)
        if raw.shape[1] != len(self.names):
            raise ValueError(
                f"variance_features must return as many covariates as in training, {len(self.names)}, got "
                f"{raw.shape[1]}"
            )
        z = np.clip(raw, self.low, self.high)
        z -= self.centre
        z /= self.scale
        return np.nan_to_num(z, copy=False, nan=0.0)

    def effects(self, gamma: np.ndarray, columns: Columns) -> np.ndarray:
        """Turn coefficients of the standardised covariates into effects of one unit of each.

        The columns of a category's levels (and of its being missing) sum to one, so that only the prior
        keeps a number that all their effects share from running away. It has no effect on any row, and is
        taken out: a level's effect is its difference from the average over the training rows.

        Parameters
        ----------
        gamma : ndarray of shape (n_draws, k)
            Coefficients.
        columns : Columns
            What the columns are.

        Returns
        -------
        ndarray of shape (n_draws, k)
            Effects on the log variance.
        """
        effects = gamma / self.scale
        first = 0
        for j in self.which:
            levels = columns.levels[j]
            size = (1 if levels is None else len(levels)) + self.missing[j]
            if levels is not None:
                block = slice(first, first + size)
                effects[:, block] -= effects[:, block] @ self.centre[block, None]
            first += size
        return effects
