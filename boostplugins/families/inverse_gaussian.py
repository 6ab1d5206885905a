"""Inverse Gaussian distribution by mean and shape."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr

from boostplugins._jit import njit
from boostplugins.families._common import columns, quiet, run, spread
from boostplugins.families._invert import invert_positive
from boostplugins.families.base import Family
from boostplugins.families.support import Support
from boostplugins.links import Log


@dataclass(frozen=True)
class InverseGaussian(Family):
    r"""Inverse Gaussian distribution, theta = (mu, lam), raw = (log mu, log lam).

    .. math:: \log p = \tfrac12 \log\frac{\lambda}{2\pi y^3}
              - \frac{\lambda (y - \mu)^2}{2 \mu^2 y}

    GAMLSS's IG has sigma = 1 / sqrt(lam). Fisher information: :math:`(\lambda / \mu,\ 1/2)`.

    Examples
    --------
    >>> from boostplugins.families import get_family
    >>> float(get_family("IG").var([2.0, 4.0]))
    2.0
    """

    name = "inverse_gaussian"
    aliases = ("IG",)
    params = ("mu", "lam")
    links = (Log(-60.0, 60.0), Log(-60.0, 60.0))
    support = Support(0.0)
    scales = (0, 1)

    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return run(self, _kernel, y, raw)

    def _guess(self, y: np.ndarray, weight: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
        mean, sd = spread(y if offset is None else y * np.exp(-offset), weight)
        return np.array([math.log(mean), 3.0 * math.log(mean) - 2.0 * math.log(sd)])

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, lam = columns(theta)
        y = np.asarray(y, dtype=np.float64)
        inside = self.support.contains(y)
        good = np.where(inside, y, 1.0)
        density = 0.5 * (np.log(lam / (2.0 * math.pi)) - 3.0 * np.log(good))
        density = density - 0.5 * lam / good * (good / mu - 1.0) ** 2
        return np.where(inside, density, -np.inf)

    def _tails(self, y: ArrayLike, theta: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        mu, lam = columns(theta)
        t = np.maximum(np.asarray(y, dtype=np.float64), 1e-300)
        root = np.sqrt(lam / t)
        far = np.exp(2.0 * lam / mu + log_ndtr(-root * (t / mu + 1.0)))
        return root * (t / mu - 1.0), far, np.asarray(y) > 0

    @quiet
    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        z, far, inside = self._tails(y, theta)
        return np.where(inside, np.minimum(ndtr(z) + far, 1.0), 0.0)

    @quiet
    def sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        z, far, inside = self._tails(y, theta)
        return np.where(inside, np.maximum(ndtr(-z) - far, 0.0), 1.0)

    @quiet
    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, lam = columns(theta)
        q, mu, lam = np.broadcast_arrays(np.asarray(q, dtype=np.float64), mu, lam)
        flat, level = np.stack([mu.ravel(), lam.ravel()], axis=1), q.ravel()
        found = invert_positive(lambda x, i: self.cdf(x, flat[i]), level, flat[:, 0])
        return found.reshape(q.shape)

    @quiet
    def mean(self, theta: ArrayLike) -> np.ndarray:
        return columns(theta)[0].copy()

    @quiet
    def var(self, theta: ArrayLike) -> np.ndarray:
        mu, lam = columns(theta)
        return mu**3 / lam

    def sample(self, theta: ArrayLike, size: int, rng: np.random.Generator) -> np.ndarray:
        mu, lam = (column[..., None] for column in columns(theta))
        return rng.wald(mu, lam, size=(*mu.shape[:-1], size))


@njit
def _kernel(y, raw, score, fisher):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        mu = math.exp(raw[i, 0])
        lam = math.exp(raw[i, 1])
        gap = y[i] / mu - 1.0
        score[i, 0] = lam / mu * gap
        score[i, 1] = 0.5 * (1.0 - lam / y[i] * gap * gap)
        fisher[i, 0] = lam / mu
        fisher[i, 1] = 0.5
