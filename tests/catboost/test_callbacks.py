"""Callbacks beside the chain's clock (reports E01 to E05)."""

import numpy as np
import pytest
from catboost import CatBoostRegressor

from boostplugins.catboost import Callback, CyclicalSGLB, EarlyStopping
from boostplugins.losses import SquaredError

QUIET = {"verbose": False, "allow_writing_files": False, "thread_count": 1, "iterations": 20}


class Pruned(Exception):
    """An optimiser's own exception."""


@pytest.fixture
def chain():
    return CyclicalSGLB(SquaredError(1.0))


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    return X, X[:, 0] + 0.1 * rng.normal(size=200)


def _model(chain, **params):
    settings = QUIET | chain.catboost_params() | {"eval_metric": "RMSE"} | params
    return CatBoostRegressor(loss_function=chain, **settings)


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, Pruned])
def test_e01_exceptions_keep_their_type(kind, chain, data):
    class Raises(Callback):
        def after_iteration(self, info):
            if info.iteration == 3:
                raise kind("mine")

    model = _model(chain)
    with pytest.raises(kind, match="mine"):
        chain.fit(model, *data, callbacks=[Raises()])
    assert model.tree_count_ == 3


def test_e03_hooks_are_called_once_each_and_every_iteration(chain, data):
    class Records(Callback):
        def __init__(self):
            self.calls = []

        def before_training(self):
            self.calls.append("before")

        def after_iteration(self, info):
            self.calls.append(info.metrics["learn"]["RMSE"][-1])

        def after_training(self):
            self.calls.append("after")

    record = Records()
    model = chain.fit(_model(chain, iterations=10), *data, callbacks=[record])
    assert (record.calls[0], record.calls[-1]) == ("before", "after")
    assert record.calls[1:-1] == model.get_evals_result()["learn"]["RMSE"]


def test_e04_none_goes_on_and_false_stops(chain, data):
    class Silent(Callback):
        def after_iteration(self, info):
            return None

    class Stops(Callback):
        def after_iteration(self, info):
            return info.iteration < 5

    assert chain.fit(_model(chain), *data, callbacks=[Silent()]).tree_count_ == 20
    assert chain.fit(_model(chain), *data, callbacks=[Silent(), Stops()]).tree_count_ == 5


def test_other_callbacks_stand_beside_the_clock(chain, data):
    class Counts:
        n = 0

        def after_iteration(self, info):
            self.n += 1
            return True

    counts = Counts()
    _model(chain).fit(*data, callbacks=[counts, chain.callback()])
    assert counts.n == 20


@pytest.mark.parametrize(("metric", "more"), [("RMSE", False), ("R2", True)])
def test_e02_the_direction_travels_with_the_metric(metric, more, chain, data):
    X, y = data
    stop = EarlyStopping(rounds=5, metric=metric)
    model = _model(chain, iterations=200, eval_metric=metric)
    chain.fit(model, X[:150], y[:150], eval_set=(X[150:], y[150:]), callbacks=[stop])
    series = model.get_evals_result()["validation"][metric]
    assert stop.watch.maximize is more
    assert stop.watch.best_iteration == (np.argmax(series) if more else np.argmin(series)) > 0
    assert len(series) < 200


def test_e02_an_unknown_direction_is_an_error(chain, data):
    with pytest.raises(ValueError, match="direction of metric 'Mine' is not known; pass maximize"):
        EarlyStopping(rounds=5, metric="Mine")
    with pytest.raises(ValueError, match="early stopping watches 'validation'.*pass eval_set"):
        chain.fit(_model(chain), *data, callbacks=[EarlyStopping(rounds=5)])


def test_e05_all_nan_metric_is_named(chain, data):
    class Nan:
        no_jit = True

        def is_max_optimal(self):
            return False

        def evaluate(self, approxes, target, weight):
            return float("nan"), 1.0

        def get_final_error(self, error, weight):
            return error

    X, y = data
    with pytest.raises(ValueError, match="Nan is NaN in every round"):
        chain.fit(
            _model(chain, eval_metric=Nan()),
            X,
            y,
            eval_set=(X, y),
            callbacks=[EarlyStopping(rounds=3, maximize=False)],
        )
