"""Rare ways through the CatBoost adapter: printed forms, refusals, small and shrunk models."""

from __future__ import annotations

import copy
import types
from typing import ClassVar

import numpy as np
import pytest
from catboost import CatBoost, CatBoostError, Pool

from boostplugins import VirtualEnsemble
from boostplugins.catboost import CyclicalSGLB
from boostplugins.catboost.callback import EarlyStopping, interruptible
from boostplugins.catboost.distributional import Distributional
from boostplugins.catboost.noise_variance import held_out_variance
from boostplugins.catboost.training import restore
from boostplugins.losses import NormalLikelihood, Softmax, SquaredError

QUIET = {"verbose": False, "allow_writing_files": False, "thread_count": 1}


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    return X, X[:, 0] + 0.3 * rng.normal(size=60)


def fit(chain, pool, iterations=3, **params):
    model = CatBoost(
        QUIET | {"iterations": iterations, "loss_function": chain} | chain.catboost_params() | params
    )
    return chain.fit(model, pool)


def test_equal_chains_have_one_hash_and_say_their_settings():
    chain = CyclicalSGLB(SquaredError(1.0), shrink=0.1)
    assert len({chain, copy.deepcopy(chain), CyclicalSGLB(SquaredError(1.0), shrink=0.1)}) == 1
    assert "shrink=0.1" in repr(chain)
    clock = chain.callback()
    assert type(copy.deepcopy(clock)) is type(clock)


def test_early_stopping_names_a_metric_that_is_not_there():
    stop = EarlyStopping(5, metric="MAE")
    info = types.SimpleNamespace(iteration=1, metrics={"validation": {"RMSE": [1.0], "R2": [0.0]}})
    with pytest.raises(ValueError, match=r"metric must be one of \['R2', 'RMSE'\], got 'MAE'"):
        stop.after_iteration(info)


def test_ctrl_c_within_catboost_is_ctrl_c():
    with pytest.raises(KeyboardInterrupt), interruptible():
        raise CatBoostError("trace\nKeyboardInterrupt: \n")
    with pytest.raises(CatBoostError, match="else"), interruptible():
        raise CatBoostError("something else")


class Broken(SquaredError):
    kernel = None
    error: ClassVar[BaseException | None] = None

    def direction(self, y, raw):
        if self.error is not None:
            raise self.error
        return np.full(raw.shape, np.nan)


def test_an_error_after_a_ctrl_c_is_no_ctrl_c(data, monkeypatch):
    """CatBoost leaves the first error in the thread, and names it with every later one."""
    chain = CyclicalSGLB(Broken(0.1))
    for error, expected in (
        (KeyboardInterrupt(), pytest.raises(KeyboardInterrupt)),
        (ValueError("mine"), pytest.raises(CatBoostError, match="ValueError: mine")),
        (None, pytest.raises(CatBoostError, match="direction of .* must be finite, got NaN or infinity")),
    ):
        monkeypatch.setattr(Broken, "error", error)
        with expected:
            fit(chain, chain.pool(*data), eval_metric="RMSE")


class Counts:
    seen = 0

    def after_iteration(self, info):
        self.seen += 1


def test_callbacks_are_none_one_or_many(data):
    chain, counts = CyclicalSGLB(SquaredError(1.0)), Counts()
    settings = QUIET | {"iterations": 3, "loss_function": chain, "eval_metric": "RMSE"}
    for callbacks in (None, counts, [counts, chain.callback()]):
        chain.fit(CatBoost(settings | chain.catboost_params()), *data, callbacks=callbacks)
    assert counts.seen == 6


def test_a_metric_of_more_raw_scores_than_the_loss_has(data):
    chain = CyclicalSGLB("Logloss")
    with pytest.raises(ValueError, match="eval_metric must be of one raw score, as the logistic loss"):
        fit(chain, chain.pool(data[0], data[1] > 0), eval_metric="MultiClass")


def test_a_chain_that_is_not_the_models(data):
    chain = CyclicalSGLB(SquaredError(1.0))
    model = fit(chain, chain.pool(*data), 20, eval_metric="RMSE")
    with pytest.raises(ValueError, match="the chain must have 1 raw scores a row, as the model has, got 2"):
        VirtualEnsemble.from_catboost(model, chain=CyclicalSGLB("RMSEWithUncertainty"))


@pytest.mark.parametrize(
    ("loss", "metric", "message"),
    [
        (NormalLikelihood(), "RMSE", "eval_metric='RMSE' crashes CatBoost"),
        (NormalLikelihood(), "MAE", r"eval_metric must be loss.metric\(\) or 'MultiRMSE'"),
        (Softmax(3), "Accuracy", r"eval_metric must be loss.metric\(\) for classes"),
    ],
)
def test_metrics_that_a_pool_cannot_have_are_refused(loss, metric, message, data):
    X, y = data
    chain = CyclicalSGLB(loss)
    pool = chain.pool(X, y if metric != "Accuracy" else np.arange(60) % 3)
    with pytest.raises(ValueError, match=message):
        fit(chain, pool, eval_metric=metric)


@pytest.mark.parametrize("loss", [NormalLikelihood(), Softmax(3)], ids=lambda loss: loss.name)
def test_several_outputs_need_a_pool_or_multiclass(loss, data):
    X, _ = data
    chain = CyclicalSGLB(loss)
    params = (
        QUIET | {"iterations": 2, "loss_function": chain, "eval_metric": "RMSE"} | chain.catboost_params()
    )
    with pytest.raises(ValueError, match="'MultiClass' for classes|has 2 outputs; CatBoost would crash"):
        chain.fit(CatBoost(params), X, np.arange(60) % 3)


def test_a_shrunk_chain_that_keeps_its_start_needs_trees_without_empty_leaves(data):
    chain = CyclicalSGLB(SquaredError(1.0), shrink=0.1, shrink_to="start")
    with pytest.raises(ValueError, match="needs grow_policy="):
        fit(chain, chain.pool(*data))


def test_a_chain_of_three_classes_is_read_with_its_shrinkage(data):
    """The states are those of the trees so far, times what shrinks them later."""
    X = data[0]
    chain = CyclicalSGLB(Softmax(3), temperature=np.inf, shrink=0.2)
    model = fit(chain, chain.pool(X, np.arange(60) % 3), 4, eval_metric=chain.metric())
    with pytest.warns(UserWarning, match="members"):
        ensemble = VirtualEnsemble.from_catboost(model, n_members=4)
    last = ensemble.members(X)[:, -1]
    np.testing.assert_allclose(last, model.predict(X, prediction_type="RawFormulaVal"), atol=1e-6)
    assert "VirtualEnsemble(" in repr(ensemble)


def test_classes_are_for_losses_of_classes(data):
    chain = CyclicalSGLB(SquaredError(1.0))
    with pytest.warns(UserWarning, match="members"):
        ensemble = VirtualEnsemble.from_catboost(fit(chain, chain.pool(*data), eval_metric="RMSE"))
    with pytest.raises(AttributeError, match="predict_proba needs a classification loss, got"):
        ensemble.predict_proba(data[0])


def test_bytes_that_are_no_model_are_one_error():
    with pytest.raises(ValueError, match="the chain is no CatBoost model"):
        restore(b"no model")


def test_noise_of_few_or_inexplicable_rows_is_their_variance():
    y = np.arange(4.0)
    assert held_out_variance(Pool(np.arange(4.0)[:, None], y)) == pytest.approx(y.var())
    y = np.arange(60.0) % 7
    assert held_out_variance(Pool(np.ones((60, 1)), y)) == pytest.approx(y.var())


def test_distributional_says_what_it_is_and_what_it_lacks(data):
    X, y = data
    loss = Distributional("normal")
    assert repr(loss).startswith("Distributional(")
    with pytest.raises(ValueError, match="must know its number of classes"):
        Distributional("categorical")
    with pytest.raises(ValueError, match=r"train on loss.pool\(X, y\)"):
        loss.calc_ders_range([0.0], [0.0], None)
    with pytest.raises(ValueError, match="finish needs a fit"):
        loss.finish(CatBoost())
    with pytest.raises(ValueError, match="offset must have 60 rows, got 3"):
        loss.pool(X, y, offset=np.zeros(3))
    with pytest.raises(CatBoostError):
        loss.fit(X, y, rounds=2, depth=-1)
    loss.fit(X, y, rounds=2, eval_set=(X, y), thread_count=1)  # watched, not stopped
