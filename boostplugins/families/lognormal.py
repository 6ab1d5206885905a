"""Log-normal distribution by mean and standard deviation of the logarithm."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, log_ndtr, ndtr, ndtri

from boostplugins._jit import njit
from boostplugins.families._common import LARGEST, columns, quiet, run, spread, within
from boostplugins.families.base import Family
from boostplugins.families.support import Support
from boostplugins.links import Identity, Log

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True)
class LogNormal(Family):
    r"""Log-normal distribution: log Y is Normal; theta = (mu, sigma), raw = (mu, log sigma).

    Fisher information: :math:`(1 / \sigma^2,\ 2)`.

    Examples
    --------
    >>> from boostplugins.families import get_family
    >>> round(float(get_family("LOGNO").mean([0.0, 1.0])), 4)
    1.6487
    """

    name = "lognormal"
    aliases = ("LOGNO",)
    params = ("mu", "sigma")
    links = (Identity(), Log())
    support = Support(0.0)

    @property
    def equivariance(self) -> str | None:
        return "scale"

    def rescale(self, theta: ArrayLike, scale: float, shift: float = 0.0) -> np.ndarray:
        if shift != 0:
            raise ValueError(f"family {self.name} does not follow y -> {scale:g} y + {shift:g}")
        return np.asarray(theta, dtype=np.float64) + np.array([math.log(scale), 0.0])

    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return run(self, _kernel, y, raw)

    def init(
        self, y: np.ndarray, weight: np.ndarray | None = None, offset: np.ndarray | None = None
    ) -> np.ndarray:
        logs = np.log(np.asarray(y, dtype=np.float64))
        logs = logs if offset is None else logs - np.asarray(offset, dtype=np.float64)
        mean, sd = spread(
            logs, np.ones(len(logs)) if weight is None else np.asarray(weight, dtype=np.float64)
        )
        return np.array([mean, math.log(sd)])

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, sigma = columns(theta)
        y = np.asarray(y, dtype=np.float64)
        inside = self.support.contains(y)
        logs = np.log(np.where(inside, y, 1.0))
        density = -logs - np.log(sigma) - _HALF_LOG_2PI - 0.5 * ((logs - mu) / sigma) ** 2
        return within(inside, density)

    def _z(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, sigma = columns(theta)
        return (np.log(np.maximum(np.asarray(y, dtype=np.float64), 0.0)) - mu) / sigma

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
        mu, sigma = columns(theta)
        return np.exp(mu + sigma * ndtri(np.asarray(q, dtype=np.float64)))

    @quiet
    def mean(self, theta: ArrayLike) -> np.ndarray:
        mu, sigma = columns(theta)
        return np.exp(mu + 0.5 * sigma**2)

    @quiet
    def var(self, theta: ArrayLike) -> np.ndarray:
        mu, sigma = columns(theta)
        return np.exp(2.0 * mu + sigma**2) * np.expm1(sigma**2)

    @quiet
    def crps(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        # y (2 F(y) - 1) - 2 m Phi(z - sigma) + 2 m Phi(-sigma / sqrt 2): the mean m = exp(mu + sigma^2 / 2)
        # overflows long before the products do: exp(sigma^2 / 2) Phi(-x) goes by erfcx.
        mu, sigma = columns(theta)
        y = np.asarray(y, dtype=np.float64)
        t, z = np.maximum(y, 0.0), self._z(y, theta)
        above = z > sigma
        gap = np.where(above, 0.0, sigma - z) / math.sqrt(2.0)
        below = np.where(t > 0, t * np.exp(-0.5 * z * z), 0.0) * erfcx(gap)
        half = np.where(above, 2.0 * np.exp(mu + 0.5 * sigma**2) * ndtr(z - sigma), below)
        gini = np.exp(mu + 0.25 * sigma**2 + np.log(erfcx(0.5 * sigma)))
        score = t * (2.0 * ndtr(z) - 1.0) - half + gini
        return np.clip(score, 0.0, LARGEST) + np.maximum(-y, 0.0)


@njit
def _kernel(y, raw, score, fisher):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        inverse = math.exp(-raw[i, 1])
        z = (math.log(y[i]) - raw[i, 0]) * inverse
        score[i, 0] = z * inverse
        score[i, 1] = z * z - 1.0
        fisher[i, 0] = inverse * inverse
        fisher[i, 1] = 2.0
