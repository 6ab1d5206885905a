"""Fits on CatBoost under which parameters could not take turns: told, not trained to something else."""

from __future__ import annotations

import catboost
import numpy as np
import pytest

from boostplugins import DistributionalRegressor
from boostplugins.catboost import Distributional

from .test_distributional import QUICK, rows

PLAIN = {"iterations": 20, "depth": 2, "verbose": False, "thread_count": 1, "allow_writing_files": False}
X, Y = rows(100)


def model(loss, **more):
    return catboost.CatBoost({**loss.catboost_params(), **PLAIN, **more})


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("boosting_type", "Ordered"),
        ("leaf_estimation_iterations", 5),
        ("leaf_estimation_backtracking", "AnyImprovement"),
        ("model_shrink_rate", 0.1),
        ("langevin", True),
        ("loss_function", "RMSE"),
        ("objective", "RMSE"),
        ("eval_metric", "RMSE"),
    ],
)
def test_settings_that_break_the_turns_are_refused(setting, value):
    with pytest.raises(ValueError, match=f"{setting} must be"):
        Distributional("normal").fit(X, Y, **QUICK, **{setting: value})
    with pytest.raises(ValueError, match=f"{setting} must be"):
        DistributionalRegressor("normal", booster="catboost", booster_params={setting: value}).fit(X, Y)


@pytest.mark.parametrize("setting", ["thread_count", "min_data_in_leaf", "min_child_samples", "max_leaves"])
def test_settings_at_which_catboost_ends_the_process_are_refused(setting):
    more = {"grow_policy": "Lossguide" if setting == "max_leaves" else "Depthwise", setting: 0}
    with pytest.raises(ValueError, match=f"{setting} must not be 0"):
        Distributional("normal").fit(X, Y, **{**QUICK, **more})
    with pytest.raises(ValueError, match=f"{setting} must not be 0"):
        DistributionalRegressor("normal", booster="catboost", booster_params=more).fit(X, Y)


def test_ordinary_settings_are_not():
    loss = Distributional("normal")
    more = {"grow_policy": "Depthwise", "bootstrap_type": "Bernoulli", "subsample": 0.7, "has_time": True}
    assert loss.fit(X, Y, **QUICK, **more, model_shrink_rate=0.0).tree_count_ == 30


def test_rounds_are_not_iterations():
    with pytest.raises(ValueError, match="pass rounds"):
        Distributional("normal").fit(X, Y, iterations=10)


def _without_callback(loss):
    model(loss).fit(loss.pool(X, Y))


def _leaf_iterations(loss):
    model(loss, leaf_estimation_iterations=3).fit(loss.pool(X, Y), callbacks=[loss.callback()])


def _going_on(loss):
    first = loss.fit(X, Y, **QUICK)
    model(loss).fit(loss.pool(X, Y), init_model=first, callbacks=[loss.callback()])


def _baseline(loss):
    model(loss).fit(loss.pool(X, Y, baseline=np.ones(100)), callbacks=[loss.callback()])


def _responses(loss):
    loss.pool(X, Y)
    model(loss).fit(X, Y, callbacks=[loss.callback()])


def _earlier_pool(loss):
    earlier = loss.pool(X, Y)
    loss.pool(X[:50], Y[:50])
    model(loss).fit(earlier, callbacks=[loss.callback()])


def _two_evaluation_pools(loss):
    pool = loss.pool(X, Y)
    held = [loss.eval_pool(X, Y), loss.eval_pool(X[:50], Y[:50])]
    model(loss).fit(pool, eval_set=held, callbacks=[loss.callback()])


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (_without_callback, "callbacks must hold"),
        (_leaf_iterations, "callbacks must hold"),
        (_going_on, "training must begin with no tree"),
        (_baseline, "is to be given as offset"),
        (_responses, "labels must be those of loss.pool"),
        (_earlier_pool, "labels must be those of loss.pool"),
        (_two_evaluation_pools, "the one pool that loss.eval_pool made"),
    ],
)
def test_fits_that_the_objective_does_not_follow_end(fit, message):
    with pytest.raises(catboost.CatBoostError, match=message):
        fit(Distributional("normal"))


@pytest.mark.parametrize("held", ["other rows", "the training pool"])
def test_a_model_cut_by_a_score_of_other_rows_is_refused(held):
    loss = Distributional("normal")
    pool = loss.pool(X, Y)
    trained = model(loss).fit(
        pool, eval_set=pool if held == "the training pool" else (X, Y), callbacks=[loss.callback()]
    )
    with pytest.raises(ValueError, match="cut back to 1 of 20 trees"):
        loss.finish(trained)


def test_a_slice_of_the_pool_is_a_training_set():
    loss = Distributional("normal")
    part = loss.pool(X, Y).slice(np.arange(0, 100, 2))
    trained = loss.finish(model(loss).fit(part, callbacks=[loss.callback()]))
    assert abs(loss.predict_dist(trained, X).mean().mean() - 500.0) < 1.0


def test_held_out_rows_may_be_given_in_a_list():
    one, other = (
        Distributional("normal").fit(X, Y, eval_set=held, early_stopping_rounds=3, **QUICK)
        for held in ((X, Y), [(X, Y)])
    )
    assert (one.predict(X) == other.predict(X)).all()


@pytest.mark.parametrize("size", [1e8, 1e9, 1e10])
def test_scores_that_catboost_could_not_read_again(size):
    """A held-out outlier of so many standard deviations scores about 1e16, 1e18 and 1e20."""
    loss = Distributional("normal")
    far = np.r_[500.0 + size, Y[1:]]
    trained = loss.fit(X, Y, eval_set=(X, far), early_stopping_rounds=3, **QUICK)
    assert loss._fit.watch.history[0] > 1e13
    assert np.isfinite(loss.predict_dist(trained, X).mean()).all()


@pytest.mark.parametrize("held_out", [{"n_folds": None, "validation_fraction": None}, {}])
def test_progress_is_shown_only_of_held_out_rows(held_out, capfd):
    made = DistributionalRegressor("normal", booster="catboost", n_estimators=4, verbose=1, **held_out)
    made.fit(X, Y)
    assert bool(capfd.readouterr().out) == (not held_out)


def test_verbose_fits(capfd):
    Distributional("normal").fit(X, Y, **QUICK, verbose=10)
    assert "learn" in capfd.readouterr().out
