"""Logistic loss: a Bernoulli response with labels 0 and 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, logit

from boostplugins.losses.base import Loss
from boostplugins.uncertainty import Uncertainty

_EDGE = 1e-6  # of a start probability: one class alone still has a finite start
_FLOOR = 1e-16  # of the curvature p (1 - p), which underflows for |raw| > 700


@dataclass(frozen=True)
class Logistic(Loss):
    r"""Negative log likelihood of a Bernoulli response, :math:`L = \log(1 + e^F) - y F`.

    Labels are 0 or 1; probabilities between them count as soft labels.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.losses import Logistic
    >>> Logistic().start(np.array([0.0, 1.0, 1.0, 1.0])).round(4)
    array([1.0986])
    """

    name: ClassVar[str] = "logistic"
    aliases: ClassVar[tuple[str, ...]] = ("Logloss", "binary")
    classification: ClassVar[bool] = True
    kernel: ClassVar[int | None] = 1

    def value(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        return np.logaddexp(0.0, raw[:, 0]) - y * raw[:, 0]

    def gradient(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        return expit(raw) - y[:, None]

    def hessian(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        return np.maximum(expit(raw) * expit(-raw), _FLOOR)

    def start(self, y: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
        return np.array([logit(np.clip(np.average(y, weights=weight), _EDGE, 1 - _EDGE))])

    def response(self, raw: np.ndarray) -> np.ndarray:
        p = expit(raw[..., 0])
        return np.stack([1.0 - p, p], axis=-1)

    def uncertainty(self, members: np.ndarray) -> Uncertainty:
        return Uncertainty.from_probabilities(self.response(members))

    def check_labels(self, y: np.ndarray) -> None:
        bad = ~((y >= 0) & (y <= 1))
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"labels of the logistic loss must lie in [0, 1], got {y[row]:g} in row {row}; encode "
                "the classes as 0 and 1, or use SGLBClassifier, which does"
            )
