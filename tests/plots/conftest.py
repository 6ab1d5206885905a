"""Figures are closed after each test; models are fitted once."""

import numpy as np
import pytest

from boostplugins import BARTClassifier, BARTRegressor, DistributionalRegressor, SGLBClassifier

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _closed():
    yield
    pyplot.close("all")


@pytest.fixture(scope="package")
def plane():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    return X, X[:, 0] + 0.3 * rng.normal(size=120)


@pytest.fixture(scope="package")
def bart(plane):
    return _quiet(BARTRegressor(n_trees=5, n_burn=20, n_draws=20, n_chains=2, random_state=0), *plane)


@pytest.fixture(scope="package")
def bart_classifier(plane):
    X, y = plane
    return _quiet(BARTClassifier(n_trees=5, n_burn=20, n_draws=20, n_chains=2, random_state=0), X, y > 0)


@pytest.fixture(scope="package")
def sglb(plane):
    X, y = plane
    model = SGLBClassifier(booster="lightgbm", n_estimators=60, depth=3, n_chains=2, n_jobs=1)
    return model.fit(X, y > 0)


@pytest.fixture(scope="package")
def boosted(plane):
    return DistributionalRegressor(n_estimators=20).fit(*plane)


def _quiet(model, X, y):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short chains disagree
        return model.fit(X, y)
