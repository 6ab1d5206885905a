"""Orthogonal polynomials, as covariates of a log-linear variance that rises and falls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from boostplugins._validation import check_integer


class OrthogonalPolynomials(TransformerMixin, BaseEstimator):
    """Powers of columns, made orthogonal to one another and to the constant on the training rows.

    Parameters
    ----------
    degree : int, default=2
        Highest power of each column.
    columns : sequence of int or None, default=None
        Numbers of the columns to expand; None takes all.

    Attributes
    ----------
    recurrences_ : list of list of tuple
        Shift and ratio of each step of the three-term recurrence, by column.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.hbart.polynomials import OrthogonalPolynomials
    >>> Z = OrthogonalPolynomials(2).fit_transform(np.arange(5.0)[:, None])
    >>> bool(abs(Z[:, 0] @ Z[:, 1]) < 1e-12)
    True
    """

    def __init__(self, degree: int = 2, columns: Sequence[int] | None = None) -> None:
        self.degree = degree
        self.columns = columns

    def fit(self, X: ArrayLike, y: Any = None) -> OrthogonalPolynomials:
        """Learn the recurrences.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : object, optional
            Ignored.

        Returns
        -------
        self
            Fitted transformer.
        """
        check_integer("degree", self.degree, 1)
        rows = np.asarray(validate_data(self, X, dtype=np.float64, ensure_min_samples=int(self.degree) + 1))
        self.columns_ = list(range(rows.shape[1])) if self.columns is None else list(self.columns)
        self.recurrences_ = [self._recurrence(rows[:, j]) for j in self.columns_]
        return self

    def _recurrence(self, x: np.ndarray) -> list[tuple[float, float, float]]:
        steps = []
        before, now = np.zeros(len(x)), np.ones(len(x))
        norm_before = 1.0
        for _ in range(self.degree):
            norm = float(now @ now)
            shift = float((x * now) @ now) / norm
            ratio = norm / norm_before if before.any() else 0.0
            before, now = now, (x - shift) * now - ratio * before
            norm_before = norm
            size = float(np.sqrt(now @ now))
            if size <= 1e-10 * np.sqrt(norm) * max(float(np.ptp(x)), 1e-300):
                raise ValueError(
                    f"degree must be below the number of distinct values of a column, got {self.degree}"
                )
            steps.append((shift, ratio, size))
        return steps

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Evaluate the polynomials.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, degree * n_columns)
            Columns of unit length on the training rows.
        """
        check_is_fitted(self, "recurrences_")
        rows = np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
        out = []
        for j, steps in zip(self.columns_, self.recurrences_):
            before, now = np.zeros(len(rows)), np.ones(len(rows))
            for shift, ratio, size in steps:
                before, now = now, (rows[:, j] - shift) * now - ratio * before
                out.append(now / size)
        return np.column_stack(out)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name the columns: ``x^2`` is the second power of ``x``, made orthogonal.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the features; None takes those of training, or x0, x1, ...

        Returns
        -------
        ndarray of str
            Names, in the order of the columns.
        """
        check_is_fitted(self, "recurrences_")
        names = _check_feature_names_in(self, input_features)
        return np.array(
            [f"{names[j]}^{k + 1}" for j in self.columns_ for k in range(self.degree)], dtype=object
        )
