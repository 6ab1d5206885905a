"""Squared error: a Normal response whose noise variance is known or estimated."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from boostplugins._validation import check_real
from boostplugins.losses.base import Loss
from boostplugins.uncertainty import Uncertainty


@dataclass(frozen=True)
class SquaredError(Loss):
    r"""Negative log likelihood of a Normal mean with a given noise variance.

    .. math:: L = \frac{(y - F)^2}{2 \sigma^2} + \tfrac12 \log(2 \pi \sigma^2)

    The direction is the plain residual (preconditioner :math:`\sigma^2`), the noise has the size
    :math:`\sigma`: the learning rate keeps its usual meaning and temperature 1 is the posterior in
    any units.

    Parameters
    ----------
    noise_variance : float, optional
        Variance of the response around its mean, > 0, in squared units of the target. By default
        it is estimated on held-out rows before the chain starts.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.losses import SquaredError
    >>> SquaredError(noise_variance=0.5).gradient(np.array([1.0]), np.array([[3.0]]))
    array([[4.]])
    """

    noise_variance: float | None = None

    name: ClassVar[str] = "squared_error"
    aliases: ClassVar[tuple[str, ...]] = ("RMSE", "regression", "l2")
    kernel: ClassVar[int | None] = 0

    def __post_init__(self) -> None:
        if self.noise_variance is not None:
            check_real("noise_variance", self.noise_variance, 0.0, closed="neither")

    @property
    def _variance(self) -> float:
        return 1.0 if self.noise_variance is None else float(self.noise_variance)

    def value(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        return 0.5 * ((y - raw[:, 0]) ** 2 / self._variance + math.log(2 * math.pi * self._variance))

    def gradient(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        return (raw - y[:, None]) / self._variance

    def hessian(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        return np.full_like(raw, 1.0 / self._variance)

    def direction(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        return y[:, None] - raw

    def noise_scale(self, raw: np.ndarray) -> np.ndarray:
        return np.full_like(raw, math.sqrt(self._variance))

    def prior_units(self, y: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
        return np.array([math.sqrt(self._variance)])

    def start(self, y: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
        return np.array([np.average(y, weights=weight)])

    def response(self, raw: np.ndarray) -> np.ndarray:
        return raw[..., 0]

    def uncertainty(self, members: np.ndarray) -> Uncertainty:
        return Uncertainty.from_moments(members[..., 0], self._variance)

    def with_noise_variance(self, variance: float) -> SquaredError:
        """Fix the noise variance if it is open.

        Parameters
        ----------
        variance : float
            Estimate, > 0.

        Returns
        -------
        SquaredError
            This loss where a variance was given, else one with the estimate.
        """
        return self if self.noise_variance is not None else replace(self, noise_variance=float(variance))
