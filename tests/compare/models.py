"""Small models that say more or less, count their fits, or fail."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from boostplugins import Predictive, Uncertainty


class Mean(RegressorMixin, BaseEstimator):
    """Predicts the mean of the training rows, and nothing else."""

    def fit(self, X, y):
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


class Counting(Mean):
    """Writes a line to a file for every fit."""

    def __init__(self, log=None, level=0.0):
        self.log = log
        self.level = level

    def fit(self, X, y):
        with open(self.log, "a") as file:
            file.write(f"{len(y)}\n")
        return super().fit(X, y)


class Failing(Mean):
    """Raises in `fit`."""

    def __init__(self, message="no luck\nwith details", error=ValueError):
        self.message = message
        self.error = error

    def fit(self, X, y):
        raise self.error(self.message)


class Interrupted(Mean):
    """Ctrl-C in the fit."""

    def fit(self, X, y):
        raise KeyboardInterrupt


class NotNumbers(Mean):
    """Predicts NaN."""

    def predict(self, X):
        return np.full(len(X), np.nan)


class TooShort(Mean):
    """Loses a row."""

    def predict(self, X):
        return super().predict(X)[1:]


class Intervals(Mean):
    """Gives intervals but no distribution."""

    def predict_interval(self, X, coverage):
        return np.tile([self.mean_ - coverage, self.mean_ + coverage], (len(X), 1))


class Distance(Mean):
    """A mixture of two normals that disagree by the first feature's size."""

    def predict_dist(self, X):
        far = np.abs(np.asarray(X)[:, 0])
        mean = np.stack([self.mean_ - far, self.mean_ + far], axis=1)
        return Predictive("normal", np.stack([mean, np.ones_like(mean)], axis=2))


class Shares(ClassifierMixin, BaseEstimator):
    """Predicts the shares of the classes; its knowledge is the first feature's size."""

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.share_ = counts / counts.sum()
        return self

    def predict_proba(self, X):
        return np.tile(self.share_, (len(X), 1))

    def predict(self, X):
        return np.full(len(X), self.classes_[self.share_.argmax()])

    def predict_uncertainty(self, X):
        known = np.abs(np.asarray(X)[:, 0])
        return Uncertainty(known, np.ones(len(known)), known + 1.0)


class LabelsOnly(ClassifierMixin, BaseEstimator):
    """Predicts the first class."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])
