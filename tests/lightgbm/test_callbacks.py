"""Metrics, early stopping and callbacks of the LightGBM chain: cases that users reported."""

from __future__ import annotations

import math

import lightgbm as lgb
import numpy as np
import pytest

from boostplugins import SGLBRegressor, VirtualEnsemble
from boostplugins.lightgbm import CyclicalSGLB
from boostplugins.losses import Logistic, SquaredError
from tests.lightgbm.common import QUIET, plain, regression, train


def test_forgotten_or_foreign_callback_is_one_error():
    X, y = regression(60)
    chain = CyclicalSGLB(SquaredError(1.0))
    params = {"objective": chain} | QUIET | chain.lightgbm_params()
    data = lgb.Dataset(X, y)
    with pytest.raises(ValueError, match="callbacks must hold the chain's clock"):
        lgb.train(params, data, 3)
    lgb.train(params, data, 3, callbacks=[chain.callback()])
    with pytest.raises(ValueError, match="callbacks must hold the chain's clock"):
        lgb.train(params, data, 3)  # the earlier fit is over
    with pytest.raises(ValueError, match="callbacks must hold the chain's clock"):
        lgb.LGBMRegressor(objective=chain, **QUIET).fit(X, y)
    other = CyclicalSGLB(SquaredError(2.0))
    with pytest.raises(ValueError, match="objective must be the chain"):
        lgb.train(params, data, 3, callbacks=[other.callback()])
    with pytest.raises(ValueError, match="objective must be the chain"):
        lgb.train(params | {"objective": "regression"}, data, 3, callbacks=[chain.callback()])


def test_b10_the_watched_metric_is_the_loss():
    X, y = regression()
    chain = plain(SquaredError(0.09))
    model = lgb.LGBMRegressor(
        objective=chain, n_estimators=200, learning_rate=0.3, **QUIET, **chain.lightgbm_params()
    )
    model.fit(
        X[:200],
        y[:200],
        eval_X=X[200:],
        eval_y=y[200:],
        eval_metric=chain.metric(),
        callbacks=[chain.callback(), lgb.early_stopping(10, verbose=False)],
    )
    history = model.evals_result_["valid_0"]
    assert list(history) == ["log_score"]
    assert np.argmin(history["log_score"]) + 1 == model.best_iteration_ < 200
    with pytest.warns(UserWarning, match="without Langevin noise"):
        ensemble = VirtualEnsemble.from_lightgbm(model, n_members=1)
    np.testing.assert_allclose(ensemble.predict(X), model.predict(X))


def test_b10_other_metrics_would_see_internal_scores():
    X, y = regression()
    chain = plain(SquaredError(0.09))
    data = lgb.Dataset(X, y)
    for metric, message in (("l2", "metric must be 'None', got 'l2'"), (["auc", "rmse"], "got 'rmse'")):
        params = {"objective": chain} | QUIET | chain.lightgbm_params(metric=metric)
        with pytest.raises(ValueError, match=message):
            lgb.train(params, data, 3, valid_sets=[data.create_valid(X, y)], callbacks=[chain.callback()])
    chain = plain("binary")
    data = lgb.Dataset(X, y > 0)
    params = {"objective": chain} | QUIET | chain.lightgbm_params(metric="auc")
    booster = lgb.train(
        params, data, 3, valid_sets=[data.create_valid(X, y > 0)], callbacks=[chain.callback()]
    )
    assert booster.best_score["valid_0"]["auc"] > 0.8


class Stop(Exception):
    """An exception of the user's."""


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, Stop])
def test_e01_exceptions_of_callbacks_reach_the_caller(kind):
    X, y = regression(60)
    chain = CyclicalSGLB(SquaredError(1.0))

    def callback(env):
        if env.iteration == 3:
            raise kind("stop here")

    params = {"objective": chain} | QUIET | chain.lightgbm_params()
    with pytest.raises(kind, match="stop here"):
        lgb.train(params, lgb.Dataset(X, y), 10, callbacks=[chain.callback(), callback])
    train(chain, X, y)  # nothing is left behind


def test_e02_a_metric_of_ones_own_says_its_direction():
    X, y = regression(200)
    chain = plain(Logistic())
    labels = (y > np.median(y)).astype(float)

    def accuracy(y, raw, weight):
        return float(np.mean((raw[:, 0] > 0) == y))

    data = lgb.Dataset(X[:150], labels[:150])
    booster = lgb.train(
        {"objective": chain} | QUIET | chain.lightgbm_params(),
        data,
        30,
        valid_sets=[data.create_valid(X[150:], labels[150:])],
        feval=chain.metric(accuracy, maximize=True),
        callbacks=[chain.callback(), lgb.early_stopping(5, verbose=False)],
    )
    assert booster.best_iteration > 0
    assert booster.best_score["valid_0"]["accuracy"] > 0.7


@pytest.mark.filterwarnings("ignore:training stopped after")  # with few members
def test_e03_e04_hooks_of_estimator_callbacks():
    X, y = regression(60)

    class Recorder:
        def __init__(self, stop=None):
            self.calls, self.stop, self.last = [], stop, None

        def before_training(self):
            self.calls.append("before")

        def after_iteration(self, info):
            self.calls.append(info.iteration)
            self.last = info
            return False if info.iteration == self.stop else None

        def after_training(self):
            self.calls.append("after")

    recorder = Recorder()
    model = SGLBRegressor(booster="lightgbm", n_estimators=20, n_jobs=1)
    model.fit(X[:50], y[:50], eval_set=(X[50:], y[50:]), callbacks=[recorder])
    assert recorder.calls == ["before", *range(1, 21), "after"]
    assert len(recorder.last.metrics["validation"]["log_score"]) == 20
    assert recorder.last.elapsed > 0
    recorder = Recorder(stop=7)
    model.fit(X, y, callbacks=[recorder])
    assert recorder.calls[-2:] == [7, "after"]
    assert model.models_[0].current_iteration() == 7


def test_e05_nan_metric():
    X, y = regression(60)
    chain = plain(SquaredError(1.0))
    series = iter([1.0, 0.9, math.nan, 0.8, 0.85, 0.9, 0.95])

    def stub(scores, data):
        return "stub", next(series), False

    data = lgb.Dataset(X, y)
    params = {"objective": chain} | QUIET | chain.lightgbm_params()
    options = {"valid_sets": [data.create_valid(X, y)]}
    stop = lgb.early_stopping(3, verbose=False)
    booster = lgb.train(params, data, 7, feval=stub, callbacks=[chain.callback(), stop], **options)
    assert booster.best_iteration == 4
    bad = chain.metric(lambda y, raw, weight: math.nan, "mine", maximize=False)
    with pytest.raises(ValueError, match="metric 'mine' is NaN in iteration 0"):
        lgb.train(params, data, 7, feval=bad, callbacks=[chain.callback()], **options)
