"""Categorical distribution of class numbers 0 ... n_classes - 1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from boostplugins._jit import njit
from boostplugins._validation import check_integer
from boostplugins.families._common import quiet, run
from boostplugins.families.base import Family
from boostplugins.families.support import Support
from boostplugins.links import Identity, Link

# Raw scores are differences of logarithms; e**-300 is as good as never.
_LIMIT = 300.0


@dataclass(frozen=True)
class Categorical(Family):
    r"""Categorical distribution, theta = class probabilities, raw = their softmax scores.

    Score: :math:`1\{y = k\} - p_k`; Fisher information :math:`\mathrm{diag}(p) - p p^\top`. Mean,
    variance, quantiles and CRPS are those of the class number, meant for ordered classes.

    Parameters
    ----------
    n_classes : int, default=0
        Number of classes; 0 takes it from the data.

    Examples
    --------
    >>> from boostplugins.families import Categorical
    >>> Categorical(3).theta([[0.0, 0.0, 0.0]]).round(3)
    array([[0.333, 0.333, 0.333]])
    """

    n_classes: int = 0

    name = "categorical"
    aliases = ("MN", "multiclass")
    discrete = True
    classification = True

    def __post_init__(self) -> None:
        check_integer("n_classes", self.n_classes, 0)

    @property
    def params(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the class probabilities."""
        return tuple(f"p{k}" for k in range(self.n_classes))

    @property
    def links(self) -> tuple[Link, ...]:  # type: ignore[override]
        """Limits of the raw scores; the link itself is the softmax of all of them."""
        return (Identity(-_LIMIT, _LIMIT),) * self.n_classes

    @property
    def support(self) -> Support:  # type: ignore[override]
        """Class numbers."""
        return Support(0.0, max(self.n_classes - 1.0, 0.0), closed_low=True, closed_high=True, integer=True)

    def ready(self, y: np.ndarray) -> Family:
        return self if self.n_classes else Categorical(max(int(np.max(y)) + 1, 2))

    def theta(self, raw: ArrayLike) -> np.ndarray:
        return softmax(np.clip(np.asarray(raw, dtype=np.float64), -_LIMIT, _LIMIT), axis=-1)

    def raw(self, theta: ArrayLike) -> np.ndarray:
        with np.errstate(divide="ignore"):
            logs = np.log(np.asarray(theta, dtype=np.float64))
        return np.clip(logs - logs.max(axis=-1, keepdims=True), -_LIMIT, _LIMIT)

    def check_theta(self, theta: np.ndarray) -> None:
        good = (theta >= 0) & (theta <= 1)
        if not good.all() or not np.allclose(theta.sum(axis=-1), 1.0, atol=1e-6):
            raise ValueError("theta: probabilities of family categorical must be in [0, 1] and sum to 1")

    def _guess(self, y: np.ndarray, weight: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
        count = np.bincount(np.asarray(y, dtype=np.intp), weight, self.n_classes)
        # A class without a case gets half a case.
        return self.raw(np.maximum(count, 0.5 * weight.max()))

    def init(
        self, y: np.ndarray, weight: np.ndarray | None = None, offset: np.ndarray | None = None
    ) -> np.ndarray:
        weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
        seen = np.unique(np.asarray(y)[weight > 0])
        if offset is None or len(seen) < self.n_classes:
            return self._guess(y, weight, offset)
        return super().init(y, weight, offset)

    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return run(self, _kernel, y, raw)

    def fisher_matrix(self, raw: np.ndarray) -> np.ndarray:
        p = self.theta(raw)
        return p[:, :, None] * np.eye(self.n_classes) - p[:, :, None] * p[:, None, :]

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        theta = np.asarray(theta, dtype=np.float64)
        y, _ = np.broadcast_arrays(np.asarray(y, dtype=np.float64), theta[..., 0])
        inside = self.support.contains(y)
        code = np.where(inside, y, 0).astype(np.intp)
        wide = np.broadcast_to(theta, (*y.shape, self.n_classes))
        p = np.take_along_axis(wide, code[..., None], axis=-1)[..., 0]
        return np.where(inside, np.log(p), -np.inf)

    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        theta = np.asarray(theta, dtype=np.float64)
        y = np.asarray(y, dtype=np.float64)
        below = np.arange(self.n_classes) <= y[..., None]
        return np.minimum((theta * below).sum(axis=-1), 1.0)

    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        total = np.cumsum(np.asarray(theta, dtype=np.float64), axis=-1)[..., :-1]
        return (total < np.asarray(q, dtype=np.float64)[..., None]).sum(axis=-1).astype(np.float64)

    def mean(self, theta: ArrayLike) -> np.ndarray:
        return np.asarray(theta, dtype=np.float64) @ np.arange(self.n_classes)

    def var(self, theta: ArrayLike) -> np.ndarray:
        theta = np.asarray(theta, dtype=np.float64)
        gap = np.arange(self.n_classes) - self.mean(theta)[..., None]
        return (theta * gap**2).sum(axis=-1)

    def probabilities(self, theta: ArrayLike) -> np.ndarray:
        return np.array(theta, dtype=np.float64)


@njit
def _kernel(y, raw, score, fisher):  # type: ignore[no-untyped-def]
    classes = raw.shape[1]
    for i in range(len(y)):
        top = raw[i, 0]
        for k in range(1, classes):
            top = max(top, raw[i, k])
        total = 0.0
        for k in range(classes):
            total += math.exp(raw[i, k] - top)
        for k in range(classes):
            p = math.exp(raw[i, k] - top) / total
            rest = 0.0
            for j in range(classes):
                if j != k:
                    rest += math.exp(raw[i, j] - top)
            rest /= total
            score[i, k] = rest if int(y[i]) == k else -p
            fisher[i, k] = p * rest
