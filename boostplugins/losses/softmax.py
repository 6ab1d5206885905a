"""Softmax loss: a categorical response with labels 0 .. K - 1."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import log_softmax, logsumexp, softmax

from boostplugins._validation import check_integer
from boostplugins.losses.base import Loss
from boostplugins.uncertainty import Uncertainty

_EDGE = 1e-6  # of a start frequency: an absent class still has a finite start
_FLOOR = 1e-16  # of the curvature p (1 - p), which underflows for extreme scores


@dataclass(frozen=True)
class Softmax(Loss):
    r"""Negative log likelihood of a class, :math:`L = \log\sum_k e^{F_k} - F_y`.

    Parameters
    ----------
    n_classes : int, optional
        Number of classes K >= 2; the largest label + 1 by default.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.losses import Softmax
    >>> Softmax(n_classes=3).response(np.zeros((1, 3))).round(3)
    array([[0.333, 0.333, 0.333]])
    """

    n_classes: int | None = None

    name: ClassVar[str] = "softmax"
    aliases: ClassVar[tuple[str, ...]] = ("MultiClass", "multiclass")
    classification: ClassVar[bool] = True
    kernel: ClassVar[int | None] = 2

    def __post_init__(self) -> None:
        if self.n_classes is not None:
            check_integer("n_classes", self.n_classes, 2)

    @property
    def n_outputs(self) -> int:
        """Raw scores a row: the number of classes (2 while it is open)."""
        return 2 if self.n_classes is None else self.n_classes

    def value(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        return logsumexp(raw, axis=1) - raw[np.arange(len(y)), y.astype(np.intp)]

    def gradient(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        p = softmax(raw, axis=1)
        p[np.arange(len(y)), y.astype(np.intp)] -= 1.0
        return p

    def hessian(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        p = softmax(raw, axis=1)
        return np.maximum(p * (1.0 - p), _FLOOR)

    def start(self, y: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
        share = np.bincount(y.astype(np.intp), weights=weight, minlength=self.n_outputs)
        scores = np.log(np.maximum(share / share.sum(), _EDGE))
        return scores - scores.mean()

    def response(self, raw: np.ndarray) -> np.ndarray:
        return np.exp(log_softmax(raw, axis=-1))

    def uncertainty(self, members: np.ndarray) -> Uncertainty:
        return Uncertainty.from_probabilities(self.response(members))

    def check_labels(self, y: np.ndarray) -> None:
        top = np.inf if self.n_classes is None else self.n_classes - 1
        bad = ~((y >= 0) & (y <= top) & (y == np.floor(y)))
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"labels of the softmax loss must be whole numbers in [0, {top:g}], got {y[row]:g} in row "
                f"{row}; encode the classes as 0 .. K - 1, or use SGLBClassifier, which does"
            )

    def ready(self, y: np.ndarray, weight: np.ndarray | None = None) -> Softmax:
        if self.n_classes is not None:
            return self
        return replace(self, n_classes=max(int(y.max()) + 1, 2))
