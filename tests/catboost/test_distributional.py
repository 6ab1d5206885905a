"""Parameters taking turns inside CatBoost: the state kept beside the booster is the model's own."""

from __future__ import annotations

import pickle

import catboost
import numpy as np
import pytest
from scipy import stats

from boostplugins.catboost import Distributional
from boostplugins.catboost.distributional_models import split_model

QUICK = {"rounds": 15, "depth": 2, "learning_rate": 0.1, "thread_count": 1}


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, 500.0 + X[:, 0] + np.exp(0.5 * X[:, 1]) * rng.normal(size=n)


@pytest.mark.parametrize("n", [5, 499, 501, 2500])
@pytest.mark.parametrize("family", ["normal", "student_t"])
def test_the_state_is_what_the_model_predicts(n, family):
    X, y = rows(n)
    loss = Distributional(family)
    model = loss.fit(X, y, **QUICK)
    raw = np.stack([part.predict(X) for part in loss.split(model)], axis=1)
    # The last tree's step is the one thing that the objective has not seen.
    turns = raw.shape[1]
    seen = [k for k in range(turns) if k != turns - 1]
    np.testing.assert_allclose(loss._fit.raw[:, seen], raw[:, seen], rtol=1e-9, atol=1e-9)
    assert model.tree_count_ == 15 * turns


def test_leaves_are_natural_gradient_steps():
    X, y = rows(300)
    loss = Distributional("normal")
    model = loss.fit(X, y, **{**QUICK, "rounds": 1})
    start = loss._fit.steps.start
    score, fisher = loss.family.score_and_fisher(y, np.tile(start, (300, 1)))
    leaves = model.calc_leaf_indexes(X)[:, 0]
    raw = loss.split(model)[0].predict(X)
    for leaf in np.unique(leaves):
        inside = leaves == leaf
        step = (score / fisher)[inside, 0].sum() / (inside.sum() + 1.0)
        np.testing.assert_allclose(raw[inside] - start[0], 0.1 * step, rtol=1e-6)


def test_threads_and_categories_change_nothing_and_are_aligned():
    X, y = rows(3000)
    loss = Distributional("normal")
    one = loss.predict_dist(loss.fit(X, y, **QUICK), X).theta
    two = loss.predict_dist(loss.fit(X, y, **{**QUICK, "thread_count": 3}), X).theta
    np.testing.assert_allclose(one, two, rtol=1e-9)
    kind = np.where(X[:, 0] > 0, "a", "b").astype(object)
    mixed = np.column_stack([X[:, 1:].astype(object), kind])
    shifted = y + 20.0 * (kind == "a")
    model = loss.fit(mixed, shifted, cat_features=[2], **{**QUICK, "rounds": 60})
    mean = loss.predict_dist(model, catboost.Pool(mixed, cat_features=[2])).mean()
    assert abs((mean - shifted)[kind == "a"].mean()) < 0.5
    assert abs((mean - shifted)[kind == "b"].mean()) < 0.5


def test_models_know_their_family_after_saving(tmp_path):
    X, y = rows()
    loss = Distributional("gamma")
    model = loss.fit(X, y, **QUICK)
    model.save_model(str(tmp_path / "model.cbm"))
    again = catboost.CatBoost().load_model(str(tmp_path / "model.cbm"))
    expected = loss.predict_dist(model, X).theta
    assert (Distributional("normal").predict_dist(again, X).theta == expected).all()
    assert pickle.loads(pickle.dumps(loss)).family == loss.family
    plain = catboost.CatBoost({"iterations": 2, "verbose": False, "allow_writing_files": False}).fit(X, y)
    with pytest.raises(ValueError, match="must come from Distributional"):
        split_model(plain)


def test_early_stopping_keeps_whole_rounds_and_the_best_of_them():
    X, y = rows()
    X_held, y_held = rows(seed=1)
    loss = Distributional("normal")
    settings = {**QUICK, "rounds": 300, "learning_rate": 0.3}
    model = loss.fit(X, y, eval_set=(X_held, y_held), early_stopping_rounds=10, **settings)
    history = loss._fit.watch.history
    assert model.tree_count_ == 2 * (int(np.argmin(history)) + 1) < 600
    assert len(history) == np.argmin(history) + 1 + 10  # training itself ends, not only its model
    mean, sd = loss.predict_dist(model, X_held).theta.T
    assert min(history) == pytest.approx(-stats.norm.logpdf(y_held, mean, sd).mean(), abs=1e-9)


def test_weights_equal_repeated_rows():
    rng = np.random.default_rng(0)
    X, y = np.round(rng.uniform(0, 4, (100, 2))), rng.normal(size=100)
    weight = rng.integers(1, 4, 100)
    again = np.repeat(np.arange(100), weight)
    loss = Distributional("normal")
    weighted = loss.predict_dist(loss.fit(X, y, sample_weight=weight, **QUICK), X).theta
    repeated = loss.predict_dist(loss.fit(X[again], y[again], **QUICK), X).theta
    np.testing.assert_allclose(weighted, repeated, rtol=1e-6)


def test_offsets():
    rng = np.random.default_rng(0)
    X, offset = rng.normal(size=(500, 2)), np.log(rng.choice([0.5, 1.0, 4.0], 500))
    y = rng.poisson(np.exp(1.0 + 0.3 * X[:, 0] + offset)).astype(float)
    loss = Distributional("poisson", step="fisher")
    model = loss.fit(X, y, offset=offset, **QUICK)
    assert loss.predict_dist(model, X, offset=offset).mean().sum() == pytest.approx(y.sum(), rel=0.02)


def test_misuse_is_refused():
    X, y = rows(50)
    with pytest.raises(ValueError, match="y must hold numbers"):
        Distributional("gamma").fit(X, -y, **QUICK)
    with pytest.raises(ValueError, match="call pool"):
        Distributional("normal").eval_pool(X, y)
    with pytest.raises(ValueError, match="not constant"):
        Distributional("normal").fit(np.ones((50, 1)), y, **QUICK)
    with pytest.raises(ValueError, match="sample_weight must be >= 0"):
        Distributional("normal").fit(X, y, sample_weight=-np.ones(50), **QUICK)


def test_predictions_keep_the_floor_of_training():
    """Half of the responses have no noise: their scale ends at a ten-thousandth of the constant's."""
    X = np.repeat([0.0, 1.0], 100)[:, None]
    y = X[:, 0] * np.random.default_rng(0).normal(size=200)
    loss = Distributional("normal")
    model = loss.fit(X, y, rounds=100, depth=1, learning_rate=0.5, thread_count=1, l2_leaf_reg=0.0)
    assert loss.predict_dist(model, X).theta[0, 1] == pytest.approx(1e-4 * y.std(), rel=1e-9)
