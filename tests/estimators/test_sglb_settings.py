"""Settings of the SGLB estimators and of the boosters below them, and fits that break off."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoost, CatBoostError, CatBoostRegressor
from sklearn.exceptions import NotFittedError

from boostplugins import SGLBRegressor
from boostplugins.catboost import CyclicalSGLB

BOOSTERS = ["catboost", "lightgbm"]
SMALL = {"n_estimators": 20, "depth": 3, "n_jobs": 1}


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, X[:, 0] + 0.3 * rng.normal(size=120)


@pytest.mark.parametrize("settings", [{"learning_rate": 0.5}, {"booster_params": {"learning_rate": 0.3}}])
def test_steps_that_run_away_are_refused(settings, data):
    with pytest.raises(ValueError, match="learning_rate times the schedule's largest scale must be < 2"):
        SGLBRegressor(**settings).fit(*data)


def test_a_clock_without_its_chain_is_noticed(data):
    model = CatBoostRegressor(loss_function="RMSE", iterations=2, allow_writing_files=False, verbose=False)
    with pytest.raises(CatBoostError, match="pass loss_function=loss"):
        model.fit(*data, callbacks=[CyclicalSGLB().callback()])


@pytest.mark.parametrize("booster", BOOSTERS)
def test_another_loss_is_no_chain(booster, data):
    model = SGLBRegressor(booster=booster, booster_params={"objective": "RMSE"}, **SMALL)
    with pytest.raises(ValueError, match="must not hold objective|objective must be the chain"):
        model.fit(*data)


def test_long_runs_on_lightgbm_need_no_settings(data):
    model = SGLBRegressor(booster="lightgbm", n_estimators=1000, learning_rate=0.1, depth=2, n_jobs=1)
    assert np.isfinite(model.fit(*data).predict(data[0])).all()


@pytest.mark.parametrize(
    ("booster", "alias"),
    [("lightgbm", {"eta": 0.001}), ("lightgbm", {"shrinkage_rate": 0.001}), ("catboost", {"eta": 0.001})],
)
def test_aliases_of_the_boosters_win_too(booster, alias, data):
    plain = SGLBRegressor(booster=booster, **SMALL).fit(*data).predict(data[0])
    model = SGLBRegressor(booster=booster, booster_params=alias, **SMALL).fit(*data)
    assert np.std(model.predict(data[0])) < 0.5 * np.std(plain)


@pytest.mark.parametrize(
    ("booster", "alias"),
    [
        ("catboost", {"num_trees": 10, "max_depth": 2, "random_state": 3, "min_child_samples": 5}),
        ("catboost", {"iterations": 10, "silent": True}),
        ("lightgbm", {"num_trees": 10, "verbose": -1}),
    ],
)
def test_parameters_of_the_booster_under_any_name(booster, alias, data, capfd):
    model = SGLBRegressor(booster=booster, booster_params=alias, **SMALL).fit(*data)
    assert model.n_iterations_ == 10
    assert capfd.readouterr() == ("", "")


class _Breaks:
    def after_iteration(self, info):
        raise KeyboardInterrupt


@pytest.mark.parametrize("booster", BOOSTERS)
def test_a_fit_that_breaks_off_leaves_the_estimator_as_it_was(booster, data):
    X, y = data
    model = SGLBRegressor(booster=booster, **SMALL)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y, callbacks=[_Breaks()])
    with pytest.raises(NotFittedError):
        model.predict(X)
    before = model.fit(X, y).predict(X)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :2], 100.0 * y, callbacks=[_Breaks()])
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_a_fit_stays_with_the_booster_that_made_it(booster, data, tmp_path):
    model = SGLBRegressor(booster=booster, **SMALL).fit(*data)
    expected = model.predict(data[0])
    model.set_params(booster=BOOSTERS[1 - BOOSTERS.index(booster)])
    model.save(tmp_path / "model")
    for other in (pickle.loads(pickle.dumps(model)), SGLBRegressor.load(tmp_path / "model")):
        np.testing.assert_array_equal(other.predict(data[0]), expected)
    assert isinstance(model.fit(*data).models_[0], CatBoost) == (booster == "lightgbm")


@pytest.mark.parametrize("booster", BOOSTERS)
def test_columns_that_are_constant_in_single_precision(booster, data):
    X = 1.0 + 1e-12 * np.arange(120)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SGLBRegressor(booster=booster, **SMALL).fit(X, data[1])
        frame = pd.DataFrame({"x": X[:, 0], "kind": "one"})
        again = SGLBRegressor(booster=booster, **SMALL).fit(frame, data[1])
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(again.predict(frame)).all()


def test_callbacks_come_in_a_list(data):
    with pytest.raises(TypeError, match="callbacks must be a list"):
        SGLBRegressor(**SMALL).fit(*data, callbacks=_Breaks())
