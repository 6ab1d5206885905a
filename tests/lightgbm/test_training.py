"""LightGBM chains in the estimators."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from boostplugins import BernoulliMask, Constant, SGLBClassifier, SGLBRegressor
from boostplugins.lightgbm.reader import LightGBMReader
from boostplugins.losses import SquaredError

FAST = {"booster": "lightgbm", "n_jobs": 1, "n_estimators": 40}


def rows(n=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, 100 + 2 * X[:, 0] + 0.3 * rng.normal(size=n)


def test_regression_fits_and_knows_less_where_rows_are_few():
    X, y = rows()
    model = SGLBRegressor(SquaredError(0.09), mask=BernoulliMask(0.7), **FAST).fit(X, y)
    assert np.sqrt(np.mean((model.predict(X) - y) ** 2)) < 1.0
    u = model.predict_uncertainty(X)
    far = model.predict_uncertainty(X[np.abs(X[:, 0]) > 1.8]).knowledge.mean()
    assert far > u.knowledge[np.abs(X[:, 0]) < 0.5].mean()
    np.testing.assert_allclose(u.knowledge + u.data, u.total)


def test_weights_reach_the_chain():
    X, y = rows()
    weight = np.where(np.arange(200) < 100, 1.0, 0.0)
    options = FAST | {"temperature": math.inf, "schedule": Constant()}
    whole = SGLBRegressor(SquaredError(0.09), **options).fit(X, y, sample_weight=weight)
    other = y.copy()
    other[100:] = -1e3
    again = SGLBRegressor(SquaredError(0.09), **options).fit(X, other, sample_weight=weight)
    np.testing.assert_allclose(whole.predict(X), again.predict(X), rtol=1e-6)


def test_categories_and_missing_values():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.normal(size=300), "c": rng.choice(["x", "y", "z", None], 300)})
    frame.loc[::9, "a"] = np.nan
    labels = np.where(frame.c == "x", "u", np.where(frame.a > 0, "v", "w"))
    model = SGLBClassifier(**FAST).fit(frame, labels)
    assert model.score(frame, labels) > 0.9
    unseen = frame.head(3).assign(c="never seen")
    assert np.isfinite(model.predict_proba(unseen)).all()
    reordered = model.predict_proba(frame[["a", "c"]].head(5))
    np.testing.assert_array_equal(reordered, model.predict_proba(frame.head(5)))


@pytest.mark.filterwarnings("ignore:training stopped after")  # with few members
def test_early_stopping_keeps_its_trees_and_files_keep_the_model(tmp_path):
    X, y = rows()
    options = FAST | {"early_stopping_rounds": 8, "validation_fraction": 0.25, "n_estimators": 80}
    model = SGLBRegressor(SquaredError(0.09), **options).fit(X, y)
    trees = LightGBMReader(model.models_[0]).n_iterations
    assert 8 < trees <= 80
    model.save(tmp_path / "model.bin")
    again = SGLBRegressor.load(tmp_path / "model.bin")
    np.testing.assert_array_equal(again.members(X), model.members(X))


@pytest.mark.filterwarnings("ignore:LightGBM found nothing to split")  # extra_trees may find none
def test_several_chains_and_leaf_wise_trees():
    X, y = rows()
    options = FAST | {
        "n_chains": 2,
        "booster_params": {"num_leaves": 5, "extra_trees": True, "feature_fraction": 0.7},
    }
    model = SGLBRegressor(SquaredError(0.09), **options).fit(X, y)
    assert model.members(X).shape == (200, 20, 1)
    trees = model.models_[0].dump_model()["tree_info"]
    assert max(tree["num_leaves"] for tree in trees) == 5
    shared = SGLBRegressor(SquaredError(0.09), **FAST, booster_params={"leaf_noise": "shared"}).fit(X, y)
    assert LightGBMReader(shared.models_[0]).description["leaf_noise"] == "shared"


@pytest.mark.filterwarnings("ignore:LightGBM found nothing to split")
@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_rows(n, tmp_path):
    X, y = rows(n)
    model = SGLBRegressor(**FAST).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    model.save(tmp_path / "model.bin")
    np.testing.assert_array_equal(SGLBRegressor.load(tmp_path / "model.bin").members(X), model.members(X))


def test_callbacks_of_no_kind():
    X, y = rows(60)
    with pytest.raises(TypeError, match="callbacks must be"):
        SGLBRegressor(SquaredError(1.0), **FAST).fit(X, y, callbacks=[3])
