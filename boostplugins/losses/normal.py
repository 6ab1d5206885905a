"""Normal likelihood with mean and log standard deviation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from boostplugins.losses.base import Loss
from boostplugins.uncertainty import Uncertainty

# Squared standardised residual at which the direction of log sigma is cut: a Normal exceeds it
# once in 20 million rows, and one outlier must not throw a leaf by hundreds.
_MAX_SQUARE = 30.0
_LARGEST_LOG = 300.0  # of a standard deviation, so that its square stays finite
_BELOW, _ABOVE = 7.0, 2.3  # range of log sigma around that of the target
# Standard deviation of a constant target, relative to its size: keeps the start finite.
_LEAST_SPREAD = 1e-9


@dataclass(frozen=True)
class NormalLikelihood(Loss):
    r"""Negative log likelihood of a Normal response, raw scores :math:`(\mu, \log\sigma)`.

    .. math:: L = \log\sigma + \frac{(y - \mu)^2}{2 \sigma^2} + \tfrac12 \log 2 \pi

    The direction is (y - mu, z^2 - 1) with z the standardised residual, the preconditioner
    (sigma^2, 1), which does not depend on the score that it multiplies.

    Under a flat prior the posterior of a leaf of one or two rows is improper: sigma may run to 0 or
    to infinity. Give leaves some tens of rows; the range of log sigma is the last guard.

    Parameters
    ----------
    log_sigma_range : tuple of float, optional
        Least and largest log standard deviation; raw scores beyond it count as its ends. By default
        it is taken from the target: from e^-7 to e^2.3 = 10 times its standard deviation.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.losses import NormalLikelihood
    >>> NormalLikelihood().direction(np.array([3.0]), np.array([[1.0, 0.0]]))
    array([[2., 3.]])
    """

    log_sigma_range: tuple[float, float] | None = None

    name: ClassVar[str] = "normal"
    aliases: ClassVar[tuple[str, ...]] = ("RMSEWithUncertainty",)

    def __post_init__(self) -> None:
        if self.log_sigma_range is not None:
            low, high = self.log_sigma_range
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise ValueError(
                    f"log_sigma_range must be two increasing numbers, got {self.log_sigma_range}"
                )
            object.__setattr__(self, "log_sigma_range", (float(low), float(high)))

    @property
    def kernel(self) -> int | None:  # type: ignore[override]
        """The compiled direction knows no range."""
        return 3 if self.log_sigma_range is None else None

    @property
    def n_outputs(self) -> int:
        """Raw scores a row: mean and log standard deviation."""
        return 2

    def value(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        z = (y - raw[:, 0]) * np.exp(-raw[:, 1])
        return raw[:, 1] + 0.5 * z**2 + 0.5 * math.log(2 * math.pi)

    def gradient(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        inverse = np.exp(-raw[:, 1])
        z = (y - raw[:, 0]) * inverse
        return np.stack([-z * inverse, 1.0 - z**2], axis=1)

    def hessian(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        precision = np.clip(np.exp(-2.0 * raw[:, 1]), np.finfo(float).tiny, np.finfo(float).max)
        return np.stack([precision, np.full(len(y), 2.0)], axis=1)

    def log_sigma(self, raw: np.ndarray) -> np.ndarray:
        """Log standard deviation of raw scores, within its range.

        Parameters
        ----------
        raw : ndarray of shape (..., 2)
            Raw scores.

        Returns
        -------
        ndarray of shape (...)
            Log standard deviations.
        """
        low, high = (-_LARGEST_LOG, _LARGEST_LOG) if self.log_sigma_range is None else self.log_sigma_range
        return np.clip(raw[..., 1], low, high)

    def direction(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        residual = y - raw[:, 0]
        square = np.minimum((residual * np.exp(-self.log_sigma(raw))) ** 2, _MAX_SQUARE)
        return np.stack([residual, square - 1.0], axis=1)

    def noise_scale(self, raw: np.ndarray) -> np.ndarray:
        return np.stack([np.exp(self.log_sigma(raw)), np.ones(len(raw))], axis=1)

    def ready(self, y: np.ndarray, weight: np.ndarray | None = None) -> NormalLikelihood:
        if self.log_sigma_range is not None:
            return self
        spread = self.start(y, weight)[1]
        return replace(self, log_sigma_range=(spread - _BELOW, spread + _ABOVE))

    def start(self, y: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
        mean = np.average(y, weights=weight)
        spread = math.sqrt(np.average((y - mean) ** 2, weights=weight))
        return np.array([mean, math.log(max(spread, _LEAST_SPREAD * abs(mean)) or _LEAST_SPREAD)])

    def prior_units(self, y: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
        return np.array([math.exp(self.start(y, weight)[1]), 0.0])

    def response(self, raw: np.ndarray) -> np.ndarray:
        return raw[..., 0]

    def uncertainty(self, members: np.ndarray) -> Uncertainty:
        return Uncertainty.from_moments(members[..., 0], np.exp(2.0 * self.log_sigma(members)))
