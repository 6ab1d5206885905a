"""A loss of one's own: a logistic response, which forgives outliers, with a known scale."""

from dataclasses import dataclass

import numpy as np

from boostplugins.losses import Loss
from boostplugins.uncertainty import Uncertainty


@dataclass(frozen=True)
class LogCosh(Loss):
    name = "log_cosh"  # saved models are read by it, once this class is defined

    scale: float = 1.0  # a negative log likelihood: without its scale there is no noise to sample

    def value(self, y, raw):
        z = (y - raw[:, 0]) / self.scale
        return np.logaddexp(z / 2, -z / 2) * 2 + np.log(self.scale)

    def gradient(self, y, raw):
        return -np.tanh((y[:, None] - raw) / (2 * self.scale)) / self.scale

    def hessian(self, y, raw):  # expected under the logistic distribution
        return np.full_like(raw, 1 / (3 * self.scale**2))

    def direction(self, y, raw):  # the gradient times scale**2: steps in units of the response ...
        return -self.gradient(y, raw) * self.scale**2

    def noise_scale(self, raw):  # ... and the noise to match
        return np.full_like(raw, self.scale)

    def start(self, y, weight=None):
        return np.array([np.median(y)])

    def response(self, raw):
        return raw[..., 0]

    def uncertainty(self, members):
        return Uncertainty.from_moments(members[..., 0], (np.pi * self.scale) ** 2 / 3)
