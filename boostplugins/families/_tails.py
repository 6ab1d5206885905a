"""Logarithms of tail probabilities that are too small for floats, by quadrature of the log density."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from boostplugins.families.base import Family

# Probability below which a tail is integrated anew: floats lose digits from 1e-308 on.
UNDERFLOW = 1e-290
# Panels in units of the length over which the tail falls by one power of e; beyond the last nothing is left.
_PANELS = np.array([0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 45.0])
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_AT = (_PANELS[:-1, None] + np.diff(_PANELS)[:, None] * 0.5 * (_NODES + 1.0)).ravel()
_LOG_WEIGHTS = np.log((np.diff(_PANELS)[:, None] * 0.5 * _WEIGHTS).ravel())
_SEARCHES = 30


def log_tail(family: Family, y: np.ndarray, theta: np.ndarray, upper: bool) -> np.ndarray:
    """Log probability beyond points far out in a tail of a continuous family.

    The tail is walked on a logarithmic scale of the distance from the support's end, or from the
    median where the support has none, whose unit is found first: the length of a fall by about e.

    Parameters
    ----------
    family : Family
        Distribution.
    y : ndarray of shape (n,)
        Points within the support, so far out that the density falls from there on.
    theta : ndarray of shape (n, K)
        Parameters.
    upper : bool
        Which tail.

    Returns
    -------
    ndarray of shape (n,)
        Log probabilities.
    """
    end = family.support.high if upper else family.support.low
    side = 1.0 if upper else -1.0
    if np.isfinite(end):
        distance, outward = np.abs(end - y), False
    else:
        distance, outward = np.abs(y - family.ppf(0.5, theta)), True
    distance = np.maximum(distance, np.finfo(float).tiny)

    def log_slope(s: np.ndarray) -> np.ndarray:
        """Log density times the speed of the walk, at steps s of shape (n, m)."""
        if outward:
            at = y[:, None] + side * distance[:, None] * np.expm1(s)
            log_speed = np.log(distance)[:, None] + s
        else:
            at = end - side * distance[:, None] * np.exp(-s)
            log_speed = np.log(distance)[:, None] - s
        return family.log_pdf(at, theta[:, None, :]) + log_speed

    first = log_slope(np.zeros((len(y), 1)))[:, 0]
    unit = np.ones(len(y))
    for _ in range(_SEARCHES):
        fall = first - log_slope(unit[:, None])[:, 0]
        if ((fall > 0.5) & (fall < 2.0)).all():
            break
        # A density that does not fall yet is walked on, one that falls too fast is walked slower.
        unit *= np.clip(1.0 / np.where(fall > 0, fall, 0.25), 1e-30, 4.0)
        unit = np.minimum(unit, 600.0)
    values = log_slope(unit[:, None] * _AT) + _LOG_WEIGHTS
    return np.logaddexp.reduce(values, axis=1) + np.log(unit)


def refined(
    family: Family, y: ArrayLike, theta: ArrayLike, probability: np.ndarray, upper: bool
) -> np.ndarray:
    """Logarithm of tail probabilities, integrated anew where they underflow.

    Parameters
    ----------
    family : Family
        Distribution; discrete ones and those with point masses keep the plain logarithm.
    y : array-like
        Points.
    theta : array-like of shape (..., K)
        Parameters.
    probability : ndarray
        Probabilities beyond, as floats hold them.
    upper : bool
        Which tail.

    Returns
    -------
    ndarray
        Log probabilities; minus infinity where nothing is beyond.
    """
    with np.errstate(all="ignore"):
        logs = np.log(probability)
        if family.discrete or family.atoms:
            return logs
        y, _ = np.broadcast_arrays(np.asarray(y, dtype=np.float64), logs)
        rows = (probability < UNDERFLOW) & family.support.contains(y)
        if not rows.any():
            return logs
        logs = np.array(logs, ndmin=1)
        rows, at = np.atleast_1d(rows), np.atleast_1d(y)
        flat = np.broadcast_to(theta, (*at.shape, np.shape(theta)[-1]))
        found = log_tail(family, at[rows], flat[rows], upper)
        logs[rows] = np.where(np.isnan(found), -np.inf, found)
        return logs.reshape(y.shape)
