"""Quantiles by root search, for distributions whose cdf alone is known; all rows at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_MAX_STEPS = 200
_MAX_DOUBLINGS = 1100  # enough to cross the whole range of float64
# Width at which a search stops, relative to the root.
_RELATIVE = 4.0 * float(np.finfo(float).eps)
Cdf = Callable[[np.ndarray, np.ndarray], np.ndarray]


def invert(cdf: Cdf, q: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Quantiles of continuous distributions within known brackets.

    Each step tries the secant through the bracket's ends (a stale end counts half: the Illinois
    rule) and falls back to halving where a bracket did not halve within three steps.

    Parameters
    ----------
    cdf : callable
        ``cdf(x, rows)``: F at x of the rows numbered `rows`.
    q : ndarray of shape (n,)
        Probabilities.
    low, high : ndarray of shape (n,)
        Brackets: F(low) <= q <= F(high), save for rounding.

    Returns
    -------
    ndarray of shape (n,)
        Quantiles.
    """
    a, b = low.astype(np.float64), high.astype(np.float64)
    rows = np.arange(len(q))
    fa, fb = cdf(a, rows) - q, cdf(b, rows) - q
    # Rounding can leave both ends on one side; the nearer end is then the answer.
    root = np.where(fa >= 0, a, np.where(fb <= 0, b, 0.5 * (a + b)))
    active = rows[(fa < 0) & (fb > 0)]
    width, side = b - a, np.zeros(len(q), dtype=np.int8)
    for step in range(_MAX_STEPS):
        if not len(active):
            break
        i = active
        gap = b[i] - a[i]
        with np.errstate(all="ignore"):
            x = b[i] - fb[i] * gap / (fb[i] - fa[i])
        halve = (step % 3 == 2) & (gap > 0.5 * width[i])
        x = np.where(halve | ~((x > a[i]) & (x < b[i])), a[i] + 0.5 * gap, x)
        if step % 3 == 2:
            width[i] = gap
        fx = cdf(x, i) - q[i]
        up = fx > 0
        fa[i] = np.where(up, np.where(side[i] == 1, 0.5 * fa[i], fa[i]), fx)
        fb[i] = np.where(up, fx, np.where(side[i] == -1, 0.5 * fb[i], fb[i]))
        a[i], b[i] = np.where(up, a[i], x), np.where(up, x, b[i])
        side[i] = np.where(up, 1, -1)
        root[i] = x
        small = b[i] - a[i] <= _RELATIVE * np.maximum(np.abs(a[i]), np.abs(b[i]))
        active = i[~(small | (fx == 0))]
    return root


def invert_positive(cdf: Cdf, q: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """Quantiles of distributions on [0, inf), searched on the logarithmic scale.

    Parameters
    ----------
    cdf : callable
        ``cdf(x, rows)``.
    q : ndarray of shape (n,)
        Probabilities; 0 gives 0 and 1 gives inf.
    guess : ndarray of shape (n,)
        Positive values of the right size, such as means.

    Returns
    -------
    ndarray of shape (n,)
        Quantiles; 0 where the mass at 0 reaches `q`.
    """
    root = np.where(q >= 1.0, np.inf, 0.0)
    rows = np.flatnonzero((q > 0) & (q < 1))
    rows = rows[cdf(np.zeros(len(rows)), rows) < q[rows]]
    if not len(rows):
        return root

    def log_cdf(x: np.ndarray, i: np.ndarray) -> np.ndarray:
        return cdf(np.exp(x), rows[i])

    level = q[rows]
    low, high = _bracket(log_cdf, level, np.log(np.clip(guess[rows], 1e-100, 1e100)), 1.0)
    root[rows] = np.exp(invert(log_cdf, level, low, high))
    return root


def invert_integer(cdf: Cdf, q: np.ndarray, guess: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Quantiles of distributions on the whole numbers from 0.

    Parameters
    ----------
    cdf : callable
        ``cdf(x, rows)``.
    q : ndarray of shape (n,)
        Probabilities; 0 gives 0 and 1 gives inf.
    guess : ndarray of shape (n,)
        Where to look first.
    step : ndarray of shape (n,)
        How far to look around it, such as the standard deviation.

    Returns
    -------
    ndarray of shape (n,)
        Least whole numbers whose cdf reaches `q`.
    """
    root = np.where(q >= 1.0, np.inf, 0.0)
    rows = np.flatnonzero((q > 0) & (q < 1))
    if not len(rows):
        return root

    def inner(x: np.ndarray, i: np.ndarray) -> np.ndarray:
        return np.where(x < 0, -1.0, cdf(np.maximum(x, 0.0), rows[i]))

    first = np.floor(np.maximum(guess[rows], 0.0))
    low, high = _bracket(inner, q[rows], first, np.maximum(np.ceil(step[rows]), 1.0))
    root[rows] = halve_integers(inner, q[rows], np.maximum(low, -1.0), high)
    return root


def halve_integers(cdf: Cdf, q: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Least whole numbers in (low, high] whose cdf reaches `q`.

    Parameters
    ----------
    cdf : callable
        ``cdf(x, rows)``.
    q : ndarray of shape (n,)
        Probabilities.
    low, high : ndarray of shape (n,)
        Whole numbers with F(low) < q <= F(high).

    Returns
    -------
    ndarray of shape (n,)
        Quantiles.
    """
    low, high = low.copy(), high.copy()
    for _ in range(_MAX_DOUBLINGS):
        middle = np.floor(low + 0.5 * (high - low))
        rows = np.flatnonzero((middle > low) & (middle < high) & (high - low > 1.0))
        if not len(rows):
            break
        enough = cdf(middle[rows], rows) >= q[rows]
        high[rows] = np.where(enough, middle[rows], high[rows])
        low[rows] = np.where(enough, low[rows], middle[rows])
    return high


def _bracket(
    cdf: Cdf, q: np.ndarray, guess: np.ndarray, step: np.ndarray | float
) -> tuple[np.ndarray, np.ndarray]:
    """Widen around a guess, doubling the step, until F(low) < q <= F(high)."""
    rows = np.arange(len(q))
    step = np.broadcast_to(np.asarray(step, dtype=np.float64), q.shape).copy()
    above = cdf(guess, rows) >= q
    near, far = guess.copy(), guess.copy()
    active = rows
    for _ in range(_MAX_DOUBLINGS):
        far[active] = near[active] + np.where(above[active], -step[active], step[active])
        crossed = (cdf(far[active], active) >= q[active]) != above[active]
        step[active] *= 2.0
        near[active] = np.where(crossed, near[active], far[active])
        active = active[~crossed & (np.abs(far[active]) < 1e300)]
        if not len(active):
            break
    return np.where(above, far, near), np.where(above, near, far)
