"""Johnson's SU distribution: location, scale, skewness and tail weight."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr, ndtri

from boostplugins._jit import njit
from boostplugins.families._common import columns, quiet, run, spread, within
from boostplugins.families.base import Family
from boostplugins.links import Identity, Log

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
# Tail weights below 0.25 have a standard deviation beyond e**16 scales.
_TAILS = Log(math.log(0.25), math.log(1e3))
# Log of a standardised response beyond which 1 + u^2 is u^2 to the last digit.
_LOG_FAR = 100.0
_SKEWS = Identity(-30.0, 30.0)
# Trapezoid rule over a standard normal: errors below 1e-9 for tau >= 0.7, 1e-4 at 0.25.
_Z = np.linspace(-6.3, 6.3, 43)
_W = np.exp(-0.5 * _Z**2) / np.exp(-0.5 * _Z**2).sum()


@dataclass(frozen=True)
class JSU(Family):
    r"""Johnson's SU distribution, theta = (mu, sigma, nu, tau), raw = (mu, log sigma, nu, log tau).

    .. math:: Z = \nu + \tau \operatorname{asinh}\frac{y - \mu}{\sigma} \sim N(0, 1)

    nu moves mass to the left (nu > 0) or right, tau > 0 thins the tails; Normal for large tau.
    These are the parameters of GAMLSS's JSUo. Fisher information by a fixed quadrature for mu and
    sigma, 1 for nu, 2 + nu^2 for log tau.

    Examples
    --------
    >>> from boostplugins.families import get_family
    >>> float(get_family("JSUo").ppf(0.5, [1.0, 2.0, 0.0, 1.5]))
    1.0
    """

    name = "jsu"
    aliases = ("JSUo", "johnson_su")
    params = ("mu", "sigma", "nu", "tau")
    links = (Identity(), Log(), _SKEWS, _TAILS)
    locations = (0,)
    scales = (1,)

    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return run(self, _kernel, y, raw, _Z, _W, _LOG_FAR)

    def _guess(self, y: np.ndarray, weight: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
        mean, sd = spread(y if offset is None else y - offset, weight)
        return np.array([mean, math.log(sd * 1.6), 0.0, math.log(1.8)])

    def _z(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, sigma, nu, tau = columns(theta)
        gap = np.asarray(y, dtype=np.float64) - mu
        log_u = np.log(np.abs(gap)) - np.log(sigma)
        far = np.sign(gap) * (math.log(2.0) + log_u)
        return nu + tau * np.where(log_u > _LOG_FAR, far, np.arcsinh(gap / sigma))

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, sigma, _, tau = columns(theta)
        gap = np.asarray(y, dtype=np.float64) - mu
        z = self._z(y, theta)
        # sigma sqrt(1 + u^2), which does not overflow.
        density = np.log(tau) - np.log(np.hypot(sigma, gap)) - _HALF_LOG_2PI - 0.5 * z**2
        return within(np.isfinite(gap), density)

    @quiet
    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        return ndtr(self._z(y, theta))

    @quiet
    def sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        return ndtr(-self._z(y, theta))

    @quiet
    def log_cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        return log_ndtr(self._z(y, theta))

    @quiet
    def log_sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        return log_ndtr(-self._z(y, theta))

    @quiet
    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, sigma, nu, tau = columns(theta)
        return mu + sigma * np.sinh((ndtri(np.asarray(q, dtype=np.float64)) - nu) / tau)

    @quiet
    def mean(self, theta: ArrayLike) -> np.ndarray:
        mu, sigma, nu, tau = columns(theta)
        return mu - sigma * np.exp(0.5 / tau**2) * np.sinh(nu / tau)

    @quiet
    def var(self, theta: ArrayLike) -> np.ndarray:
        _, sigma, nu, tau = columns(theta)
        w = np.exp(1.0 / tau**2)
        return 0.5 * sigma**2 * np.expm1(1.0 / tau**2) * (w * np.cosh(2.0 * nu / tau) + 1.0)

    def sample(self, theta: ArrayLike, size: int, rng: np.random.Generator) -> np.ndarray:
        mu, sigma, nu, tau = (column[..., None] for column in columns(theta))
        return mu + sigma * np.sinh((rng.standard_normal((*mu.shape[:-1], size)) - nu) / tau)


@njit
def _kernel(y, raw, score, fisher, nodes, weights, log_far):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        inverse = math.exp(-raw[i, 1])
        nu, tau = raw[i, 2], math.exp(raw[i, 3])
        gap = y[i] - raw[i, 0]
        u = gap * inverse
        if math.log(max(abs(gap), 1e-300)) - raw[i, 1] > log_far:
            sign = math.copysign(1.0, gap)
            z = nu + tau * sign * (math.log(2.0) + math.log(abs(gap)) - raw[i, 1])
            score[i, 0] = (1.0 + sign * tau * z) / gap
            score[i, 1] = sign * tau * z
        else:
            z = nu + tau * math.asinh(u)
            root = math.hypot(1.0, u)
            pull = u / root / root + tau * z / root
            score[i, 0] = pull * inverse
            score[i, 1] = u * pull - 1.0
        score[i, 2] = -z
        score[i, 3] = 1.0 - z * (z - nu)
        location, scale = 0.0, 0.0
        for j in range(len(nodes)):
            t = math.tanh((nodes[j] - nu) / tau)
            slope = math.sqrt(max(1.0 - t * t, 0.0))
            pull = t * slope + tau * nodes[j] * slope
            location += weights[j] * pull * pull
            moved = t * t + tau * nodes[j] * t - 1.0
            scale += weights[j] * moved * moved
        fisher[i, 0] = location * inverse * inverse
        fisher[i, 1] = scale
        fisher[i, 2] = 1.0
        fisher[i, 3] = 2.0 + nu * nu
