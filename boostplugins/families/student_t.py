"""Student's t distribution by location, scale and degrees of freedom."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, betaln, gammaln, stdtr, stdtrit

from boostplugins._jit import njit
from boostplugins.families._common import LEAST_SPREAD, columns, quiet, run, spread, within
from boostplugins.families._quantile import weighted_quantile
from boostplugins.families._special import digamma, trigamma
from boostplugins.families.base import Family
from boostplugins.links import Identity, Log

# Standardised responses beyond which squares may overflow and all but the leading terms are lost.
_FAR = 1e100


@dataclass(frozen=True)
class StudentT(Family):
    r"""Student's t distribution, theta = (mu, sigma, nu), raw = (mu, log sigma, log nu).

    Predicted degrees of freedom stay in [1.05, 10000]: the mean exists, and beyond the upper end
    the distribution is Normal. The variance is infinite for nu <= 2.

    .. math:: \log p = \log\Gamma(\tfrac{\nu+1}2) - \log\Gamma(\tfrac\nu2)
              - \tfrac12 \log \pi\nu - \log\sigma - \tfrac{\nu+1}2 \log(1 + z^2/\nu)

    Examples
    --------
    >>> from boostplugins.families import get_family
    >>> float(get_family("TF").var([0.0, 1.0, 4.0]))
    2.0
    """

    name = "student_t"
    aliases = ("t", "TF")
    params = ("mu", "sigma", "nu")
    links = (Identity(), Log(), Log(math.log(1.05), math.log(1e4)))
    locations = (0,)
    scales = (1,)

    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return run(self, _kernel, y, raw, _FAR)

    def fisher_matrix(self, raw: np.ndarray) -> np.ndarray:
        raw = np.asarray(raw, dtype=np.float64)
        matrix = super().fisher_matrix(raw)
        nu = self.theta(raw)[:, 2]
        matrix[:, 1, 2] = matrix[:, 2, 1] = -2.0 * nu / ((nu + 1.0) * (nu + 3.0))
        return matrix

    def _guess(self, y: np.ndarray, weight: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
        y = y if offset is None else y - offset
        middle = weighted_quantile(y, weight, 0.5)
        half = weighted_quantile(y, weight, 0.75) - weighted_quantile(y, weight, 0.25)
        least = LEAST_SPREAD * max(abs(middle), 1e-77)
        scale = half / 1.45 if half > least else spread(y, weight)[1]
        return np.array([middle, math.log(scale), math.log(5.0)])

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, sigma, nu = columns(theta)
        y = np.asarray(y, dtype=np.float64)
        z = (y - mu) / sigma
        constant = gammaln(0.5 * (nu + 1.0)) - gammaln(0.5 * nu) - 0.5 * np.log(math.pi * nu)
        # log(1 + z^2 / nu) by hypot, which does not overflow.
        log_term = 2.0 * np.log(np.hypot(1.0, z / np.sqrt(nu)))
        small, far = np.abs(z) < 1.0, np.abs(z) > _FAR
        log_term = np.where(small, np.log1p(np.where(small, z, 0.0) ** 2 / nu), log_term)
        log_far = 2.0 * (np.log(np.where(far, np.abs(y - mu), 1.0)) - np.log(sigma)) - np.log(nu)
        log_term = np.where(far, log_far, log_term)
        return within(np.isfinite(y), constant - np.log(sigma) - 0.5 * (nu + 1.0) * log_term)

    @quiet
    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, sigma, nu = columns(theta)
        return stdtr(nu, (np.asarray(y) - mu) / sigma)

    @quiet
    def sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, sigma, nu = columns(theta)
        return stdtr(nu, (mu - np.asarray(y)) / sigma)

    @quiet
    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, sigma, nu = columns(theta)
        q = np.asarray(q, dtype=np.float64)
        t = np.where(q == 0.0, -np.inf, stdtrit(nu, q))
        # Its search goes astray far down, where the incomplete beta's inverse keeps its digits.
        x = betaincinv(0.5 * nu, 0.5, np.minimum(2.0 * q, 1.0))
        far = (q < 1e-100) & (nu >= 2.0)
        return mu + sigma * np.where(far, -np.sqrt(nu * (1.0 - x) / x), t)

    @quiet
    def mean(self, theta: ArrayLike) -> np.ndarray:
        mu, _, nu = columns(theta)
        return np.where(nu > 1.0, mu, np.nan)

    @quiet
    def var(self, theta: ArrayLike) -> np.ndarray:
        _, sigma, nu = columns(theta)
        return np.where(nu > 2.0, sigma**2 * nu / (nu - 2.0), np.inf)

    def sample(self, theta: ArrayLike, size: int, rng: np.random.Generator) -> np.ndarray:
        mu, sigma, nu = (column[..., None] for column in columns(theta))
        return mu + sigma * rng.standard_t(np.broadcast_to(nu, (*nu.shape[:-1], size)))

    @quiet
    def crps(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, sigma, nu = columns(theta)
        gap = np.asarray(y, dtype=np.float64) - mu
        far = np.abs(gap) > _FAR * sigma
        z = np.where(far, 0.0, gap / sigma)
        density = np.exp(self.log_pdf(z, np.stack([0 * nu, 0 * nu + 1.0, nu], axis=-1)))
        # 2 sqrt(nu) B(1/2, nu - 1/2) / ((nu - 1) B(1/2, nu/2)^2)
        gini = np.exp(betaln(0.5, nu - 0.5) - 2.0 * betaln(0.5, 0.5 * nu))
        ends = 2.0 * np.sqrt(nu) / (nu - 1.0) * gini
        near = z * (stdtr(nu, z) - stdtr(nu, -z)) + 2.0 * density * (nu + z * z) / (nu - 1.0)
        score = np.where(far, np.abs(gap), sigma * near) - sigma * ends
        return np.where(nu > 1.0, score, np.inf)


@njit
def _kernel(y, raw, score, fisher, far):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        inverse = math.exp(-raw[i, 1])
        nu = math.exp(raw[i, 2])
        gap = y[i] - raw[i, 0]
        z = gap * inverse
        if abs(z) > far:
            score[i, 0] = (nu + 1.0) / gap
            score[i, 1] = nu
            log_term = 2.0 * (math.log(abs(gap)) - raw[i, 1]) - raw[i, 2]
        else:
            pull = (nu + 1.0) / (nu + z * z)
            score[i, 0] = pull * z * inverse
            score[i, 1] = pull * z * z - 1.0
            log_term = math.log1p(z * z / nu)
        slope = digamma(0.5 * (nu + 1.0)) - digamma(0.5 * nu) - log_term
        score[i, 2] = 0.5 * nu * (slope + score[i, 1] / nu)
        fisher[i, 0] = (nu + 1.0) / (nu + 3.0) * inverse * inverse
        fisher[i, 1] = 2.0 * nu / (nu + 3.0)
        bend = 0.25 * (trigamma(0.5 * nu) - trigamma(0.5 * (nu + 1.0)))
        fisher[i, 2] = nu * nu * (bend - (nu + 5.0) / (2.0 * nu * (nu + 1.0) * (nu + 3.0)))
