"""Gumbel distribution of maxima by location and scale."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import exp1

from boostplugins._jit import njit
from boostplugins.families._common import columns, quiet, run, spread, within
from boostplugins.families.base import Family
from boostplugins.links import Identity, Log

_EULER = float(np.euler_gamma)
# Largest exponent of e**(-z) in the score: the last before floats overflow.
_MOST = 709.0


@dataclass(frozen=True)
class Gumbel(Family):
    r"""Gumbel distribution of maxima, theta = (mu, beta), raw = (mu, log beta).

    .. math:: \log p = -\log\beta - z - e^{-z}, \quad z = (y - \mu) / \beta

    GAMLSS calls it RG, the reverse Gumbel. Fisher information: diagonal
    :math:`(1 / \beta^2,\ \pi^2/6 + (1 - \gamma)^2)`, off-diagonal
    :math:`(\gamma - 1) / \beta`.

    Examples
    --------
    >>> from boostplugins.families import get_family
    >>> round(float(get_family("RG").mean([0.0, 1.0])), 4)
    0.5772
    """

    name = "gumbel"
    aliases = ("RG",)
    params = ("mu", "beta")
    links = (Identity(), Log())
    locations = (0,)
    scales = (1,)

    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return run(self, _kernel, y, raw, _EULER, _MOST)

    def fisher_matrix(self, raw: np.ndarray) -> np.ndarray:
        inverse = 1.0 / self.theta(raw)[:, 1]
        matrix = np.empty((len(raw), 2, 2))
        matrix[:, 0, 0] = inverse**2
        matrix[:, 0, 1] = matrix[:, 1, 0] = (_EULER - 1.0) * inverse
        matrix[:, 1, 1] = math.pi**2 / 6.0 + (1.0 - _EULER) ** 2
        return matrix

    def _guess(self, y: np.ndarray, weight: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
        mean, sd = spread(y if offset is None else y - offset, weight)
        beta = sd * math.sqrt(6.0) / math.pi
        return np.array([mean - _EULER * beta, math.log(beta)])

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, beta = columns(theta)
        y = np.asarray(y, dtype=np.float64)
        z = (y - mu) / beta
        # The exponential outgrows a z that overflows.
        return within(np.isfinite(y), -np.log(beta) - np.where(z == -np.inf, 0.0, z) - np.exp(-z))

    @quiet
    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, beta = columns(theta)
        return np.exp(-np.exp((mu - np.asarray(y)) / beta))

    @quiet
    def log_cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, beta = columns(theta)
        return -np.exp((mu - np.asarray(y)) / beta)

    @quiet
    def sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, beta = columns(theta)
        return -np.expm1(-np.exp((mu - np.asarray(y)) / beta))

    @quiet
    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, beta = columns(theta)
        return mu - beta * np.log(-np.log(np.asarray(q, dtype=np.float64)))

    @quiet
    def mean(self, theta: ArrayLike) -> np.ndarray:
        mu, beta = columns(theta)
        return mu + _EULER * beta

    @quiet
    def var(self, theta: ArrayLike) -> np.ndarray:
        return (columns(theta)[1] * math.pi) ** 2 / 6.0

    @quiet
    def crps(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, beta = columns(theta)
        gap = np.asarray(y, dtype=np.float64) - mu
        z = gap / beta
        # -2 Ei(-e**-z) = 2 E1(e**-z); E1(x) = -log x - gamma for the smallest x.
        far = z > 300.0
        e1 = np.where(far, -_EULER, exp1(np.exp(-np.where(far, 0.0, z))))
        return np.where(far, gap, -gap) + beta * (2.0 * e1 + _EULER - math.log(2.0))


@njit
def _kernel(y, raw, score, fisher, euler, most):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        inverse = math.exp(-raw[i, 1])
        z = (y[i] - raw[i, 0]) * inverse
        pull = 1.0 - math.exp(min(-z, most))
        score[i, 0] = pull * inverse
        score[i, 1] = z * pull - 1.0
        fisher[i, 0] = inverse * inverse
        fisher[i, 1] = math.pi**2 / 6.0 + (1.0 - euler) ** 2
