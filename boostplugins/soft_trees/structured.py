"""Structured effects beside the tree: linear, and smooth by penalised B-splines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.interpolate import BSpline

from boostplugins._validation import check_integer, check_real

_DEGREE = 3


@dataclass(frozen=True)
class Linear:
    """A linear effect of one feature; of a category, one effect a level against the first.

    Parameters
    ----------
    feature : int or str
        Number or name of the feature.

    Examples
    --------
    >>> from boostplugins.soft_trees.structured import Linear
    >>> Linear("area")
    Linear(feature='area')
    """

    feature: int | str


@dataclass(frozen=True)
class Smooth:
    """A smooth effect of one numeric feature: cubic B-splines with a second-difference penalty.

    Parameters
    ----------
    feature : int or str
        Number or name of the feature.
    n_splines : int, default=12
        Basis functions, at least 5.
    smoothing : float or "auto", default="auto"
        Penalty of squared second differences; "auto" chooses it by the generalised Fellner-Schall
        update (marginal likelihood).

    Examples
    --------
    >>> from boostplugins.soft_trees.structured import Smooth
    >>> Smooth("age", n_splines=8).smoothing
    'auto'
    """

    feature: int | str
    n_splines: int = 12
    smoothing: float | str = "auto"


@dataclass(frozen=True)
class Term:
    """A structured effect made ready: which columns it has and what they cost.

    Parameters
    ----------
    label : str
        Name in reports.
    feature : int
        Number of the feature.
    level : str or None
        Category that the column marks; None for numbers.
    center, scale : ndarray of shape (n_columns,)
        Means of the raw columns in training, and units of the feature.
    knots : ndarray
        Knots of the splines; empty for a linear effect.
    rotation : ndarray of shape (n_splines, n_columns)
        Basis of coefficients whose effect has mean 0 in training; empty for a linear effect.
    smoothing : float or None
        Given penalty; None to choose it.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.soft_trees.structured import Linear, prepare
    >>> term, = prepare([Linear(0)], np.array([[1.0], [3.0]]), ["x0"], (None,), np.ones(2))
    >>> term.columns(np.array([[3.0]]))
    array([[1.]])
    """

    label: str
    feature: int
    level: str | None
    center: np.ndarray
    scale: float
    knots: np.ndarray
    rotation: np.ndarray
    smoothing: float | None

    @property
    def is_smooth(self) -> bool:
        """Whether this is a spline."""
        return len(self.knots) > 0

    def columns(self, X: Any) -> np.ndarray:
        """Columns of the effect.

        Parameters
        ----------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            Centred columns; a missing number has effect 0.
        """
        values = X.iloc[:, self.feature].to_numpy() if hasattr(X, "iloc") else X[:, self.feature]
        if self.level is not None:
            return (values == self.level).astype(np.float64)[:, None] - self.center
        values = np.asarray(values, dtype=np.float64)
        missing = np.isnan(values)
        values = np.where(missing, self.center[0], values)
        if not self.is_smooth:
            return np.where(missing, 0.0, (values - self.center[0]) / self.scale)[:, None]
        basis = _splines(values, self.knots)
        out = np.zeros((len(values), self.rotation.shape[1]))
        for j in range(basis.shape[1]):  # a row's sum does not depend on the number of rows
            out += basis[:, j : j + 1] * self.rotation[j]
        out[missing] = 0.0
        return out

    @property
    def roughness(self) -> np.ndarray:
        """Half the second-difference penalty at smoothing 1; zeros for a linear effect."""
        if not self.is_smooth:
            return np.zeros((1, 1))
        differences = np.diff(np.eye(len(self.rotation)), 2, axis=0) @ self.rotation
        return 0.5 * differences.T @ differences


def prepare(
    terms: list[Linear | Smooth],
    X: Any,
    names: list[str],
    levels: tuple[tuple[str, ...] | None, ...],
    weight: np.ndarray,
) -> list[Term]:
    """Make effects ready for data.

    Parameters
    ----------
    terms : list of Linear or Smooth
        Effects asked for.
    X : ndarray or DataFrame of shape (n_samples, n_features)
        Features.
    names : list of str
        Names of the features.
    levels : tuple
        Levels of each categorical feature, None for numbers.
    weight : ndarray of shape (n_samples,)
        Weights.

    Returns
    -------
    list of Term
        One an effect, or one a level.

    Raises
    ------
    ValueError, TypeError
        For an unknown feature, an effect that is none, or a spline of a category.
    """
    ready: list[Term] = []
    none = np.empty(0)
    share = weight / weight.sum()
    for term in terms:
        if not isinstance(term, (Linear, Smooth)):
            raise TypeError(f"structured must hold Linear and Smooth effects, got {term!r}")
        j = feature_number(term.feature, names, "structured")
        if any(t.feature == j for t in ready):
            raise ValueError(
                f"structured must name a feature once for a parameter, got {term.feature!r} twice"
            )
        held = levels[j]
        if held is not None:
            if isinstance(term, Smooth):
                raise ValueError(f"Smooth needs a numeric feature, got the category {names[j]!r}; use Linear")
            values = X.iloc[:, j].to_numpy()
            for level in held[1:]:
                center = np.array([share @ (values == level)])
                label = f"{names[j]}={level}"
                ready.append(Term(label, j, level, center, 1.0, none, np.empty((0, 0)), None))
            continue
        values = np.asarray(X.iloc[:, j] if hasattr(X, "iloc") else X[:, j], dtype=np.float64)
        seen = ~np.isnan(values)
        mean, spread = _moments(values[seen], share[seen])
        if isinstance(term, Linear) or not spread > 0:
            if spread > 0:
                ready.append(Term(names[j], j, None, np.array([mean]), spread, none, np.empty((0, 0)), None))
            continue
        ready.append(_spline_term(term, j, names[j], values[seen], share[seen], mean))
    return ready


def feature_number(feature: Any, names: list[str], where: str) -> int:
    """Find a feature by number or name.

    Parameters
    ----------
    feature : int or str
        Number or name.
    names : list of str
        Names of all features.
    where : str
        Argument, for the message.

    Returns
    -------
    int
        Its number.

    Raises
    ------
    ValueError
        For an unknown one.
    """
    if isinstance(feature, (int, np.integer)) and not isinstance(feature, bool):
        if -len(names) <= feature < len(names):
            return int(feature) % len(names)
    elif feature in names:
        return names.index(feature)
    raise ValueError(f"{where} must name features of X, got {feature!r}; features: {names[:20]}")


def _moments(values: np.ndarray, share: np.ndarray) -> tuple[float, float]:
    if not len(values) or not share.sum() > 0:
        return 0.0, 0.0
    share = share / share.sum()
    pivot = values[0]
    mean = float(pivot + share @ (values - pivot))
    spread = float(np.sqrt(share @ (values - mean) ** 2))
    return mean, spread if spread > 1e-12 * abs(mean) else 0.0


def _spline_term(
    term: Smooth, j: int, label: str, values: np.ndarray, share: np.ndarray, mean: float
) -> Term:
    count = check_integer("n_splines", term.n_splines, _DEGREE + 2)
    smoothing = None
    if term.smoothing != "auto":
        smoothing = check_real("smoothing", term.smoothing, 0.0, remedy='"auto" chooses it')
    low, high = values.min(), values.max()
    step = (high - low) / (count - _DEGREE)
    knots = low + step * np.arange(-_DEGREE, count + 1)
    total = (share @ _splines(values, knots))[:, None]
    # Coefficients orthogonal to the column means: the effect then sums to 0 over the rows.
    rotation = np.linalg.qr(total, mode="complete")[0][:, 1:]
    return Term(label, j, None, np.array([mean]), 1.0, knots, rotation, smoothing)


def _splines(values: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """B-spline basis; beyond the data the effect goes on in a straight line."""
    low, high = knots[_DEGREE], knots[-_DEGREE - 1]
    count = len(knots) - _DEGREE - 1
    inside = np.clip(values, low, high)
    basis = BSpline.design_matrix(inside, knots, _DEGREE).toarray()
    beyond = (values - inside)[:, None]
    outside = np.flatnonzero(beyond[:, 0] != 0)
    if len(outside):
        slopes = BSpline(knots, np.eye(count), _DEGREE).derivative()(inside[outside])
        basis[outside] += beyond[outside] * slopes
    return basis
