"""Quantiles and scores of mixtures, which have no closed form."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from boostplugins.families import Family
from boostplugins.families._crps import panel_edges, panel_integral, sum_over_integers
from boostplugins.families._invert import Cdf, halve_integers, invert
from boostplugins.families.normal import Normal
from boostplugins.families.normal_mixture import mixture_of_normals_crps

_BLOCK = 2_000_000  # pairwise terms held at a time
_PPF_BLOCK = 50_000  # members' values that the search for quantiles holds at a time
_TAIL = 1e-9
_NEWTON_STEPS = 12
_ROOT_TWO_PI = float(np.sqrt(2.0 * np.pi))
# Probabilities whose quantiles are the edges of panels.
LEVELS = np.array([_TAIL, 1e-6, 1e-4, 1e-2, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-4, 1 - 1e-6, 1 - _TAIL])


def mixture_ppf(family: Family, theta: np.ndarray, weights: np.ndarray | None, q: np.ndarray) -> np.ndarray:
    """Quantiles of mixtures by a safeguarded root search, a block of rows at once.

    The root lies between the least and the greatest member quantile.

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
    size = max(1, _PPF_BLOCK // theta.shape[1])
    parts = (slice(start, start + size) for start in range(0, len(q), size))
    return np.concatenate([_block_ppf(family, theta[part], weights, q[part]) for part in parts])


def _block_ppf(family: Family, theta: np.ndarray, weights: np.ndarray | None, q: np.ndarray) -> np.ndarray:
    ends = family.ppf(np.broadcast_to(q[:, None], theta.shape[:2]), theta)
    if weights is not None:
        ends = ends[:, weights > 0]
    low, high = ends.min(axis=1), ends.max(axis=1)
    root = low.copy()
    rows = np.flatnonzero(np.isfinite(low) & np.isfinite(high) & (high > low))
    if not len(rows):
        return root

    def cdf(x: np.ndarray, i: np.ndarray) -> np.ndarray:
        return np.average(family.cdf(x[:, None], theta[rows[i]]), axis=1, weights=weights)

    if family.discrete:
        root[rows] = halve_integers(cdf, q[rows], low[rows] - 1.0, high[rows])
    elif isinstance(family, Normal):
        root[rows] = _normal_ppf(cdf, theta[rows], weights, q[rows], ends[rows])
    else:
        root[rows] = invert(cdf, q[rows], low[rows], high[rows])
    return root


def _normal_ppf(
    cdf: Cdf, theta: np.ndarray, weights: np.ndarray | None, q: np.ndarray, ends: np.ndarray
) -> np.ndarray:
    """Newton's steps from the mean of the members' quantiles, kept within the bracket.

    The last step starts within 1e-9 of the tail's probability, and squares its own error. Rows that
    do not get there, for their density has spikes, are left to the slower search.
    """
    low, high, root = ends.min(axis=1), ends.max(axis=1), ends.mean(axis=1)
    mu, sigma = np.ascontiguousarray(theta[..., 0]), np.ascontiguousarray(theta[..., 1])
    active = np.arange(len(q))
    for _ in range(_NEWTON_STEPS):
        x = root[active]
        z = (x[:, None] - mu[active]) / sigma[active]
        gap = np.average(ndtr(z), axis=1, weights=weights) - q[active]
        z *= z
        z *= -0.5
        density = np.average(np.exp(z, out=z) / sigma[active], axis=1, weights=weights) / _ROOT_TWO_PI
        low[active] = np.where(gap <= 0, x, low[active])
        high[active] = np.where(gap >= 0, x, high[active])
        with np.errstate(all="ignore"):
            moved = x - gap / density
        inside = (moved >= low[active]) & (moved <= high[active])
        root[active] = np.where(inside, moved, 0.5 * low[active] + 0.5 * high[active])
        active = active[~(inside & (np.abs(gap) < 1e-9 * np.minimum(q[active], 1.0 - q[active])))]
        if not len(active):
            return root
    root[active] = invert(lambda x, i: cdf(x, active[i]), q[active], low[active], high[active])
    return root


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
    return mixture_of_normals_crps(y, w, theta[..., 0], theta[..., 1])


def _numeric_crps(family: Family, theta: np.ndarray, w: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Integrate (F - 1{x >= y})^2 between the members' quantiles, panel by panel."""
    if family.discrete:
        return _discrete_crps(family, theta, w, y)
    knots = family.ppf(LEVELS[None, :, None], theta[:, None, :, :])  # (n, levels, M)
    edges = panel_edges(knots.min(axis=2), knots.max(axis=2), y[:, None])

    def gap(x: np.ndarray) -> np.ndarray:
        f = np.einsum("nxm,m->nx", family.cdf(x[:, :, None], theta[:, None, :, :]), w)
        return (f - (x >= y[:, None])) ** 2

    return panel_integral(gap, edges)


def _discrete_crps(family: Family, theta: np.ndarray, w: np.ndarray, y: np.ndarray) -> np.ndarray:
    ends = family.ppf(np.array([_TAIL, 1 - _TAIL])[:, None, None], theta[None])
    low, high = ends[0].min(axis=1), ends[1].max(axis=1)

    def cdf(k: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return family.cdf(k[:, :, None], theta[rows, None]) @ w

    return sum_over_integers(cdf, y, low, high)
