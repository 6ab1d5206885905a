"""Every public estimator in a size that fits within milliseconds, for tests that all must pass."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone, is_classifier

import boostplugins as bp

_NETWORK = {"max_epochs": 8, "patience": 3, "learning_rate_drops": 0}
_CHAINS = {"n_trees": 4, "n_burn": 8, "n_draws": 8, "n_chains": 2, "random_state": 0}
_SGLB = {"n_estimators": 8, "depth": 2, "n_jobs": 1}
_SHORT_HBART = bp.HBARTRegressor(**_CHAINS)

REGRESSORS: dict[str, BaseEstimator] = {
    "SGLB-catboost": bp.SGLBRegressor(**_SGLB),
    "SGLB-lightgbm": bp.SGLBRegressor(booster="lightgbm", **_SGLB),
    "SGLB-masked": bp.SGLBRegressor(
        "normal", booster="lightgbm", mask=bp.BernoulliMask(0.5), n_chains=2, **_SGLB
    ),
    "Distributional-lightgbm": bp.DistributionalRegressor(n_estimators=10, learning_rate=0.3),
    "Distributional-catboost": bp.DistributionalRegressor(
        n_estimators=10, learning_rate=0.3, booster="catboost"
    ),
    "SoftTree": bp.SoftTreeRegressor(ridge=1.0, max_leaves=3),
    "SoftForest": bp.SoftForestRegressor(n_estimators=2, ridge=1.0, max_leaves=3),
    "SoftBoosting": bp.SoftBoostingRegressor(n_estimators=6),
    "USNRT": bp.USNRTRegressor(
        n_members=2, min_samples_leaf=25, split_hidden=(4,), leaf_hidden=(4,), **_NETWORK
    ),
    "HNN": bp.HNNRegressor(n_members=2, hidden=(6,), **_NETWORK),
    "MCDropout": bp.MCDropoutRegressor(n_draws=6, hidden=(8,), dropout=0.1, **_NETWORK),
    "BART": bp.BARTRegressor(**_CHAINS),
    "HBART": _SHORT_HBART,
    "HBART-forest": bp.HBARTRegressor(variance="forest", n_variance_trees=3, **_CHAINS),
    "HBART-CV": bp.HBARTRegressorCV(_SHORT_HBART, {"k": [1.0, 2.0]}, cv=2),
}
CLASSIFIERS: dict[str, BaseEstimator] = {
    "SGLB-classes-catboost": bp.SGLBClassifier(**_SGLB),
    "SGLB-classes-lightgbm": bp.SGLBClassifier(booster="lightgbm", **_SGLB),
    "SoftTree-classes": bp.SoftTreeClassifier(ridge=1.0, max_leaves=3),
    "BART-classes": bp.BARTClassifier(**_CHAINS),
}
ALL = REGRESSORS | CLASSIFIERS
# Kin of others, or dear ones: their share of the common tests belongs to the second pass.
_SECOND_PASS = {
    "SGLB-lightgbm",
    "SGLB-masked",
    "SGLB-classes-catboost",
    "Distributional-catboost",
    "SoftForest",
    "SoftBoosting",
    "HBART-forest",
    "HBART-CV",
}


def names(of: dict[str, BaseEstimator]) -> list:
    """Names to parametrize a test by."""
    return [pytest.param(name, marks=pytest.mark.slow) if name in _SECOND_PASS else name for name in of]


def build(name: str, **settings) -> BaseEstimator:
    """A fresh estimator of the catalogue."""
    return clone(ALL[name]).set_params(**settings)


def problem(name: str, n: int = 60, p: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features, and a response that the first feature moves: numbers, or two labels for a classifier."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = X[:, 0] + 0.3 * rng.normal(size=n)
    if is_classifier(ALL[name]):
        return X, np.where(y > np.median(y), "yes", "no")
    return X, y


def answers(model: BaseEstimator, X) -> np.ndarray:
    """What a fitted model says of rows as one array: centre, spread and both kinds of uncertainty."""
    if is_classifier(model):
        uncertainty = model.predict_uncertainty(X)
        columns = [model.predict_proba(X)]
    else:
        dist = model.predict_dist(X)
        uncertainty = dist.uncertainty()
        columns = [dist.mean(), dist.interval(0.9)]
    return np.column_stack([*columns, uncertainty.knowledge, uncertainty.data, uncertainty.total])


def check_answers(model: BaseEstimator, X) -> np.ndarray:
    """Answers, checked for what no data may break."""
    found = answers(model, X)
    assert np.isfinite(found).all()
    knowledge, data, total = found[:, -3:].T
    assert (found[:, -3:] >= 0).all()
    np.testing.assert_allclose(knowledge + data, total, rtol=1e-9)
    if is_classifier(model):
        np.testing.assert_allclose(found[:, :-3].sum(axis=1), 1.0, rtol=1e-9)
    else:
        assert (found[:, 1] <= found[:, 2]).all()
    return found
