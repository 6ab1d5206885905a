"""CRPS by numerical integration, for distributions without a closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

# Probability left out at either end of a continuous integral; enters the score squared, times the
# width of the tail.
_TAIL = 1e-10
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)
_S = 0.5 * (_NODES + 1.0)
# A step that is flat at both ends, where quantiles run off to infinity, and its slope.
_STEP = _S**3 * (10.0 - 15.0 * _S + 6.0 * _S**2)
_SLOPE = 0.5 * _WEIGHTS * 30.0 * (_S * (1.0 - _S)) ** 2
# Most whole numbers over which a discrete score is summed term by term.
_MOST_TERMS = 4096


class _Distribution(Protocol):
    discrete: bool
    atoms: tuple[float, ...]

    def cdf(self, y: Any, theta: Any) -> np.ndarray: ...

    def ppf(self, q: Any, theta: Any) -> np.ndarray: ...


def numeric_crps(family: _Distribution, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
    r"""Integrate the CRPS of one distribution a row.

    .. math:: \int (F(x) - 1\{x \ge y\})^2 dx
              = 2 \int_0^1 (1\{y < F^{-1}(q)\} - q)\,(F^{-1}(q) - y)\, dq

    Others than discrete families use the quantile form, cut at F(y) and around point masses;
    discrete ones a sum over whole numbers.

    Parameters
    ----------
    family : Family
        Distribution.
    y : array-like
        Responses.
    theta : array-like of shape (..., K)
        Parameters.

    Returns
    -------
    ndarray
        Scores.
    """
    theta = np.asarray(theta, dtype=np.float64)
    y, _ = np.broadcast_arrays(np.asarray(y, dtype=np.float64), theta[..., 0])
    if family.discrete:
        return _discrete(family, y, theta)
    marks = [np.zeros(y.shape), np.clip(family.cdf(y, theta), 0.0, 1.0), np.ones(y.shape)]
    for atom in family.atoms:
        marks += [family.cdf(np.nextafter(atom, -np.inf), theta), family.cdf(atom, theta)]
    edges = np.sort(np.stack([np.broadcast_to(mark, y.shape) for mark in marks], axis=-1), axis=-1)
    total = np.zeros(y.shape)
    for j in range(edges.shape[-1] - 1):
        left, width = edges[..., j, None], np.diff(edges[..., j : j + 2])
        q = np.clip(left + width * _STEP, 1e-300, 1.0 - 1e-16)
        gap = family.ppf(q, theta[..., None, :]) - y[..., None]
        # At atoms a quantile may equal y: the gap is 0 there and either side will do.
        above = left >= marks[1][..., None]
        rest = np.where(above, 1.0 - left - width * _STEP, -q)
        total += (_SLOPE * width * rest * gap).sum(axis=-1)
    return 2.0 * np.maximum(total, 0.0)


def _discrete(family: _Distribution, y: np.ndarray, theta: np.ndarray) -> np.ndarray:
    low, high = family.ppf(_TAIL, theta), family.ppf(1.0 - _TAIL, theta)
    return sum_over_integers(lambda k: family.cdf(k, theta), y, low, high)


def sum_over_integers(
    cdf: Callable[[np.ndarray], np.ndarray], y: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Sum (F(k) - 1{k >= y})^2 over whole numbers k, on a coarser grid where they are many.

    Parameters
    ----------
    cdf : callable
        F, of arrays shaped like `y`.
    y : ndarray
        Responses.
    low, high : ndarray
        Where the distribution begins and ends.

    Returns
    -------
    ndarray
        CRPS.
    """
    low = np.minimum(low, np.floor(y)) - 1.0
    high = np.maximum(high, np.ceil(y)) + 1.0
    widest = float(np.max(high - low, initial=0.0))
    if not np.isfinite(widest):
        return np.full(y.shape, np.inf)
    steps = max(int(min(widest, _MOST_TERMS)), 1)
    total = np.zeros(y.shape)
    for j in range(steps):
        k = np.floor(low + (high - low) * (j / steps))
        width = np.floor(low + (high - low) * ((j + 1) / steps)) - k
        total += width * (cdf(k) - (k >= y)) ** 2
    return total
