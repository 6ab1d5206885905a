"""A family of one's own: the Rayleigh distribution of wind speeds."""

from dataclasses import dataclass

import numpy as np

from boostplugins.families import Family, Support
from boostplugins.links import Log


@dataclass(frozen=True)
class Rayleigh(Family):
    name = "rayleigh"  # saved models are read by it, once this class is defined
    params = ("sigma",)
    links = (Log(),)
    support = Support(0.0)
    scales = (0,)  # parameters in units of the response

    def init(self, y, weight=None, offset=None):  # raw scores of the best constant
        return np.array([0.5 * np.log(np.average(np.square(y), weights=weight) / 2)])

    def score_and_fisher(self, y, raw):  # d log p / d raw, and its expected information
        return (y[:, None] / np.exp(raw)) ** 2 - 2.0, np.full(raw.shape, 4.0)

    def log_pdf(self, y, theta):
        s = np.asarray(theta)[..., 0]
        return np.log(y) - 2 * np.log(s) - np.square(y) / (2 * s**2)

    def cdf(self, y, theta):
        return -np.expm1(-np.square(y) / (2 * np.asarray(theta)[..., 0] ** 2))

    def ppf(self, q, theta):
        return np.asarray(theta)[..., 0] * np.sqrt(-2 * np.log1p(-np.asarray(q)))

    def mean(self, theta):
        return np.asarray(theta)[..., 0] * np.sqrt(np.pi / 2)

    def var(self, theta):
        return (2 - np.pi / 2) * np.asarray(theta)[..., 0] ** 2
