"""The distributional objective inside LightGBM: layout, weights, start value, metric, reload."""

from __future__ import annotations

import pickle

import lightgbm
import numpy as np
import pytest
from scipy import stats

from boostplugins.families import get_family
from boostplugins.lightgbm import Distributional

PLAIN = {"verbose": -1, "num_threads": 1, "learning_rate": 0.1, "num_leaves": 8}


def train(loss, X, y, rounds=20, valid=None, weight=None, init_score=None, **params):
    data = lightgbm.Dataset(X, y, weight=weight, init_score=init_score)
    held = {} if valid is None else {"valid_sets": [lightgbm.Dataset(*valid, reference=data)]}
    history = {}
    booster = lightgbm.train(
        {**loss.lightgbm_params(), **PLAIN, **params},
        data,
        rounds,
        feval=loss.metric,
        callbacks=[loss.callback(), lightgbm.record_evaluation(history)],
        **held,
    )
    return booster, history


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, 500.0 + X[:, 0] + np.exp(0.5 * X[:, 1]) * rng.normal(size=n)


@pytest.mark.parametrize("n", [7, 3])
def test_b01_first_trees_are_those_worked_out_by_hand(n):
    """One leaf a side: leaf values are sums of scores over sums of information plus the ridge."""
    x = np.arange(n, dtype=float)[:, None]
    y = np.random.default_rng(0).normal(size=n) + 5.0 * (x[:, 0] > n / 2)
    loss = Distributional("student_t")
    booster, _ = train(loss, x, y, 1, num_leaves=2, min_data_in_leaf=1, min_data_in_bin=1, learning_rate=1.0)
    start = loss._runs[-1].steps.start
    score, fisher = loss.family.score_and_fisher(y, np.tile(start, (n, 1)))
    unit = np.array([1 / fisher[0, 0], 1.0, 1.0])
    found = booster.predict(x) - start
    leaves = booster.predict(x, pred_leaf=True)
    assert len(np.unique(leaves[:, 0])) == 2
    for k in range(3):
        if (leaves[:, k] == leaves[0, k]).all():  # no split: LightGBM grows nothing
            assert (np.abs(found[:, k]) < 1e-12).all()
            continue
        for leaf in np.unique(leaves[:, k]):
            inside = leaves[:, k] == leaf
            step = (unit[k] * score[inside, k]).sum() / ((unit[k] * fisher[inside, k]).sum() + 1.0)
            np.testing.assert_allclose(found[inside, k], step, rtol=1e-4, atol=1e-6)


def test_b02_whole_weights_equal_repeated_rows():
    rng = np.random.default_rng(0)
    X, y = np.round(rng.uniform(0, 4, (300, 2))), rng.normal(size=300)
    weight = rng.integers(1, 4, 300)
    settings = {"min_data_in_leaf": 0, "min_data_in_bin": 1, "min_sum_hessian_in_leaf": 1.0}
    again = np.repeat(np.arange(300), weight)
    weighted, _ = train(Distributional("normal"), X, y, weight=weight, **settings)
    repeated, _ = train(Distributional("normal"), X[again], y[again], **settings)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-6)
    loss = Distributional("normal")
    model = lightgbm.LGBMRegressor(**{**loss.lightgbm_params(), **PLAIN, **settings}, n_estimators=20)
    model.fit(X, y, sample_weight=weight, callbacks=[loss.callback()])
    np.testing.assert_allclose(model.predict(X), weighted.predict(X), atol=1e-6)


@pytest.mark.parametrize(
    ("family", "built_in", "more"),
    [("poisson", "poisson", {"poisson_max_delta_step": 1e-10}), ("bernoulli", "binary", {})],
)
def test_b03_equals_the_built_in_objective(family, built_in, more):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    rate = np.exp(2.0 + 0.5 * X[:, 0])
    y = (
        rng.poisson(rate).astype(float)
        if family == "poisson"
        else (X[:, 0] + rng.normal(size=400) > 0.5) * 1.0
    )
    shared = {"lambda_l2": 0.0, "min_sum_hessian_in_leaf": 1e-3}
    booster, _ = train(Distributional(family), X, y, 5, **shared)
    other = lightgbm.train({"objective": built_in, **PLAIN, **shared, **more}, lightgbm.Dataset(X, y), 5)
    np.testing.assert_allclose(booster.predict(X), other.predict(X, raw_score=True), atol=1e-5)
    mean = Distributional(family).predict_dist(booster, X).mean()
    np.testing.assert_allclose(mean, other.predict(X), atol=1e-4)  # B05


def test_b04_the_start_value_is_part_of_every_prediction():
    X, y = rows()
    loss = Distributional("normal")
    booster, _ = train(loss, X, y)
    expected = booster.predict(X)
    assert abs(expected[:, 0].mean() - 500.0) < 0.5
    for other in (
        lightgbm.Booster(model_str=booster.model_to_string()),
        pickle.loads(pickle.dumps(booster)),
    ):
        assert (other.predict(X) == expected).all()
    again, _ = train(pickle.loads(pickle.dumps(loss)), X, y)
    assert (again.predict(X) == expected).all()


def test_b04_start_values_in_cross_validation():
    X, y = rows(300)
    loss = Distributional("normal")
    found = lightgbm.cv(
        {**loss.lightgbm_params(), **PLAIN},
        lightgbm.Dataset(X, y, free_raw_data=False),
        10,
        nfold=3,
        stratified=False,
        feval=loss.metric,
        callbacks=[loss.callback()],
        return_cvbooster=True,
    )
    for booster in found["cvbooster"].boosters:
        assert abs(booster.predict(X)[:, 0].mean() - 500.0) < 1.0
    assert found["valid nll-mean"][-1] < found["valid nll-mean"][0] < 2.5


def test_every_one_of_many_folds_keeps_its_own_start_value():
    X, y = rows(60)
    loss = Distributional("normal")
    params = {**loss.lightgbm_params(), **PLAIN}
    lightgbm.cv(params, lightgbm.Dataset(X, y), 3, nfold=20, stratified=False, callbacks=[loss.callback()])
    assert len(loss._runs) == 20
    train(loss, X, y, 3)
    assert len(loss._runs) == 1  # what belonged to the folds is gone with them


@pytest.mark.parametrize("name", ["normal", "poisson"])
def test_training_goes_on_from_a_model_on_the_same_data_set(name):
    X, y = rows()
    y = np.round(y)
    loss = Distributional(name)
    data = lightgbm.Dataset(X, y, free_raw_data=False)
    params, booster = {**loss.lightgbm_params(), **PLAIN}, None
    for _ in range(3):
        booster = lightgbm.train(params, data, 10, init_model=booster, callbacks=[loss.callback()])
    whole, _ = train(Distributional(name), X, y, 30)
    apart, once = (loss.predict_dist(model, X).log_pdf(y).mean() for model in (booster, whole))
    assert apart == pytest.approx(once, abs=0.02)  # splits of like gain may differ by rounding


def test_a_fit_without_its_callback_is_refused():
    X, y = rows()
    loss = Distributional("normal")
    params = {**loss.lightgbm_params(), **PLAIN}
    for others in ([], [Distributional("normal").callback()]):
        with pytest.raises(ValueError, match=r"callbacks must hold loss.callback\(\)"):
            lightgbm.train(params, lightgbm.Dataset(X, y), 3, callbacks=others)


def test_settings_and_weights_that_would_spoil_the_fit_are_refused():
    X, y = rows()
    with pytest.raises(ValueError, match="linear_tree must be False"):
        train(Distributional("normal"), X, y, linear_tree=True)
    with pytest.raises(ValueError, match="weight must be >= 0"):
        train(Distributional("normal"), X, y, weight=np.where(np.arange(200) == 3, -50.0, 1.0))


def test_b08_sampling_modes_work_and_rescaling_ones_are_refused():
    X, y = rows(300)
    plain = Distributional("normal").predict_dist(train(Distributional("normal"), X, y)[0], X).mean()
    for mode in ({"data_sample_strategy": "goss"}, {"bagging_fraction": 0.8, "bagging_freq": 1}):
        loss = Distributional("normal")
        mean = loss.predict_dist(train(loss, X, y, **mode)[0], X).mean()
        assert np.sqrt(np.mean((mean - plain) ** 2)) < 0.5
    with pytest.raises(ValueError, match="rescale the start value"):
        train(Distributional("normal"), X, y, boosting="dart")
    with pytest.raises(lightgbm.basic.LightGBMError, match="custom objective"):
        train(Distributional("normal"), X, y, boosting="rf", bagging_fraction=0.5, bagging_freq=1)


def test_b10_the_metric_is_the_log_score():
    X, y = rows()
    X_held, y_held = rows(seed=1)
    loss = Distributional("normal")
    booster, history = train(loss, X, y, valid=(X_held, y_held))
    assert list(history["valid_0"]) == ["nll"]
    mean, log_sd = booster.predict(X_held).T
    by_hand = -stats.norm.logpdf(y_held, mean, np.exp(log_sd)).mean()
    assert history["valid_0"]["nll"][-1] == pytest.approx(by_hand, abs=1e-5)  # labels are float32


def test_offsets_are_initial_scores():
    rng = np.random.default_rng(0)
    X, offset = rng.normal(size=(500, 2)), np.log(rng.choice([0.5, 1.0, 4.0], 500))
    y = rng.poisson(np.exp(1.0 + 0.3 * X[:, 0] + offset)).astype(float)
    loss = Distributional("poisson")
    booster, _ = train(loss, X, y, init_score=offset)
    dist = loss.predict_dist(booster, X, offset=offset)
    assert dist.mean().sum() == pytest.approx(y.sum(), rel=0.02)
    np.testing.assert_allclose(dist.mean() / loss.predict_dist(booster, X).mean(), np.exp(offset))


def test_a_parameter_without_splits_still_moves():
    """All rows want a smaller scale alike: no tree, yet the scale must follow, also in the text."""
    x = np.repeat([0.0, 1.0], 100)[:, None]
    y = 10.0 * x[:, 0] + 1e-3 * np.random.default_rng(0).normal(size=200)
    loss = Distributional("normal", step="natural")
    booster, _ = train(loss, x, y, 150)
    sd = loss.predict_dist(lightgbm.Booster(model_str=booster.model_to_string()), x).std()
    assert sd.max() < 0.1


def test_shapes_and_settings_are_checked():
    X, y = rows()
    with pytest.raises(ValueError, match="num_class=2"):
        train(Distributional("normal"), X, y, num_class=3)
    with pytest.raises(ValueError, match=r"label must hold numbers in \(0, inf\)"):
        train(Distributional("gamma"), X, y - 500)
    with pytest.raises(ValueError, match="pass n_classes"):
        Distributional("categorical")
    with pytest.raises(ValueError, match="metric must be one of"):
        Distributional("normal", metric="rmse")
    assert "normal" not in repr(Distributional("poisson"))


def test_many_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5]).astype(float)
    loss = Distributional(get_family("categorical").ready(y))
    dist = loss.predict_dist(train(loss, X, y)[0], X)
    assert (dist.probabilities().argmax(axis=1) == y).mean() > 0.95
    np.testing.assert_allclose(dist.probabilities().sum(axis=1), 1.0)
