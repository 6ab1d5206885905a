"""CRPS by numerical integration, for distributions without a closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

# Probability left out at either end of a continuous integral; enters the score squared, times the
# width of the tail. Levels above `_TOP` may be 1 but for rounding.
_TAIL, _TOP = 1e-9, 1.0 - 1e-14
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)
_S = 0.5 * (_NODES + 1.0)
# A step that is flat at both ends, where quantiles run off to infinity, and its slope.
_STEP = _S**3 * (10.0 - 15.0 * _S + 6.0 * _S**2)
_SLOPE = 0.5 * _WEIGHTS * 30.0 * (_S * (1.0 - _S)) ** 2
# Most whole numbers that are summed one by one, blocks for more, and numbers worked on at once.
_MOST_NUMBERS, _AT_ONCE = 192, 200_000
_CUTS = np.linspace(0.0, 1.0, 49)
# Blocks are narrow at the response, and at the lower end, where many a distribution has its peak.
_ABOVE, _BELOW = _CUTS**3, _CUTS**2 * (3.0 - 2.0 * _CUTS)
_PANEL = np.polynomial.legendre.leggauss(16)
_PANEL_NODES, _PANEL_WEIGHTS = 0.5 * (_PANEL[0] + 1.0), 0.5 * _PANEL[1]


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
        quantile = family.ppf(q, theta[..., None, :])
        # Where a cdf rounds, the last levels have no quantile; so little mass adds nothing.
        lost = np.isinf(quantile) & (q > _TOP)
        gap = np.where(lost, 0.0, quantile - y[..., None])
        # At atoms a quantile may equal y: the gap is 0 there and either side will do.
        above = left >= marks[1][..., None]
        rest = np.where(above, 1.0 - left - width * _STEP, -q)
        total += (_SLOPE * width * rest * gap).sum(axis=-1)
    return 2.0 * np.maximum(total, 0.0)


def _discrete(family: _Distribution, y: np.ndarray, theta: np.ndarray) -> np.ndarray:
    flat, at = theta.reshape(-1, theta.shape[-1]), y.ravel()
    low, high = family.ppf(_TAIL, flat), family.ppf(1.0 - _TAIL, flat)
    return sum_over_integers(lambda k, rows: family.cdf(k, flat[rows, None]), at, low, high).reshape(y.shape)


def sum_over_integers(
    cdf: Callable[[np.ndarray, np.ndarray], np.ndarray], y: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Sum (F(k) - 1{k >= y})^2 over whole numbers k.

    Parameters
    ----------
    cdf : callable
        ``cdf(k, rows)``: F at k, (n_rows, n_numbers), of the rows numbered `rows`.
    y : ndarray of shape (n,)
        Responses.
    low, high : ndarray of shape (n,)
        Where the distributions begin and end.

    Returns
    -------
    ndarray of shape (n,)
        CRPS.
    """
    first = np.minimum(low, np.floor(y))
    middle = np.maximum(np.ceil(y), first)
    last = np.maximum(high, middle) + 1.0
    below = sum_numbers(lambda k, rows: cdf(k, rows) ** 2, first, middle, _BELOW)
    return below + sum_numbers(lambda k, rows: (cdf(k, rows) - 1.0) ** 2, middle, last, _ABOVE)


def moment_over_integers(
    cdf: Callable[[np.ndarray, np.ndarray], np.ndarray],
    centre: np.ndarray,
    power: int,
    low: np.ndarray,
    high: np.ndarray,
) -> np.ndarray:
    """Mean of (Y - centre)^power of whole numbers Y, power 1 or 2.

    Parameters
    ----------
    cdf : callable
        As for `sum_over_integers`.
    centre : ndarray of shape (n,)
        Whole numbers near the middle.
    power : {1, 2}
        Power.
    low, high : ndarray of shape (n,)
        Where the distributions begin and end.

    Returns
    -------
    ndarray of shape (n,)
        Moments.
    """

    def step(k: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """(k + 1 - centre)^power - (k - centre)^power."""
        return np.ones(k.shape) if power == 1 else 2.0 * (k - centre[rows, None]) + 1.0

    first, last = np.minimum(low, centre), np.maximum(high, centre) + 1.0
    above = sum_numbers(lambda k, rows: step(k, rows) * (1.0 - cdf(k, rows)), centre, last, _ABOVE)
    return above - sum_numbers(lambda k, rows: step(k, rows) * cdf(k, rows), first, centre, _BELOW)


def sum_numbers(
    term: Callable[[np.ndarray, np.ndarray], np.ndarray],
    begin: np.ndarray,
    end: np.ndarray,
    cuts: np.ndarray,
) -> np.ndarray:
    """Sum a smooth function over the whole numbers from `begin` to below `end`, by blocks where many.

    Parameters
    ----------
    term : callable
        ``term(k, rows)``: values at k, (n_rows, n_numbers), of the rows numbered `rows`.
    begin, end : ndarray of shape (n,)
        Ranges; infinite ones give inf.
    cuts : ndarray of shape (n_blocks + 1,)
        Where to cut a range into blocks, from 0 to 1.

    Returns
    -------
    ndarray of shape (n,)
        Sums.
    """
    finite = np.isfinite(end - begin)
    total = np.where(finite, 0.0, np.inf)
    length = np.where(finite, end - begin, 0.0)
    order = np.argsort(length, kind="stable")
    order = order[length[order] > 0]
    while len(order):  # rows of like length together
        count = int(np.searchsorted(length[order], 1.5 * length[order[0]] + 8.0, side="right"))
        rows, order = order[:count], order[count:]
        for part in np.array_split(rows, max(len(rows) * _MOST_NUMBERS // _AT_ONCE, 1)):
            k, weight = _numbers(begin[part], length[part], cuts)
            total[part] += (weight * term(k, part)).sum(axis=1)
    return total


def _numbers(begin: np.ndarray, length: np.ndarray, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers from `begin` on and the weights with which they stand for all of them.

    Every number counts once up to `_MOST_NUMBERS`; beyond, blocks of odd width are summed by the
    parabola through their ends and middle, exact for summands of degree three.
    """
    longest = int(length.max())
    if longest <= _MOST_NUMBERS:
        k = np.arange(longest)
        return begin[:, None] + k, (k < length[:, None]).astype(np.float64)
    edges = np.floor(length[:, None] * cuts)
    width = np.diff(edges, axis=1)
    odd = width - (width % 2 == 0)  # the last number of an even block counts by itself
    half = np.maximum((odd - 1.0) / 2.0, 0.0)
    ends = np.where(odd > 1, odd / (6.0 * np.maximum(odd - 1.0, 1.0)) * (odd + 1.0), 0.0)
    left = edges[:, :-1]
    k = np.concatenate([left, left + half, left + np.maximum(odd - 1.0, 0.0), left + width - 1.0], axis=1)
    # Of a block of two the single number is odd; one of width 0 has none.
    centre = np.where(odd > 0, odd - 2.0 * ends, 0.0)
    weight = np.concatenate([ends, centre, ends, (width % 2 == 0) * (width > 0)], axis=1)
    return begin[:, None] + k, weight


def panel_edges(*marks: np.ndarray) -> np.ndarray:
    """Sort marks of each row into the edges of panels.

    Parameters
    ----------
    *marks : ndarray of shape (n, m_i)
        Points at which the panels of a row may break.

    Returns
    -------
    ndarray of shape (n, m)
        Increasing edges.
    """
    return np.sort(np.concatenate(marks, axis=1), axis=1)


def panel_integral(function: Callable[[np.ndarray], np.ndarray], edges: np.ndarray) -> np.ndarray:
    """Integrate over panels by Gauss-Legendre rules.

    Parameters
    ----------
    function : callable
        Maps (n, m) points to values.
    edges : ndarray of shape (n, n_panels + 1)
        Increasing edges.

    Returns
    -------
    ndarray of shape (n,)
        Integrals.
    """
    total = np.zeros(len(edges))
    for j in range(edges.shape[1] - 1):
        left, width = edges[:, j, None], np.diff(edges[:, j : j + 2], axis=1)
        if (width > 0).any():
            total += (width * _PANEL_WEIGHTS * function(left + width * _PANEL_NODES)).sum(axis=1)
    return total
