"""Beta distribution by mean and precision."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincc, betainccinv, betaincinv, betaln, xlog1py, xlogy

from boostplugins._jit import njit
from boostplugins.families._common import columns, quiet, run, spread, within
from boostplugins.families._special import digamma, expit, trigamma
from boostplugins.families.base import Family
from boostplugins.families.support import Support
from boostplugins.links import Log, Logit

# Means and precisions whose two shapes mu phi and (1 - mu) phi stay within [1e-12, 1e8].
_MEANS = Logit(-20.0, 20.0)
_PRECISIONS = Log(math.log(1e-3), math.log(1e8))

_ENDS = float(np.nextafter(0.0, 1.0)), float(np.nextafter(1.0, 0.0))


@dataclass(frozen=True)
class Beta(Family):
    r"""Beta distribution on (0, 1), theta = (mu, phi), raw = (logit mu, log phi).

    The usual shapes are a = mu phi and b = (1 - mu) phi; the variance is
    mu (1 - mu) / (1 + phi). GAMLSS's BE has sigma^2 = 1 / (1 + phi).

    Examples
    --------
    >>> from boostplugins.families import get_family
    >>> float(get_family("BE").var([0.5, 3.0]))
    0.0625
    """

    name = "beta"
    aliases = ("BE",)
    params = ("mu", "phi")
    links = (_MEANS, _PRECISIONS)
    support = Support(0.0, 1.0)

    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return run(self, _kernel, y, raw)

    def fisher_matrix(self, raw: np.ndarray) -> np.ndarray:
        raw = np.asarray(raw, dtype=np.float64)
        matrix = super().fisher_matrix(raw)
        for i, (mu, phi) in enumerate(self.theta(raw)):
            cross = mu * trigamma(mu * phi) - (1.0 - mu) * trigamma((1.0 - mu) * phi)
            matrix[i, 0, 1] = matrix[i, 1, 0] = phi * phi * mu * (1.0 - mu) * cross
        return matrix

    def _guess(self, y: np.ndarray, weight: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
        mean, sd = spread(y, weight)
        return self.raw(np.array([mean, max(mean * (1.0 - mean) / sd**2 - 1.0, 0.1)]))

    def _shapes(self, theta: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        mu, phi = columns(theta)
        return mu * phi, (1.0 - mu) * phi

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        a, b = self._shapes(theta)
        y = np.asarray(y, dtype=np.float64)
        inside = (y > 0) & (y < 1)
        good = np.where(inside, y, 0.5)
        density = xlogy(a - 1.0, good) + xlog1py(b - 1.0, -good) - betaln(a, b)
        return within(inside, density)

    @quiet
    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        a, b = self._shapes(theta)
        return betainc(a, b, np.clip(y, 0.0, 1.0))

    @quiet
    def sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        a, b = self._shapes(theta)
        return betaincc(a, b, np.clip(y, 0.0, 1.0))

    @quiet
    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        a, b = self._shapes(theta)
        q = np.asarray(q, dtype=np.float64)
        return np.where(q < 0.5, betaincinv(a, b, q), betainccinv(a, b, 1.0 - q))

    @quiet
    def mean(self, theta: ArrayLike) -> np.ndarray:
        return columns(theta)[0].copy()

    @quiet
    def var(self, theta: ArrayLike) -> np.ndarray:
        mu, phi = columns(theta)
        return mu * (1.0 - mu) / (1.0 + phi)

    def sample(self, theta: ArrayLike, size: int, rng: np.random.Generator) -> np.ndarray:
        a, b = (shape[..., None] for shape in self._shapes(theta))
        # Draws nearer to 0 or 1 than any float are the nearest floats between.
        return np.clip(rng.beta(a, b, size=(*a.shape[:-1], size)), *_ENDS)

    @quiet
    def crps(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        a, b = self._shapes(theta)
        y = np.asarray(y, dtype=np.float64)
        t = np.clip(y, 0.0, 1.0)
        near = t * (2.0 * betainc(a, b, t) - 1.0) + a / (a + b) * (1.0 - 2.0 * betainc(a + 1.0, b, t))
        gini = 2.0 / (a + b) * np.exp(betaln(a + b, a + b) - betaln(a, a) - betaln(b, b))
        return near - gini + np.abs(y - t)


@njit
def _kernel(y, raw, score, fisher):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        mu = expit(raw[i, 0])
        rest = expit(-raw[i, 0])
        phi = math.exp(raw[i, 1])
        a, b = mu * phi, rest * phi
        log_y, log_rest = math.log(y[i]), math.log1p(-y[i])
        digamma_a, digamma_b = digamma(a), digamma(b)
        slope = phi * mu * rest
        score[i, 0] = slope * (log_y - log_rest - digamma_a + digamma_b)
        tilt = mu * (log_y - digamma_a) + rest * (log_rest - digamma_b)
        score[i, 1] = phi * (tilt + digamma(phi))
        trigamma_a, trigamma_b = trigamma(a), trigamma(b)
        fisher[i, 0] = slope * slope * (trigamma_a + trigamma_b)
        bend = mu * mu * trigamma_a + rest * rest * trigamma_b - trigamma(phi)
        fisher[i, 1] = phi * phi * bend
