"""Bernoulli distribution by the probability of 1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlog1py, xlogy

from boostplugins._jit import njit
from boostplugins.families._common import columns, quiet, run
from boostplugins.families._special import expit
from boostplugins.families.base import Family
from boostplugins.families.support import Support
from boostplugins.links import Logit


@dataclass(frozen=True)
class Bernoulli(Family):
    r"""Bernoulli distribution, theta = (p,), raw = (logit p,).

    Fisher information: p (1 - p). The CRPS is the Brier score, (y - p)^2.

    Examples
    --------
    >>> from boostplugins.families import get_family
    >>> get_family("BI").probabilities([[0.25]])
    array([[0.75, 0.25]])
    """

    name = "bernoulli"
    aliases = ("BI", "binary")
    params = ("p",)
    links = (Logit(),)
    support = Support(0.0, 1.0, closed_low=True, closed_high=True, integer=True)
    discrete = True
    classification = True

    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return run(self, _kernel, y, raw)

    def _guess(self, y: np.ndarray, weight: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
        total = weight.sum()
        # A class without a case gets half a case.
        ones = np.clip(weight @ y, 0.5 * weight.max(), total - 0.5 * weight.max()) if total > 0 else 0.5
        share = float(np.clip(ones / total, 1e-12, 1.0 - 1e-12))
        return np.array([math.log(share / (1.0 - share))])

    def init(
        self, y: np.ndarray, weight: np.ndarray | None = None, offset: np.ndarray | None = None
    ) -> np.ndarray:
        y = np.asarray(y, dtype=np.float64)
        weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
        seen = y[weight > 0]
        if offset is None or (seen == seen[0]).all():
            return self._guess(y, weight, offset)
        return super().init(y, weight, offset)

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        (p,) = columns(theta)
        y = np.asarray(y, dtype=np.float64)
        density = xlogy(y, p) + xlog1py(1.0 - y, -p)
        return np.where((y == 0) | (y == 1), density, -np.inf)

    @quiet
    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        (p,) = columns(theta)
        y = np.asarray(y, dtype=np.float64)
        return np.where(y < 0, 0.0, np.where(y < 1, 1.0 - p, 1.0))

    @quiet
    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        (p,) = columns(theta)
        return np.where(np.asarray(q, dtype=np.float64) > 1.0 - p, 1.0, 0.0)

    @quiet
    def mean(self, theta: ArrayLike) -> np.ndarray:
        return columns(theta)[0].copy()

    @quiet
    def var(self, theta: ArrayLike) -> np.ndarray:
        (p,) = columns(theta)
        return p * (1.0 - p)

    @quiet
    def crps(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        (p,) = columns(theta)
        y = np.asarray(y, dtype=np.float64)
        # The integral of (F - 1{x >= y})^2 for any y; (y - p)^2 for 0 and 1.
        below = (1.0 - p) ** 2 * np.clip(y, 0.0, 1.0) + p**2 * (1.0 - np.clip(y, 0.0, 1.0))
        return below + np.maximum(-y, 0.0) + np.maximum(y - 1.0, 0.0)

    def probabilities(self, theta: ArrayLike) -> np.ndarray:
        (p,) = columns(theta)
        return np.stack([1.0 - p, p], axis=-1)


@njit
def _kernel(y, raw, score, fisher):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        p, rest = expit(raw[i, 0]), expit(-raw[i, 0])
        score[i, 0] = y[i] * rest - (1.0 - y[i]) * p
        fisher[i, 0] = p * rest
