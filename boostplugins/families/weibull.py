"""Weibull distribution by scale and shape."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gamma as gamma_function
from scipy.special import gammainc

from boostplugins._jit import njit
from boostplugins.families._common import columns, quiet, run, spread, within
from boostplugins.families.base import Family
from boostplugins.families.support import Support
from boostplugins.links import Log

_EULER = float(np.euler_gamma)
# Below shape 0.02 the mean, Gamma(1 + 1 / shape), exceeds 1e64 scales.
_SHAPES = Log(math.log(0.02), math.log(1e8))


@dataclass(frozen=True)
class Weibull(Family):
    r"""Weibull distribution, theta = (scale, shape), raw = (log scale, log shape).

    .. math:: \log p = \log k - \log y + \log t - t, \quad t = (y / \lambda)^k

    Fisher information: diagonal :math:`(k^2,\ \pi^2/6 + (1 - \gamma)^2)`, off-diagonal
    :math:`k (\gamma - 1)`.

    Examples
    --------
    >>> from boostplugins.families import get_family
    >>> float(get_family("WEI").mean([2.0, 1.0]))
    2.0
    """

    name = "weibull"
    aliases = ("WEI",)
    params = ("scale", "shape")
    links = (Log(), _SHAPES)
    support = Support(0.0)
    scales = (0,)

    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return run(self, _kernel, y, raw, _EULER)

    def fisher_matrix(self, raw: np.ndarray) -> np.ndarray:
        matrix = super().fisher_matrix(raw)
        matrix[:, 0, 1] = matrix[:, 1, 0] = (_EULER - 1.0) * self.theta(raw)[:, 1]
        return matrix

    def _guess(self, y: np.ndarray, weight: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
        logs = np.log(y) if offset is None else np.log(y) - offset
        mean, sd = spread(logs, weight)
        inverse = sd * math.sqrt(6.0) / math.pi
        return np.array([mean + _EULER * inverse, -math.log(inverse)])

    def _log_ratio(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        scale, shape = columns(theta)
        y = np.asarray(y, dtype=np.float64)
        return shape * (np.log(np.maximum(y, 0.0)) - np.log(scale))

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        y = np.asarray(y, dtype=np.float64)
        inside = self.support.contains(y)
        good = np.where(inside, y, 1.0)
        ratio = self._log_ratio(good, theta)
        density = np.log(columns(theta)[1]) - np.log(good) + ratio - np.exp(ratio)
        return within(inside, density)

    @quiet
    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        return -np.expm1(-np.exp(self._log_ratio(y, theta)))

    @quiet
    def sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        return np.exp(-np.exp(self._log_ratio(y, theta)))

    @quiet
    def log_sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        return -np.exp(self._log_ratio(y, theta))

    @quiet
    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        scale, shape = columns(theta)
        return scale * (-np.log1p(-np.asarray(q, dtype=np.float64))) ** (1.0 / shape)

    @quiet
    def mean(self, theta: ArrayLike) -> np.ndarray:
        scale, shape = columns(theta)
        return scale * gamma_function(1.0 + 1.0 / shape)

    @quiet
    def var(self, theta: ArrayLike) -> np.ndarray:
        scale, shape = columns(theta)
        first, second = gamma_function(1.0 + 1.0 / shape), gamma_function(1.0 + 2.0 / shape)
        # For large shapes the difference cancels; pi^2 / (6 k^2) is its limit.
        return scale**2 * np.where(shape > 1e5, math.pi**2 / (6.0 * shape**2), second - first**2)

    @quiet
    def crps(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        _, shape = columns(theta)
        y = np.asarray(y, dtype=np.float64)
        t = np.exp(self._log_ratio(y, theta))
        share = 2.0 * gammainc(1.0 + 1.0 / shape, t) - 2.0 ** (-1.0 / shape)
        near = np.maximum(y, 0.0) * (2.0 * self.cdf(y, theta) - 1.0)
        return near - self.mean(theta) * share + np.maximum(-y, 0.0)


@njit
def _kernel(y, raw, score, fisher, euler):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        k = math.exp(raw[i, 1])
        log_t = k * (math.log(y[i]) - raw[i, 0])
        excess = math.expm1(min(log_t, 709.0))  # the last before floats overflow
        score[i, 0] = k * excess
        score[i, 1] = 1.0 - log_t * excess
        fisher[i, 0] = k * k
        fisher[i, 1] = math.pi**2 / 6.0 + (1.0 - euler) ** 2
