"""Permutation tests with BART: does a column matter, and does the noise depend on the features?"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from boostplugins._validation import check_integer, check_target
from boostplugins.estimators._bart_base import MixingWarning
from boostplugins.estimators.bart import BARTRegressor

# Squared residuals below this share of their mean count as that much: the log of a residual that a
# tree happens to hit exactly would outweigh all others.
_LEAST_SQUARE = 1e-6


@dataclass(frozen=True)
class PermutationTest:
    """Outcome of a permutation test.

    Attributes
    ----------
    statistic : float
        Pseudo R^2 of the fit to the data as they are.
    permuted : ndarray of shape (n_permutations,)
        The same where the data are permuted.
    p_value : float
        (1 + number of permuted statistics at least as large) / (1 + n_permutations).
    """

    statistic: float
    permuted: np.ndarray
    p_value: float


def covariate_test(
    estimator: BARTRegressor,
    X: Any,
    y: ArrayLike,
    columns: Sequence[int | str],
    n_permutations: int = 50,
    random_state: int | None = None,
) -> PermutationTest:
    """Test whether columns, together, help to predict the response.

    The rows of these columns are permuted together and the model is fitted anew each time; under the
    hypothesis that they carry nothing beyond the other columns, the fit would not get worse.

    Parameters
    ----------
    estimator : BARTRegressor or HBARTRegressor
        Model to fit, unfitted.
    X : ndarray or DataFrame of shape (n_samples, n_features)
        Features.
    y : array-like of shape (n_samples,)
        Responses.
    columns : sequence of int or str
        Columns to test together.
    n_permutations : int, default=50
        Refits; the least p-value possible is 1 / (1 + n_permutations).
    random_state : int or None, default=None
        Seed of the permutations.

    Returns
    -------
    PermutationTest
        Statistics and p-value.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins import BARTRegressor
    >>> from boostplugins.estimators.bart_permutation import covariate_test
    >>> X = np.random.default_rng(0).random((80, 2))
    >>> model = BARTRegressor(n_trees=5, n_burn=30, n_draws=20, n_chains=1, random_state=0)
    >>> covariate_test(model, X, X[:, 0], [0], n_permutations=9, random_state=0).p_value
    0.1
    """
    check_integer("n_permutations", n_permutations, 1)
    y = check_target(y)
    X = X if hasattr(X, "iloc") else np.asarray(X)
    if len(X) != len(y):
        raise ValueError(f"X and y must have as many rows, got {len(X)} and {len(y)}")
    places = _places(X, columns)
    rng = np.random.default_rng(random_state)
    permuted = []
    for _ in range(n_permutations):
        order = rng.permutation(len(y))
        changed = X.copy()
        for place in places:
            if hasattr(X, "iloc"):  # the column's own type: numbers of a category are no numbers
                changed.isetitem(place, X.iloc[:, place].array[order])
            else:
                changed[:, place] = X[order, place]
        permuted.append(_pseudo_r2(estimator, changed, y))
    return _outcome(_pseudo_r2(estimator, X, y), permuted)


def _places(X: Any, columns: Sequence[int | str]) -> list[int]:
    """Find columns."""
    names = list(X.columns) if hasattr(X, "columns") else []
    if isinstance(columns, str) or not isinstance(columns, (Sequence, np.ndarray)) or len(columns) == 0:
        raise TypeError(f"columns must be a list of columns, got {columns!r}")
    places = []
    for column in columns:
        if isinstance(column, str) and column in names:
            places.append(names.index(column))
        elif isinstance(column, (int, np.integer)) and -X.shape[1] <= column < X.shape[1]:
            places.append(int(column) % X.shape[1])
        else:
            raise ValueError(f"columns must be names or numbers of columns of X, got {column!r}")
    return places


def heteroskedasticity_test(
    estimator: BARTRegressor,
    X: Any,
    y: ArrayLike,
    n_permutations: int = 50,
    random_state: int | None = None,
) -> PermutationTest:
    """Test whether the size of the noise depends on the features.

    A BART is fitted to the logarithms of the squared residuals of a BART of the response; its pseudo
    R^2 is compared with those under permuted residuals.

    Parameters
    ----------
    estimator : BARTRegressor
        Model to fit, unfitted, for the mean and for the log squared residuals.
    X : ndarray or DataFrame of shape (n_samples, n_features)
        Features.
    y : array-like of shape (n_samples,)
        Responses.
    n_permutations : int, default=50
        Refits; the least p-value possible is 1 / (1 + n_permutations).
    random_state : int or None, default=None
        Seed of the permutations.

    Returns
    -------
    PermutationTest
        Statistics and p-value.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins import BARTRegressor
    >>> from boostplugins.estimators.bart_permutation import heteroskedasticity_test
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((150, 1))
    >>> y = np.exp(4.0 * X[:, 0]) * rng.standard_normal(150)
    >>> model = BARTRegressor(n_trees=5, n_burn=30, n_draws=20, n_chains=1, random_state=0)
    >>> heteroskedasticity_test(model, X, y, n_permutations=9, random_state=0).p_value
    0.1
    """
    check_integer("n_permutations", n_permutations, 1)
    y = check_target(y)
    if np.ptp(y) == 0:
        raise ValueError(f"y must not be constant, got {y[0]:g} in every row: it has no noise to test")
    square = (y - _fitted(estimator, X, y).predict(X)) ** 2
    log_square = np.log(np.maximum(square, _LEAST_SQUARE * square.mean()))
    rng = np.random.default_rng(random_state)
    permuted = [_pseudo_r2(estimator, X, rng.permutation(log_square)) for _ in range(n_permutations)]
    return _outcome(_pseudo_r2(estimator, X, log_square), permuted)


def _fitted(estimator: BARTRegressor, X: Any, y: np.ndarray) -> BARTRegressor:
    with warnings.catch_warnings():
        # Fits are compared with one another, all at the same length.
        warnings.simplefilter("ignore", MixingWarning)
        return clone(estimator).fit(X, y)


def _pseudo_r2(estimator: BARTRegressor, X: Any, y: np.ndarray) -> float:
    rest = y - _fitted(estimator, X, y).predict(X)
    return float(1.0 - rest @ rest / max(((y - y.mean()) ** 2).sum(), np.finfo(float).tiny))


def _outcome(statistic: float, permuted: list[float]) -> PermutationTest:
    values = np.array(permuted)
    return PermutationTest(statistic, values, float((1 + (values >= statistic).sum()) / (1 + len(values))))
