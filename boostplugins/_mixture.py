"""Quantiles and scores of mixtures, which have no closed form."""

from __future__ import annotations

import numpy as np

from boostplugins.families import Family
from boostplugins.families._crps import sum_over_integers
from boostplugins.families.normal import Normal, absolute_normal

_MAX_STEPS = 200
# Width at which a root search stops, relative to the root and to its first bracket.
_RELATIVE = 4.0 * float(np.finfo(float).eps)
_BLOCK = 2_000_000  # pairwise terms held at a time
_TAIL = 1e-9
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_PANEL_NODES, _PANEL_WEIGHTS = 0.5 * (_NODES + 1.0), 0.5 * _WEIGHTS


def mixture_ppf(family: Family, theta: np.ndarray, weights: np.ndarray | None, q: np.ndarray) -> np.ndarray:
    """Quantiles of mixtures by a safeguarded root search, all rows at once.

    The root lies between the least and the greatest member quantile. Each step tries the secant
    through the bracket's ends (with the Illinois weighting of a stale end) and falls back to
    halving wherever a bracket failed to shrink by half in two steps.

    Parameters
    ----------
    family : Family
        Distribution of the members.
    theta : ndarray of shape (n, M, K)
        Parameters.
    weights : ndarray of shape (M,) or None
        Weights of the members.
    q : ndarray of shape (n,)
        Probabilities.

    Returns
    -------
    ndarray of shape (n,)
        Quantiles.
    """
    if not len(q):
        return np.empty(0)
    ends = family.ppf(np.broadcast_to(q[:, None], theta.shape[:2]), theta)
    if weights is not None:
        ends = ends[:, weights > 0]
    low, high = ends.min(axis=1), ends.max(axis=1)
    if family.discrete:
        return _discrete_ppf(family, theta, weights, q, low, high)
    root = low.copy()
    rows = np.flatnonzero(np.isfinite(low) & np.isfinite(high) & (high > low))
    if len(rows):
        root[rows] = _search(family, theta[rows], weights, q[rows], low[rows], high[rows])
    return root


def _cdf(family: Family, theta: np.ndarray, weights: np.ndarray | None, y: np.ndarray) -> np.ndarray:
    return np.average(family.cdf(y[:, None], theta), axis=1, weights=weights)


def _search(
    family: Family,
    theta: np.ndarray,
    weights: np.ndarray | None,
    q: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
) -> np.ndarray:
    a, b = a.copy(), b.copy()
    root = 0.5 * (a + b)
    fa = _cdf(family, theta, weights, a) - q
    fb = _cdf(family, theta, weights, b) - q
    # Rounding can leave both ends on one side; the nearer end is then the answer.
    active = np.flatnonzero((fa < 0) & (fb > 0))
    root = np.where(fa >= 0, a, np.where(fb <= 0, b, root))
    width = b - a
    side = np.zeros(len(q), dtype=np.int8)
    for step in range(_MAX_STEPS):
        if not len(active):
            break
        i = active
        with np.errstate(all="ignore"):
            x = b[i] - fb[i] * (b[i] - a[i]) / (fb[i] - fa[i])
        middle = 0.5 * (a[i] + b[i])
        halve = (step % 3 == 2) & (b[i] - a[i] > 0.5 * width[i])
        x = np.where(halve | ~((x > a[i]) & (x < b[i])), middle, x)
        if step % 3 == 2:
            width[i] = b[i] - a[i]
        fx = _cdf(family, theta[i], weights, x) - q[i]
        up = fx > 0
        # Illinois: an end kept twice in a row counts half, so that the secant moves off it.
        fa[i] = np.where(up, np.where(side[i] == 1, 0.5 * fa[i], fa[i]), fx)
        fb[i] = np.where(up, fx, np.where(side[i] == -1, 0.5 * fb[i], fb[i]))
        a[i], b[i] = np.where(up, a[i], x), np.where(up, x, b[i])
        side[i] = np.where(up, 1, -1)
        root[i] = x
        small = b[i] - a[i] <= _RELATIVE * np.maximum(np.abs(a[i]), np.abs(b[i]))
        active = i[~(small | (fx == 0))]
    return root


def _discrete_ppf(
    family: Family,
    theta: np.ndarray,
    weights: np.ndarray | None,
    q: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> np.ndarray:
    """Least whole number whose cdf reaches q, by halving."""
    low, high = low - 1.0, high.copy()
    for _ in range(1100):
        open_rows = np.flatnonzero(high - low > 1.0)
        if not len(open_rows):
            break
        middle = np.floor(0.5 * (low[open_rows] + high[open_rows]))
        enough = _cdf(family, theta[open_rows], weights, middle) >= q[open_rows]
        stuck = (middle == low[open_rows]) | (middle == high[open_rows])
        middle = np.where(stuck, low[open_rows] + 1.0, middle)
        high[open_rows] = np.where(enough | stuck, middle, high[open_rows])
        low[open_rows] = np.where(enough | stuck, low[open_rows], middle)
    return high


def mixture_crps(family: Family, theta: np.ndarray, weights: np.ndarray | None, y: np.ndarray) -> np.ndarray:
    """CRPS of mixtures: closed form for Normal members, numerical integration otherwise.

    Parameters
    ----------
    family : Family
        Distribution of the members.
    theta : ndarray of shape (n, M, K)
        Parameters.
    weights : ndarray of shape (M,) or None
        Weights of the members.
    y : ndarray of shape (n,)
        Responses.

    Returns
    -------
    ndarray of shape (n,)
        Scores.
    """
    members = theta.shape[1]
    w = np.full(members, 1.0 / members) if weights is None else weights
    block = max(1, _BLOCK // (members * members))
    score = np.empty(len(y))
    one = _normal_crps if isinstance(family, Normal) else _numeric_crps
    for start in range(0, len(y), block):
        part = slice(start, start + block)
        score[part] = one(family, theta[part], w, y[part])
    return score


def _normal_crps(family: Family, theta: np.ndarray, w: np.ndarray, y: np.ndarray) -> np.ndarray:
    """E|X - y| - E|X - X'| / 2 with both means known for Normal pairs (Grimit et al., 2006)."""
    mu, sigma = theta[..., 0], theta[..., 1]
    near = (w * sigma * absolute_normal((y[:, None] - mu) / sigma)).sum(axis=1)
    root = np.sqrt(sigma[:, :, None] ** 2 + sigma[:, None, :] ** 2)
    pair = root * absolute_normal((mu[:, :, None] - mu[:, None, :]) / root)
    return near - 0.5 * np.einsum("m,nmk,k->n", w, pair, w)


def _numeric_crps(family: Family, theta: np.ndarray, w: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Integrate (F - 1{x >= y})^2 between the members' quantiles, panel by panel."""
    if family.discrete:
        return _discrete_crps(family, theta, w, y)
    levels = np.array([_TAIL, 1e-6, 1e-4, 1e-2, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-4, 1 - 1e-6, 1 - _TAIL])
    knots = family.ppf(levels[None, :, None], theta[:, None, :, :])  # (n, levels, M)
    edges = np.sort(np.concatenate([knots.min(axis=2), knots.max(axis=2), y[:, None]], axis=1), axis=1)
    total = np.zeros(len(y))
    for j in range(edges.shape[1] - 1):
        left, width = edges[:, j], edges[:, j + 1] - edges[:, j]
        x = left[:, None] + width[:, None] * _PANEL_NODES
        f = np.einsum("nxm,m->nx", family.cdf(x[:, :, None], theta[:, None, :, :]), w)
        total += width * ((f - (x >= y[:, None])) ** 2 @ _PANEL_WEIGHTS)
    return total


def _discrete_crps(family: Family, theta: np.ndarray, w: np.ndarray, y: np.ndarray) -> np.ndarray:
    ends = family.ppf(np.array([_TAIL, 1 - _TAIL])[:, None, None], theta[None])
    low, high = ends[0].min(axis=1), ends[1].max(axis=1)

    def cdf(k: np.ndarray) -> np.ndarray:
        return family.cdf(k[:, None], theta) @ w

    return sum_over_integers(cdf, y, low, high)
