"""Logistic distribution by location and scale."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, logit

from boostplugins._jit import njit
from boostplugins.families._common import columns, quiet, run, spread, within
from boostplugins.families.base import Family
from boostplugins.links import Identity, Log


@dataclass(frozen=True)
class Logistic(Family):
    r"""Logistic distribution, theta = (mu, s), raw = (mu, log s).

    .. math:: \log p = -z - \log s - 2 \log(1 + e^{-z}), \quad z = (y - \mu) / s

    Fisher information: :math:`(1 / 3 s^2,\ (3 + \pi^2) / 9)`.

    Examples
    --------
    >>> from boostplugins.families import get_family
    >>> round(float(get_family("logistic").var([0.0, 1.0])), 4)
    3.2899
    """

    name = "logistic"
    aliases = ("LO",)
    params = ("mu", "s")
    links = (Identity(), Log())
    locations = (0,)
    scales = (1,)

    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return run(self, _kernel, y, raw)

    def _guess(self, y: np.ndarray, weight: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
        mean, sd = spread(y if offset is None else y - offset, weight)
        return np.array([mean, math.log(sd * math.sqrt(3.0) / math.pi)])

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, s = columns(theta)
        y = np.asarray(y, dtype=np.float64)
        z = np.abs(y - mu) / s
        return within(np.isfinite(y), -z - np.log(s) - 2.0 * np.log1p(np.exp(-z)))

    @quiet
    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, s = columns(theta)
        return expit((np.asarray(y) - mu) / s)

    @quiet
    def sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, s = columns(theta)
        return expit((mu - np.asarray(y)) / s)

    @quiet
    def log_cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, s = columns(theta)
        return log_expit((np.asarray(y) - mu) / s)

    @quiet
    def log_sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, s = columns(theta)
        return log_expit((mu - np.asarray(y)) / s)

    @quiet
    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, s = columns(theta)
        return mu + s * logit(np.asarray(q, dtype=np.float64))

    @quiet
    def mean(self, theta: ArrayLike) -> np.ndarray:
        return columns(theta)[0].copy()

    @quiet
    def var(self, theta: ArrayLike) -> np.ndarray:
        return (columns(theta)[1] * math.pi) ** 2 / 3.0

    @quiet
    def crps(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, s = columns(theta)
        gap = np.abs(np.asarray(y, dtype=np.float64) - mu)
        return gap + s * (2.0 * np.log1p(np.exp(-gap / s)) - 1.0)


@njit
def _kernel(y, raw, score, fisher):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        inverse = math.exp(-raw[i, 1])
        z = (y[i] - raw[i, 0]) * inverse
        t = math.tanh(0.5 * z)
        score[i, 0] = t * inverse
        score[i, 1] = z * t - 1.0
        fisher[i, 0] = inverse * inverse / 3.0
        fisher[i, 1] = (3.0 + math.pi**2) / 9.0
