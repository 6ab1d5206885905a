"""Inverse Gaussian distribution by mean and shape."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx

from boostplugins._jit import njit
from boostplugins.families._common import columns, quiet, run, spread, within
from boostplugins.families._invert import invert_positive
from boostplugins.families.base import Family
from boostplugins.families.support import Support
from boostplugins.links import Log

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


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
        # In this order no product overflows before its square does.
        z = np.sqrt(lam) * ((good - mu) / np.sqrt(good) / mu)
        return within(inside, density - 0.5 * z**2)

    def _tails(self, y: ArrayLike, theta: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sign of y - mu, and the logs of both tails: the outer one and the rest.

        With z = sqrt(lam / y) (y / mu - 1) and w = sqrt(lam / y) (y / mu + 1) both are the normal density
        at z times a sum or difference of Mills ratios at abs(z) and w, free of the usual exp(2 lam / mu).
        """
        mu, lam = columns(theta)
        t = np.maximum(np.asarray(y, dtype=np.float64), np.finfo(float).tiny)
        z = np.sqrt(lam) * ((t - mu) / np.sqrt(t) / mu)
        w = np.sqrt(lam) * ((t + mu) / np.sqrt(t) / mu)
        near, far = _mills(np.abs(z)), _mills(w)
        # Ratios at points as good as equal differ by the step times the slope 1 - z M(z).
        slope = np.where(z > 1e3, 1.0 / (z * z), 1.0 - z * near)
        step = 2.0 * np.sqrt(lam) / np.sqrt(t)
        gap = np.where(step < 1e-8 * np.maximum(z, 1.0), step * slope, near - far)
        log_outer = -0.5 * z * z - _HALF_LOG_2PI + np.log(np.where(z > 0, gap, near + far))
        outer = np.minimum(np.exp(log_outer), 1.0)
        return z > 0, np.minimum(log_outer, 0.0), np.log1p(-outer)

    @quiet
    def log_cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        above, outer, rest = self._tails(y, theta)
        return np.where(np.asarray(y) > 0, np.where(above, rest, outer), -np.inf)

    @quiet
    def log_sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        above, outer, rest = self._tails(y, theta)
        return np.where(np.asarray(y) > 0, np.where(above, outer, rest), 0.0)

    @quiet
    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        return np.exp(self.log_cdf(y, theta))

    @quiet
    def sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        return np.exp(self.log_sf(y, theta))

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


def _mills(z: np.ndarray) -> np.ndarray:
    """Tail of the standard normal over its density, for z >= 0."""
    return math.sqrt(0.5 * math.pi) * erfcx(z / math.sqrt(2.0))


@njit
def _kernel(y, raw, score, fisher):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        mu = math.exp(raw[i, 0])
        lam = math.exp(raw[i, 1])
        gap = y[i] - mu
        z = math.sqrt(lam) * (gap / math.sqrt(y[i]) / mu)
        score[i, 0] = lam / mu * gap / mu
        score[i, 1] = 0.5 * (1.0 - z * z)
        fisher[i, 0] = lam / mu
        fisher[i, 1] = 0.5
