"""Negative binomial distribution by mean and size."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincc, betaln, gammaln, xlogy

from boostplugins._jit import njit
from boostplugins.families._common import columns, quiet, run, spread, within
from boostplugins.families._invert import invert_integer
from boostplugins.families._special import log1p_minus, log_minus_digamma
from boostplugins.families._tables import interpolate, negative_binomial_table
from boostplugins.families.base import Family
from boostplugins.families.support import Support
from boostplugins.links import Log

_MEANS = Log(-100.0, math.log(1e12))
# Size 1e8 is a Poisson for all means that matter; size 1e-8 a near certain zero.
_SIZES = Log(math.log(1e-8), math.log(1e8))


@dataclass(frozen=True)
class NegativeBinomial(Family):
    r"""Negative binomial distribution, theta = (mu, size), raw = (log mu, log size).

    The variance is mu + mu^2 / size; GAMLSS's NBI has sigma = 1 / size. Mean and size are
    orthogonal. The Fisher information of the size, :math:`k^2 (\psi'(k) - E \psi'(k + Y)
    - \mu / (k (k + \mu)))`, comes from a table good to four digits.

    Examples
    --------
    >>> from boostplugins.families import get_family
    >>> float(get_family("NBI").var([2.0, 4.0]))
    3.0
    """

    name = "negative_binomial"
    aliases = ("NBI",)
    params = ("mu", "size")
    links = (_MEANS, _SIZES)
    support = Support(0.0, closed_low=True, integer=True)
    discrete = True

    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return run(self, _kernel, y, raw, *negative_binomial_table())

    def _guess(self, y: np.ndarray, weight: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
        exposure = 1.0 if offset is None else np.average(np.exp(offset), weights=weight)
        total = max(float(weight @ y), 0.5 * float(weight.max()))
        rate = total / weight.sum()
        excess = spread(y, weight)[1] ** 2 - rate
        return self.raw(np.array([rate / exposure, rate**2 / excess if excess > 0 else 100.0]))

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, k = columns(theta)
        y = np.asarray(y, dtype=np.float64)
        inside = self.support.contains(y)
        good = np.where(inside, y, 0.0)
        # Gamma(y + k) / (Gamma(k) y!) as a beta function keeps its digits for large sizes.
        huge = good > 1e200  # there, (k - 1) log y - log Gamma(k) to the last digit
        some = np.where(huge, 1.0, good)
        ways = -betaln(k, some + 1.0) - np.log(k + some)
        ways = np.where(huge, (k - 1.0) * np.log(np.maximum(good, 1.0)) - gammaln(k), ways)
        density = ways - k * np.log1p(mu / k) + xlogy(good, mu / (mu + k))
        return within(inside, density)

    @quiet
    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, k = columns(theta)
        y = np.floor(np.asarray(y, dtype=np.float64))
        return np.where(y < 0, 0.0, betaincc(np.maximum(y, 0.0) + 1.0, k, mu / (k + mu)))

    @quiet
    def sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, k = columns(theta)
        y = np.floor(np.asarray(y, dtype=np.float64))
        return np.where(y < 0, 1.0, betainc(np.maximum(y, 0.0) + 1.0, k, mu / (k + mu)))

    @quiet
    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, k = columns(theta)
        q, mu, k = np.broadcast_arrays(np.asarray(q, dtype=np.float64), mu, k)
        size, share = k.ravel(), (mu / (k + mu)).ravel()
        step = np.sqrt(mu + mu**2 / k).ravel()
        found = invert_integer(lambda x, i: betaincc(x + 1.0, size[i], share[i]), q.ravel(), mu.ravel(), step)
        return found.reshape(q.shape)

    @quiet
    def mean(self, theta: ArrayLike) -> np.ndarray:
        return columns(theta)[0].copy()

    @quiet
    def var(self, theta: ArrayLike) -> np.ndarray:
        mu, k = columns(theta)
        return mu + mu**2 / k

    def sample(self, theta: ArrayLike, size: int, rng: np.random.Generator) -> np.ndarray:
        mu, k = (column[..., None] for column in columns(theta))
        rate = mu / k * rng.standard_gamma(np.broadcast_to(k, (*k.shape[:-1], size)))
        return rng.poisson(np.minimum(rate, 1e15)).astype(np.float64)


@njit
def _kernel(y, raw, score, fisher, table, corner, step):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        mu = math.exp(raw[i, 0])
        k = math.exp(raw[i, 1])
        share = k / (k + mu)
        score[i, 0] = (y[i] - mu) * share
        fisher[i, 0] = mu * share
        excess = (y[i] - mu) / (k + mu)
        # log(1 + excess) - excess, where the sum may round to 0.
        near = log1p_minus(excess) if abs(excess) < 0.05 else math.log(k + y[i]) - math.log(k + mu) - excess
        slope = near + log_minus_digamma(k) - log_minus_digamma(k + y[i])
        score[i, 1] = k * slope
        fisher[i, 1] = math.exp(interpolate(table, corner, step, raw[i, 0], raw[i, 1]))
