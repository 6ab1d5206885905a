"""Exponential distribution by its mean."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from boostplugins._jit import njit
from boostplugins.families._common import columns, quiet, run, within
from boostplugins.families.base import Family
from boostplugins.families.support import Support
from boostplugins.links import Log


@dataclass(frozen=True)
class Exponential(Family):
    r"""Exponential distribution, theta = (mu,), raw = (log mu,).

    .. math:: \log p = -\log\mu - y / \mu

    Fisher information: 1.

    Examples
    --------
    >>> from boostplugins.families import get_family
    >>> float(get_family("EXP").var([3.0]))
    9.0
    """

    name = "exponential"
    aliases = ("EXP",)
    params = ("mu",)
    links = (Log(),)
    support = Support(0.0, closed_low=True)
    scales = (0,)

    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return run(self, _kernel, y, raw)

    def _guess(self, y: np.ndarray, weight: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
        mean = np.average(y if offset is None else y * np.exp(-offset), weights=weight)
        return np.array([math.log(max(mean, 1e-65))])

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        (mu,) = columns(theta)
        y = np.asarray(y, dtype=np.float64)
        return within(self.support.contains(y), -np.log(mu) - y / mu)

    @quiet
    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        (mu,) = columns(theta)
        return -np.expm1(-np.maximum(np.asarray(y), 0.0) / mu)

    @quiet
    def sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        (mu,) = columns(theta)
        return np.exp(-np.maximum(np.asarray(y), 0.0) / mu)

    @quiet
    def log_sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        (mu,) = columns(theta)
        return -np.maximum(np.asarray(y), 0.0) / mu

    @quiet
    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        (mu,) = columns(theta)
        return -mu * np.log1p(-np.asarray(q, dtype=np.float64))

    @quiet
    def mean(self, theta: ArrayLike) -> np.ndarray:
        return columns(theta)[0].copy()

    @quiet
    def var(self, theta: ArrayLike) -> np.ndarray:
        return columns(theta)[0] ** 2

    @quiet
    def crps(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        (mu,) = columns(theta)
        y = np.asarray(y, dtype=np.float64)
        t = np.maximum(y, 0.0)
        return t + mu * (2.0 * np.expm1(-t / mu) + 0.5) + np.maximum(-y, 0.0)


@njit
def _kernel(y, raw, score, fisher):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        score[i, 0] = y[i] * math.exp(-raw[i, 0]) - 1.0
        fisher[i, 0] = 1.0
