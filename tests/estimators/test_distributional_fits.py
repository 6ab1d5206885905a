"""Fits that break off, parts without a feature, settings under any of their names."""

from __future__ import annotations

import warnings
from importlib import import_module
from unittest import mock

import numpy as np
import pytest

from boostplugins import DistributionalRegressor

BOOSTERS = ["lightgbm", "catboost"]
SINGLE = {"n_estimators": 5, "n_folds": None, "validation_fraction": None}
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 3))
Y = 10.0 + X[:, 0] + 0.3 * RNG.normal(size=60)


def made(booster, **more):
    return DistributionalRegressor("normal", booster=booster, **{**SINGLE, **more})


@pytest.mark.parametrize("booster", BOOSTERS)
def test_a_fit_that_breaks_off_leaves_the_earlier_one(booster):
    model = made(booster).fit(X, Y)
    before = model.predict(X)
    trainer = import_module(f"boostplugins.{booster}.distributional_training")
    with mock.patch.object(trainer, "train", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        model.set_params(family="gamma").fit(X, 1000.0 * Y)
    np.testing.assert_array_equal(model.predict(X), before)
    with pytest.raises(ValueError, match="y must"):
        model.fit(X[:, :2], np.full(len(Y), np.nan))
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_settings_refused_leave_the_fit_as_it_was(booster):
    model = made(booster).fit(X, Y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="depth must be"):
        model.set_params(depth=0).fit(X[:, :2], Y)
    assert (model.predict(X) == before).all()


@pytest.mark.parametrize(("booster", "other"), [BOOSTERS, BOOSTERS[::-1]])
def test_a_file_holds_the_booster_of_the_fit_not_the_one_set_since(booster, other, tmp_path):
    model = made(booster).fit(X, Y)
    model.set_params(booster=other).save(tmp_path / "model")
    loaded = DistributionalRegressor.load(tmp_path / "model")
    assert loaded.booster == booster
    assert (loaded.predict(X) == model.predict(X)).all()
    loaded.set_params(booster=other).save(tmp_path / "again")
    assert (DistributionalRegressor.load(tmp_path / "again").predict(X) == model.predict(X)).all()


@pytest.mark.parametrize("booster", BOOSTERS)
def test_constants_of_all_folds_make_the_mixture(booster, tmp_path):
    """Two rows in two folds: one trained on each, nothing to split."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = made(booster, n_folds=2, calibration=None).fit([[0.0], [1.0]], [1.0, 3.0])
    model.save(tmp_path / "model")
    for fitted in (model, DistributionalRegressor.load(tmp_path / "model")):
        assert fitted.predict([[0.5]]) == pytest.approx(2.0)
        assert fitted.predict_raw([[0.5]])[0, 0] == pytest.approx(2.0)
        assert fitted.contributions([[0.5]]).sum(axis=1)[0, 0] == pytest.approx(2.0)
        assert fitted.members([[0.5]]).shape == (1, 2, 2)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_a_fold_without_a_feature_does_not_shift_the_others(booster):
    """The one row that makes the feature vary is held out of one of the models."""
    x = np.zeros((60, 1))
    x[7] = 1.0
    model = made(booster, n_folds=3, calibration=None).fit(x, Y)
    assert len(model._limits) == len(model.models_) == len(model.history_) == 2


@pytest.mark.parametrize("booster", BOOSTERS)
def test_a_constant_too_is_fitted_again_on_all_rows(booster):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = made(booster, validation_fraction=0.3, calibration=None).fit(np.zeros((60, 1)), Y)
    assert model.predict([[0.0]]) == pytest.approx(Y.mean())


def test_one_row_cannot_be_held_out():
    with pytest.raises(ValueError, match="validation_fraction needs at least two rows"):
        made("lightgbm", validation_fraction=0.3).fit(X, Y, sample_weight=np.arange(60) == 3)


@pytest.mark.parametrize(
    ("booster", "name", "alias", "value"),
    [
        ("lightgbm", "learning_rate", "eta", 0.5),
        ("lightgbm", "lambda_l2", "reg_lambda", 100.0),
        ("lightgbm", "min_data_in_leaf", "min_child_samples", 25),
        ("catboost", "learning_rate", "eta", 0.5),
        ("catboost", "l2_leaf_reg", "reg_lambda", 100.0),
        ("catboost", "depth", "max_depth", 1),
    ],
)
def test_parameters_of_the_booster_win_under_any_name(booster, name, alias, value):
    plain = made(booster).fit(X, Y).predict(X)
    one, other = (made(booster, booster_params={key: value}).fit(X, Y).predict(X) for key in (name, alias))
    assert (one == other).all()
    assert (one != plain).any()


def test_answers_to_questions_that_mean_nothing_are_refused():
    model = made("lightgbm").fit(X, Y)
    with pytest.raises(ValueError, match="y must be finite, got nan in row 0"):
        model.log_score(X, np.r_[np.nan, Y[1:]])
    for q in ([], [[0.1, 0.9]]):
        with pytest.raises(ValueError, match=r"q must be a number or have shape \(n_quantiles,\)"):
            model.predict_quantiles(X, q)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"schedule": 3}, "schedule must be an instance"),
        ({"mask": "x"}, "mask must be an instance"),
        ({"booster_params": 3}, "booster_params must be a dict"),
    ],
)
def test_arguments_of_the_wrong_type_are_named(settings, message):
    with pytest.raises(TypeError, match=message):
        made("lightgbm", **settings).fit(X, Y)
