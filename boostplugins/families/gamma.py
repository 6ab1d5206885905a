"""Gamma distribution by mean and shape."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, gammainc, gammaincc, gammainccinv, gammaincinv, gammaln, xlogy

from boostplugins._jit import njit
from boostplugins.families._common import columns, quiet, run, spread, within
from boostplugins.families._special import log_minus_digamma, trigamma_excess
from boostplugins.families.base import Family
from boostplugins.families.support import Support
from boostplugins.links import Log

# Shape range: below, half of the mass is under 1e-300; above, the distribution is a Normal point.
_SHAPES = Log(math.log(1e-3), math.log(1e12))


@dataclass(frozen=True)
class Gamma(Family):
    r"""Gamma distribution, theta = (mu, shape), raw = (log mu, log shape).

    .. math:: \log p = k \log\tfrac{k}{\mu} - \log\Gamma(k) + (k - 1) \log y - \tfrac{k y}{\mu}

    GAMLSS's GA has sigma = 1 / sqrt(shape). Mean and shape are orthogonal: Fisher information
    :math:`(k,\ k\,(k \psi'(k) - 1))`.

    Examples
    --------
    >>> from boostplugins.families import get_family
    >>> float(get_family("GA").var([2.0, 4.0]))
    1.0
    """

    name = "gamma"
    aliases = ("GA",)
    params = ("mu", "shape")
    links = (Log(), _SHAPES)
    support = Support(0.0)
    scales = (0,)

    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return run(self, _kernel, y, raw)

    def _guess(self, y: np.ndarray, weight: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
        mean, sd = spread(y if offset is None else y * np.exp(-offset), weight)
        return np.array([math.log(mean), 2.0 * math.log(mean / sd)])

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, k = columns(theta)
        y = np.asarray(y, dtype=np.float64)
        inside = self.support.contains(y)
        good = np.where(inside, y, 1.0)
        log_ratio = np.log(good) - np.log(mu)
        # k log k - k - log Gamma(k) stays near -log(2 pi / k) / 2: no cancellation with k (t - 1).
        big = k > 1e4
        stirling = np.where(big, 0.5 * np.log(k / (2.0 * math.pi)) - 1.0 / (12.0 * k), 0.0)
        small = np.where(big, 1.0, k)
        stirling = np.where(big, stirling, xlogy(small, small) - small - gammaln(small))
        density = stirling + k * (log_ratio - np.expm1(log_ratio)) - np.log(good)
        return within(inside, density)

    @quiet
    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, k = columns(theta)
        return gammainc(k, k * np.maximum(np.asarray(y), 0.0) / mu)

    @quiet
    def sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, k = columns(theta)
        return gammaincc(k, k * np.maximum(np.asarray(y), 0.0) / mu)

    @quiet
    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, k = columns(theta)
        q = np.asarray(q, dtype=np.float64)
        return mu / k * np.where(q < 0.5, gammaincinv(k, q), gammainccinv(k, 1.0 - q))

    @quiet
    def mean(self, theta: ArrayLike) -> np.ndarray:
        return columns(theta)[0].copy()

    @quiet
    def var(self, theta: ArrayLike) -> np.ndarray:
        mu, k = columns(theta)
        return mu**2 / k

    def sample(self, theta: ArrayLike, size: int, rng: np.random.Generator) -> np.ndarray:
        mu, k = (column[..., None] for column in columns(theta))
        return mu / k * rng.standard_gamma(np.broadcast_to(k, (*k.shape[:-1], size)))

    @quiet
    def crps(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, k = columns(theta)
        y = np.asarray(y, dtype=np.float64)
        t = np.maximum(y, 0.0)
        near = t * (2.0 * self.cdf(t, theta) - 1.0) - mu * (2.0 * gammainc(k + 1.0, k * t / mu) - 1.0)
        return near - mu / k * np.exp(-betaln(0.5, k)) + np.maximum(-y, 0.0)


@njit
def _kernel(y, raw, score, fisher):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        k = math.exp(raw[i, 1])
        log_ratio = math.log(y[i]) - raw[i, 0]
        excess = math.expm1(min(log_ratio, 709.0))  # the last before floats overflow
        score[i, 0] = k * excess
        score[i, 1] = k * (log_minus_digamma(k) + log_ratio - excess)
        fisher[i, 0] = k
        fisher[i, 1] = trigamma_excess(k)
