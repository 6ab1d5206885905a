"""Covariates of the log-linear variance: which columns, standardised inside, reported in the user's units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from boostplugins.hbart.columns import Columns


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
        Regressors, NaN where an ordered value is missing, and their names.
    """
    parts, names = [], []
    for j in which:
        levels, column = columns.levels[j], matrix[:, j]
        if levels is None:
            parts.append(column)
            names.append(columns.names[j])
        else:
            for number, level in enumerate(levels):
                parts.append((column == number).astype(np.float64))
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
        Means and standard deviations in training.
    """

    which: tuple[int, ...]
    missing: tuple[bool, ...]
    transform: Callable[[Any], Any] | None
    names: tuple[str, ...]
    centre: np.ndarray
    scale: np.ndarray

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
        scale = np.sqrt(np.where(present, (raw - centre) ** 2, 0.0).sum(axis=0) / number)
        # A constant column has no effect that data could show; the prior alone speaks of it.
        scale = np.where(scale > 1e-12 * np.maximum(np.abs(centre), 1e-300), scale, 1.0)
        return cls(which, missing, transform, tuple(names), centre, scale)

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
            Covariates of mean 0 and standard deviation 1 in training; a missing value is 0.
        """
        raw, _ = self._raw(X, matrix, columns)
        return np.nan_to_num((raw - self.centre) / self.scale, nan=0.0)
