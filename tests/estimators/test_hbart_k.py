"""k drawn with the rest: when, what of it is told, and that files, longer fits and threads keep it."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

from boostplugins import BARTClassifier, BARTRegressor, HBARTRegressor

FEW = {"n_trees": 20, "n_burn": 150, "n_draws": 150, "n_chains": 2, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore::boostplugins.estimators._bart_base.MixingWarning")


def line(n=100, sd=5.0):
    x = np.linspace(0, 1, n)
    return x[:, None], 100 * x + sd * np.random.default_rng(0).standard_normal(n)


@pytest.mark.parametrize("variance", ["forest", "log-linear", "constant"])
def test_a_variance_forest_draws_k_and_others_take_the_papers(variance):
    X, y = line()
    model = HBARTRegressor(variance=variance, **FEW).fit(X, y)
    stated = HBARTRegressor(variance=variance, k="sample" if variance == "forest" else 2.0, **FEW).fit(X, y)
    np.testing.assert_array_equal(model.predict_interval(X), stated.predict_interval(X))
    assert ("k" in model.posterior_draws()) == (variance == "forest")
    drawn = HBARTRegressor(variance=variance, k="sample", **FEW).fit(X, y).posterior_draws()["k"]
    assert drawn.shape == (2, 150)
    assert np.ptp(drawn) > 0


@pytest.mark.parametrize("kind", [BARTRegressor, HBARTRegressor, BARTClassifier])
def test_k_gives_the_leaf_values_spread(kind):
    X, y = line()
    y = y > 50 if kind is BARTClassifier else y
    model = kind(k="sample", **FEW).fit(X, y)
    half_range = 3.0 if kind is BARTClassifier else 0.5
    k = model.posterior_draws()["k"].reshape(-1)
    forest = model.posterior_.mean
    ends = forest.first_values()
    found = np.array([forest.values[a:b].std() for a, b in pairwise(ends)])
    # About 45 leaf values a draw give the ratio within 11 %; many draws average that out.
    assert np.mean(found * k * np.sqrt(20) / half_range) == pytest.approx(1.0, abs=0.1)


def test_smooth_functions_are_shrunk_more_than_rough_ones():
    X, y = line(200)
    x = X[:, 0]
    rough = 50 * np.sign(np.sin(20 * x)) + y - 100 * x
    smooth = BARTRegressor(k="sample", **FEW).fit(X, y)
    k, lower = (m.posterior_draws()["k"].mean() for m in (smooth, clone(smooth).fit(X, rough)))
    assert k > 1.5 * lower
    fixed = BARTRegressor(**FEW).fit(X, y)
    errors = [np.mean((model.predict(X) - 100 * x) ** 2) for model in (smooth, fixed)]
    assert errors[0] < errors[1]


def test_files_pickles_threads_and_longer_fits_keep_k(tmp_path):
    X, y = line(60)
    model = HBARTRegressor(variance="forest", **FEW).fit(X, y)
    model.save(tmp_path / "model")
    short = clone(model).set_params(n_draws=100).fit(X, y).sample_more(50)
    others = [
        HBARTRegressor.load(tmp_path / "model"),
        pickle.loads(pickle.dumps(model)),
        clone(model).set_params(n_jobs=2).fit(X, y),
        short,
    ]
    for other in others:
        np.testing.assert_array_equal(other.posterior_draws()["k"], model.posterior_draws()["k"])
        np.testing.assert_array_equal(other.predict(X), model.predict(X))


def test_a_constant_response_has_a_k_too():
    X, _ = line(30)
    with pytest.warns(UserWarning, match="y is constant"):
        model = BARTRegressor(k="sample", **FEW).fit(X, np.full(30, 7.0))
    np.testing.assert_allclose(model.predict(X), 7.0, rtol=1e-6)
    assert np.isfinite(model.posterior_draws()["k"]).all()


@pytest.mark.parametrize("k", ["auto", 0.0, None])
def test_refusals(k):
    X, y = line(30)
    with pytest.raises(
        (ValueError, TypeError), match="k must be a finite number in .*; or draw it: k='sample'"
    ):
        BARTRegressor(k=k, **FEW).fit(X, y)
