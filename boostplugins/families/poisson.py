"""Poisson distribution by its mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc, gammaincc, gammaln, i0e, i1e, xlogy

from boostplugins._jit import njit
from boostplugins.families._common import columns, quiet, run, within
from boostplugins.families._invert import invert_integer
from boostplugins.families.base import Family
from boostplugins.families.support import Support
from boostplugins.links import Log

# Means above 1e15 are no longer whole numbers in float64.
_MEANS = Log(-100.0, math.log(1e15))


@dataclass(frozen=True)
class Poisson(Family):
    r"""Poisson distribution, theta = (mu,), raw = (log mu,).

    .. math:: \log p = y \log\mu - \mu - \log y!

    Fisher information: mu.

    Examples
    --------
    >>> from boostplugins.families import get_family
    >>> float(get_family("PO").ppf(0.5, [3.0]))
    3.0
    """

    name = "poisson"
    aliases = ("PO",)
    params = ("mu",)
    links = (_MEANS,)
    support = Support(0.0, closed_low=True, integer=True)
    discrete = True

    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return run(self, _kernel, y, raw)

    def init(
        self, y: np.ndarray, weight: np.ndarray | None = None, offset: np.ndarray | None = None
    ) -> np.ndarray:
        y = np.asarray(y, dtype=np.float64)
        weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
        exposure = weight.sum() if offset is None else weight @ np.exp(offset)
        # Half an event in all where there was none: the mean stays positive.
        return np.array([math.log(max(weight @ y, 0.5 * weight.max()) / exposure)])

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        (mu,) = columns(theta)
        y = np.asarray(y, dtype=np.float64)
        inside = self.support.contains(y)
        good = np.where(inside, y, 0.0)
        # Of huge counts Stirling's series, whose parts do not overflow one against the other.
        huge = good > 1e10
        some, many = np.where(huge, 0.0, good), np.where(huge, good, 1.0)
        density = xlogy(some, mu) - mu - gammaln(some + 1.0)
        series = many * (np.log(mu) - np.log(many) + 1.0) - mu - 0.5 * np.log(2.0 * np.pi * many)
        return within(inside, np.where(huge, series, density))

    @quiet
    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        (mu,) = columns(theta)
        k = np.floor(np.asarray(y, dtype=np.float64))
        return np.where(k < 0, 0.0, gammaincc(np.maximum(k, 0.0) + 1.0, mu))

    @quiet
    def sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        (mu,) = columns(theta)
        k = np.floor(np.asarray(y, dtype=np.float64))
        return np.where(k < 0, 1.0, gammainc(np.maximum(k, 0.0) + 1.0, mu))

    @quiet
    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        (mu,) = columns(theta)
        q, mu = np.broadcast_arrays(np.asarray(q, dtype=np.float64), mu)
        rates, root = mu.ravel(), np.sqrt(mu.ravel())
        found = invert_integer(lambda x, i: gammaincc(x + 1.0, rates[i]), q.ravel(), rates, root)
        return found.reshape(q.shape)

    @quiet
    def mean(self, theta: ArrayLike) -> np.ndarray:
        return columns(theta)[0].copy()

    @quiet
    def var(self, theta: ArrayLike) -> np.ndarray:
        return columns(theta)[0].copy()

    def sample(self, theta: ArrayLike, size: int, rng: np.random.Generator) -> np.ndarray:
        mu = columns(theta)[0][..., None]
        return rng.poisson(np.minimum(mu, 1e15), (*mu.shape[:-1], size)).astype(np.float64)

    @quiet
    def crps(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        (mu,) = columns(theta)
        y = np.asarray(y, dtype=np.float64)
        k = np.maximum(np.floor(y), 0.0)
        near = (y - mu) * (2.0 * self.cdf(y, theta) - 1.0)
        peak = np.where(y < 0, 0.0, np.exp(self.log_pdf(k, theta)))
        return near + 2.0 * mu * peak - mu * (i0e(2.0 * mu) + i1e(2.0 * mu))


@njit
def _kernel(y, raw, score, fisher):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        mu = math.exp(raw[i, 0])
        score[i, 0] = y[i] - mu
        fisher[i, 0] = mu
