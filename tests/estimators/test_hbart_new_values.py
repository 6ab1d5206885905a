"""The log-linear variance at values that training never showed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from boostplugins import HBARTRegressor
from tests.estimators.bart_cases import FEW, SHORT, quiet

pytestmark = quiet
SAVED = Path(__file__).resolve().parents[1] / "data" / "saved"


def table(n=200):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=n), "c": rng.choice(list("uvw"), n), "year": 2020, "one": "x"})
    return X, X["a"] + rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    X, y = table()
    return HBARTRegressor(**FEW).fit(X, y), X


def noise(model, X):
    return model.posterior_draws(X)["noise"]


@pytest.mark.parametrize("level", ["new", None])
def test_an_unknown_level_is_the_average_level(fitted, level):
    model, X = fitted
    found = noise(model, X.assign(c=level))
    parts = np.log([noise(model, X.assign(c=known)) for known in "uvw"])
    share = [(X["c"] == known).mean() for known in "uvw"]
    np.testing.assert_allclose(np.log(found), np.tensordot(share, parts, 1), atol=1e-9)
    assert model.predict_dist(X.assign(c=level)).std().max() < 3  # the noise is 1


def test_an_unknown_level_is_a_missing_one_where_training_had_such():
    X, y = table(60)
    X.loc[::5, "c"] = None
    model = HBARTRegressor(**SHORT).fit(X, y)
    new, missing = (model.predict_dist(X.assign(c=level)).std() for level in ("new", None))
    np.testing.assert_array_equal(new, missing)
    assert "c missing" in model.variance_names_


@pytest.mark.parametrize("change", [{"year": 2021}, {"year": np.nan}, {"one": "y"}, {"one": None}])
def test_a_constant_column_has_no_effect_on_the_variance(fitted, change):
    model, X = fitted
    np.testing.assert_array_equal(noise(model, X.assign(**change)), noise(model, X))


def test_constants_that_floats_cannot_average_and_empty_columns():
    X, y = table(70)
    X = X[["a"]].assign(tenth=0.1, none=np.nan)
    model = HBARTRegressor(**SHORT).fit(X, y)
    found = noise(model, X.assign(tenth=7.0, none=7.0))
    np.testing.assert_array_equal(found, noise(model, X))


@pytest.mark.parametrize("side", [1, -1])
def test_a_far_value_has_the_variance_of_the_range_s_end(fitted, side):
    model, X = fitted
    end = (side * X["a"]).max() * side
    np.testing.assert_array_equal(noise(model, X.assign(a=side * 1e6)), noise(model, X.assign(a=end)))


def test_a_lone_row_of_another_year_leaves_later_years_alone():
    X, y = table()
    X.loc[0, "year"] = 2019
    model = HBARTRegressor(**FEW).fit(X, y)
    later = model.predict_dist(X.assign(year=2021)).std()
    np.testing.assert_array_equal(later[1:], model.predict_dist(X).std()[1:])


def test_covariates_of_a_function_are_cut_too():
    X, y = table(60)
    model = HBARTRegressor(variance_features=lambda X: X[["a"]].to_numpy() ** 3, **SHORT).fit(X[["a"]], y)
    far, end = (noise(model, pd.DataFrame({"a": [value]})) for value in (50.0, X["a"].max()))
    np.testing.assert_array_equal(far, end)


def test_ranges_are_saved_and_earlier_files_do_without(fitted, tmp_path):
    model, X = fitted
    model.save(tmp_path / "model")
    new = X.assign(a=1e3, c="new", year=2021, one="y")
    again = HBARTRegressor.load(tmp_path / "model")
    np.testing.assert_array_equal(noise(again, new), noise(model, new))
    old = HBARTRegressor.load(SAVED / "format2" / "hbart.model")
    assert np.isinf(old._variance_design.high)
    old.save(tmp_path / "old")
    assert np.isinf(HBARTRegressor.load(tmp_path / "old")._variance_design.high)
