"""Data and settings that the tests of DistributionalRegressor share."""

from __future__ import annotations

import numpy as np
import pytest

from boostplugins import DistributionalRegressor
from boostplugins.families import families, get_family

both = pytest.mark.parametrize("booster", ["lightgbm", "catboost"])
AFFINE = [
    name
    for name, kind in families().items()
    if name not in ("categorical",) and kind().equivariance == "affine"
]
SCALED = ["gamma", "lognormal", "weibull", "inverse_gaussian", "exponential", "tweedie", "ZAGA"]
PLAIN = [
    "normal",
    "gamma",
    "lognormal",
    "student_t",
    "laplace",
    "weibull",
    "poisson",
    "negative_binomial",
    "beta",
]
# One model, no rows held out: what a fit does to its rows can be told exactly.
PLAINLY = dict.fromkeys(("n_folds", "validation_fraction", "early_stopping_rounds", "calibration"))


def spread_data(n=300, seed=0):
    """A response whose mean follows x0 and whose log standard deviation follows x1."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (n, 3))
    return X, X[:, 0] + np.exp(0.7 * X[:, 1]) * rng.normal(size=n)


def response(name, n, seed=0):
    """Responses that a family allows."""
    rng = np.random.default_rng(seed)
    family = get_family(name).ready(np.array([0.0, 1.0]))
    if name == "beta":
        return rng.uniform(0.05, 0.95, n)
    if family.classification:
        return rng.integers(0, 2, n).astype(float)
    if family.discrete:
        return rng.poisson(2.0, n).astype(float)
    if family.support.low >= 0:
        return rng.gamma(2.0, 1.0, n)
    return rng.normal(size=n)


def quick(family="normal", **settings):
    return DistributionalRegressor(
        family, **({"n_estimators": 40, "learning_rate": 0.1} | PLAINLY | settings)
    )
