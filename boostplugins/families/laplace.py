"""Laplace distribution by location and scale."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from boostplugins._jit import njit
from boostplugins.families._common import LEAST_SPREAD, columns, quiet, run, within
from boostplugins.families._quantile import weighted_quantile
from boostplugins.families.base import Family
from boostplugins.links import Identity, Log


@dataclass(frozen=True)
class Laplace(Family):
    r"""Laplace distribution, theta = (mu, b), raw = (mu, log b).

    .. math:: \log p = -\log 2 b - |z|, \quad z = (y - \mu) / b

    Fisher information: :math:`(1 / b^2,\ 1)`.

    Examples
    --------
    >>> from boostplugins.families import get_family
    >>> float(get_family("laplace").var([0.0, 2.0]))
    8.0
    """

    name = "laplace"
    aliases = ("LA",)
    params = ("mu", "b")
    links = (Identity(), Log())
    locations = (0,)
    scales = (1,)

    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return run(self, _kernel, y, raw)

    def init(
        self, y: np.ndarray, weight: np.ndarray | None = None, offset: np.ndarray | None = None
    ) -> np.ndarray:
        y = np.asarray(y, dtype=np.float64)
        y = y if offset is None else y - np.asarray(offset, dtype=np.float64)
        weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
        middle = weighted_quantile(y, weight, 0.5)
        b = float(np.average(np.abs(y - middle), weights=weight))
        return np.array([middle, math.log(max(b, LEAST_SPREAD * max(abs(middle), 1e-77)))])

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, b = columns(theta)
        y = np.asarray(y, dtype=np.float64)
        return within(np.isfinite(y), -np.log(2.0 * b) - np.abs((y - mu) / b))

    @quiet
    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, b = columns(theta)
        z = (np.asarray(y) - mu) / b
        half = 0.5 * np.exp(-np.abs(z))
        return np.where(z < 0, half, 1.0 - half)

    @quiet
    def sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, b = columns(theta)
        z = (np.asarray(y) - mu) / b
        half = 0.5 * np.exp(-np.abs(z))
        return np.where(z < 0, 1.0 - half, half)

    @quiet
    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, b = columns(theta)
        q = np.asarray(q, dtype=np.float64)
        return mu + b * np.where(q < 0.5, np.log(2.0 * q), -np.log(2.0 * (1.0 - q)))

    @quiet
    def mean(self, theta: ArrayLike) -> np.ndarray:
        return columns(theta)[0].copy()

    @quiet
    def var(self, theta: ArrayLike) -> np.ndarray:
        return 2.0 * columns(theta)[1] ** 2

    @quiet
    def crps(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, b = columns(theta)
        gap = np.abs(np.asarray(y, dtype=np.float64) - mu)
        return gap + b * (np.exp(-gap / b) - 0.75)


@njit
def _kernel(y, raw, score, fisher):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        inverse = math.exp(-raw[i, 1])
        z = (y[i] - raw[i, 0]) * inverse
        score[i, 0] = np.sign(z) * inverse
        score[i, 1] = abs(z) - 1.0
        fisher[i, 0] = inverse * inverse
        fisher[i, 1] = 1.0
