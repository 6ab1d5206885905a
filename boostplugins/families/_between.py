"""Probability of an interval and its derivatives, for families that are cut or seen through windows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from boostplugins.families._common import quiet
from boostplugins.families._numeric import raw_gradient
from boostplugins.families.base import Family

# Share of a tail below which an interval is integrated over, not told as a difference of tails.
_NARROW = 0.01
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
_AT, _LOG_WEIGHTS = 0.5 * (_NODES + 1.0), np.log(0.5 * _WEIGHTS)


@quiet
def log_between(base: Family, low: ArrayLike, high: ArrayLike, theta: ArrayLike) -> np.ndarray:
    """Log probability of an interval.

    Parameters
    ----------
    base : Family
        Continuous distribution.
    low, high : array-like of shape (...)
        Ends, ``low < high``; may be infinite or lie beyond the support.
    theta : array-like of shape (..., K)
        Parameters.

    Returns
    -------
    ndarray of shape (...)
        Log probabilities, from the tail in which they are small.
    """
    return _log_between(base, low, high, theta)[0]


def _log_between(
    base: Family, low: ArrayLike, high: ArrayLike, theta: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """Log probability of an interval, and whether it is a narrow one, integrated over."""
    theta = np.asarray(theta, dtype=np.float64)
    above, below = base.log_sf(low, theta), base.log_cdf(high, theta)
    above, below, low, high = np.broadcast_arrays(above, below, low, high)
    open_high, open_low = high >= base.support.high, low <= base.support.low
    upper = above < below
    large = np.where(upper, above, below)
    other = np.where(upper, base.log_sf(high, theta), base.log_cdf(low, theta))
    share = -np.expm1(np.minimum(other - large, 0.0))
    logs = np.where(open_high, above, np.where(open_low, below, large + np.log(share)))
    narrow = ~open_high & ~open_low & ~(share > _NARROW) & (high > low)
    if not narrow.any():
        return logs, narrow
    flat = np.broadcast_to(theta, (*logs.shape, theta.shape[-1]))[narrow]
    left, width = low[narrow], high[narrow] - low[narrow]
    density = base.log_pdf(left[:, None] + width[:, None] * _AT, flat[:, None, :])
    logs = np.array(logs)
    logs[narrow] = np.logaddexp.reduce(density + _LOG_WEIGHTS, axis=1) + np.log(width)
    return logs, narrow


@quiet
def score_between(base: Family, low: np.ndarray, high: np.ndarray, raw: np.ndarray) -> np.ndarray:
    """Derivatives of the log probability of an interval in the raw scores.

    By differences; where the interval is narrow for the distribution, as the mean of the score of
    the responses within (Fisher's identity), which loses no digits there.

    Parameters
    ----------
    base : Family
        Continuous distribution.
    low, high : ndarray of shape (n,)
        Ends.
    raw : ndarray of shape (n, K)
        Raw scores.

    Returns
    -------
    ndarray of shape (n, K)
        Derivatives.
    """
    raw = np.asarray(raw, dtype=np.float64)
    theta = base.theta(raw)
    narrow = _log_between(base, low, high, theta)[1]
    score = np.empty(raw.shape)
    wide = ~narrow
    if wide.any():
        left, right, at = low[wide], high[wide], raw[wide]
        score[wide] = raw_gradient(
            lambda moved: log_between(base, left, right, base.theta(moved)), at, _steps(base, at)
        )
    if narrow.any():
        score[narrow] = _mean_score(base, low[narrow], high[narrow], raw[narrow], theta[narrow])
    return score


def _steps(base: Family, raw: np.ndarray) -> np.ndarray:
    """Lengths over which raw scores matter, (n, K): at most 1, and more than rounding."""
    middle = base.ppf(0.5, base.theta(raw))
    usable = base.support.contains(middle)
    fisher = np.ones(raw.shape)
    fisher[usable] = base.score_and_fisher(middle[usable], raw[usable])[1]
    return np.maximum(1.0 / np.sqrt(np.maximum(fisher, 1.0)), 1e-5 * np.minimum(np.abs(raw), 1e3))


def _mean_score(
    base: Family, low: np.ndarray, high: np.ndarray, raw: np.ndarray, theta: np.ndarray
) -> np.ndarray:
    """Mean score of responses within narrow intervals."""
    at = low[:, None] + (high - low)[:, None] * _AT
    weight = base.log_pdf(at, theta[:, None, :]) + _LOG_WEIGHTS
    weight = np.exp(weight - weight.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    spread = np.repeat(raw, len(_AT), axis=0)
    score = base.score_and_fisher(np.ascontiguousarray(at.ravel()), spread)[0]
    return (weight[:, :, None] * score.reshape(len(raw), len(_AT), -1)).sum(axis=1)
