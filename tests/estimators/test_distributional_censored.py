"""DistributionalRegressor on rows with limits of their own: survival times and detection limits."""

from __future__ import annotations

import pickle

import lightgbm
import numpy as np
import pytest

from boostplugins import CosineCycle, DistributionalRegressor
from boostplugins.catboost import Distributional as CatBoostDistributional
from boostplugins.families import IntervalCensored, Normal, Weibull
from boostplugins.lightgbm import Distributional as LightGBMDistributional
from tests.estimators.distributional_data import both, quick, spread_data


def survival_data(n=400, seed=0):
    """Weibull times whose log scale is x0, half of them censored at times that depend on x1."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    time = np.exp(X[:, 0]) * rng.weibull(1.5, n)
    censor = np.exp(0.5 * X[:, 1]) * rng.exponential(1.2, n)
    event = time <= censor
    return X, np.minimum(time, censor), event, time


def pairs(time, event):
    return np.column_stack([time, np.where(event, time, np.inf)])


@both
def test_censored_times_are_neither_events_nor_lost(booster, tmp_path):
    X, seen, event, time = survival_data()
    assert 0.3 < event.mean() < 0.7
    family = IntervalCensored(Weibull())
    model = quick(family, booster=booster).fit(X, pairs(seen, event))
    score = np.average(Weibull().log_pdf(time, model.predict_dist(X).theta))
    ignored = quick("weibull", booster=booster).fit(X, seen)
    dropped = quick("weibull", booster=booster).fit(X[event], seen[event])
    for other in (ignored, dropped):  # both take times to be shorter than they are
        assert score > np.average(other.predict_dist(X).log_pdf(time)) + 0.1
    assert np.median(model.predict_dist(X).cdf(time)) == pytest.approx(0.5, abs=0.1)
    model.save(tmp_path / "model")
    for again in (DistributionalRegressor.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_dist(X).theta, model.predict_dist(X).theta)
    assert model.log_score(X, pairs(seen, event)) == pytest.approx(
        family.log_pdf(family.responses(pairs(seen, event)), model.predict_dist(X).theta).mean()
    )


@both
@pytest.mark.parametrize("step", ["fisher", "natural"])
def test_observed_pairs_give_the_plain_fit(booster, step):
    X, y = spread_data(150)
    plain = quick("normal", booster=booster, step=step).fit(X, y)
    model = quick(IntervalCensored(Normal()), booster=booster, step=step).fit(X, np.column_stack([y, y]))
    np.testing.assert_array_equal(model.predict_dist(X).theta, plain.predict_dist(X).theta)


@both
def test_units_and_held_out_scores_of_censored_rows(booster):
    """Scores are in units of the response: only rows with a density change with them."""
    X, y = spread_data(240)
    limit = np.where(np.arange(240) % 3 == 0, np.inf, y)
    held = slice(180, None)
    fits = []
    for a, b in ((1.0, 0.0), (1000.0, 50.0)):
        z = np.column_stack([a * y + b, a * limit + b])
        model = quick(IntervalCensored(Normal()), booster=booster).fit(
            X[:180], z[:180], eval_set=(X[held], z[held])
        )
        assert model.history_[0][-1] == pytest.approx(-model.log_score(X[held], z[held]), rel=1e-9)
        fits.append((model.predict_dist(X).theta - [b, 0.0]) / a)
    np.testing.assert_allclose(fits[0], fits[1], rtol=1e-6, atol=1e-9)


@both
def test_defaults_stop_early_and_calibrate_on_censored_rows(booster):
    X, y = spread_data(300)
    limit = np.where(y > np.quantile(y, 0.7), np.inf, y)
    low = np.minimum(y, np.quantile(y, 0.7))
    model = DistributionalRegressor(IntervalCensored(Normal()), booster=booster, n_estimators=60).fit(
        X, np.column_stack([low, limit]), sample_weight=np.arange(300) % 2 + 0.5
    )
    assert len(model.models_) == 5
    assert model.calibration_ is not None
    assert 0.5 < model.calibration_.factor_ < 2.0
    inside = model.predict_interval(X, coverage=0.9)
    assert 0.8 < np.mean((y > inside[:, 0]) & (y < inside[:, 1])) < 0.98


@both
def test_chains_and_offsets_of_censored_rows(booster):
    X, seen, event, time = survival_data(200)
    offset = np.where(np.arange(200) % 2, 2.0, 0.0)
    model = quick(
        IntervalCensored(Weibull()), booster=booster, n_estimators=50, schedule=CosineCycle(length=10)
    ).fit(X, pairs(seen * np.exp(offset), event), offset=offset)
    dist = model.predict_dist(X, offset=offset)
    assert dist.theta.shape == (200, 5, 2)
    assert np.median(dist.cdf(time * np.exp(offset))) == pytest.approx(0.5, abs=0.15)
    assert (model.predict_uncertainty(X).knowledge > 0).all()


def test_both_plug_ins_take_pairs():
    X, seen, event, _ = survival_data(200)
    family, y = IntervalCensored(Weibull()), pairs(seen, event)
    start = Weibull().theta(family.init(family.responses(y)))
    constant = -family.log_pdf(family.responses(y), start[None]).mean()

    loss = LightGBMDistributional(family)
    data = lightgbm.Dataset(X[:150], loss.labels(y[:150]))
    valid = lightgbm.Dataset(X[150:], loss.labels(y[150:]), reference=data)
    told = {}
    params = {**loss.lightgbm_params(), "verbose": -1, "num_threads": 1, "max_depth": 3}
    callbacks = [loss.callback(), lightgbm.record_evaluation(told)]
    booster = lightgbm.train(
        params, data, 30, valid_sets=[valid], valid_names=["v"], feval=loss.metric, callbacks=callbacks
    )
    dist = loss.predict_dist(booster, X)
    assert -dist.log_pdf(y).mean() < constant - 0.05
    assert told["v"]["nll"][-1] == pytest.approx(-dist[150:].log_pdf(y[150:]).mean(), rel=1e-5)
    with pytest.raises(ValueError, match="must be those of loss.labels"):
        lightgbm.train(params, lightgbm.Dataset(X, seen), 2, callbacks=[loss.callback()])

    other = CatBoostDistributional(family)
    model = other.fit(X, y, rounds=30, learning_rate=0.1, depth=3, thread_count=1, eval_set=(X, y))
    assert -other.predict_dist(model, X).log_pdf(y).mean() < constant - 0.05


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"metric": "crps"}, "metric must be 'nll' for censored"),
        ({"calibration": "conformal", "n_folds": 2}, "calibration must be None, or 'scale'"),
        ({"calibration": "scale", "n_folds": 2}, "calibration must be None, or 'scale'"),
    ],
)
def test_what_censored_rows_have_not_is_refused(settings, message):
    X, seen, event, _ = survival_data(40)
    with pytest.raises(ValueError, match=message):
        quick(IntervalCensored(Weibull()), **settings).fit(X, pairs(seen, event))


def test_pairs_need_their_family():
    X, seen, event, _ = survival_data(40)
    with pytest.raises(ValueError, match="are for the family IntervalCensored"):
        quick("weibull").fit(X, pairs(seen, event))
    with pytest.raises(ValueError, match="metric must be 'nll' for censored"):
        LightGBMDistributional(IntervalCensored(), metric="crps")
    with pytest.raises(ValueError, match="must hold lower <= upper"):
        quick(IntervalCensored()).fit(X, pairs(seen, event)[:, ::-1])
