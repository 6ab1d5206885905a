"""Point masses under a continuous family: what is said, and how often."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from boostplugins.estimators.soft_tree import SoftTreeRegressor
from boostplugins.estimators.soft_tree_forest import SoftForestRegressor
from boostplugins.families import Censored
from boostplugins.soft_trees.ties import find_ties


def cut_off(shift=0.0, sign=1.0):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 2))
    return X, shift + sign * np.maximum(X[:, 0] + 0.5 * rng.normal(size=150), 0.0), rng


def test_tied_responses_are_named_and_the_spread_keeps_its_floor():
    X, y, rng = cut_off()
    with pytest.warns(UserWarning, match="of 150 responses are 0, and the spread vanishes there") as told:
        model = SoftTreeRegressor(ridge=0.1).fit(X, y)
    text = str(told[0].message)
    assert text.startswith(f"SoftTreeRegressor: {(y == 0.0).sum()} of 150 responses are 0")
    assert "give family=Censored(low=0) (values below were cut off) or" in text
    far = 3.0 * rng.normal(size=(500, 2))
    assert model.predict_dist(far).std().min() >= 0.99e-4 * y.std()


@pytest.mark.parametrize(
    ("shift", "sign", "advice"),
    [
        (2.0, 1.0, "give family=Censored(low=2) (values below were cut off)"),
        (0.0, -1.0, "give family=Censored(high=0) (values above were cut off)"),
    ],
)
def test_the_advice_about_tied_responses_names_their_limit(shift, sign, advice):
    X, y, _ = cut_off(shift, sign)
    with pytest.warns(UserWarning, match="the spread vanishes there") as told:
        SoftTreeRegressor(ridge=0.1).fit(X, y)
    assert str(told[0].message).rstrip().endswith(advice)


def test_a_fit_of_many_trees_says_it_once_where_it_was_called():
    X, y, _ = cut_off()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        SoftForestRegressor(n_estimators=3, ridge=0.1, max_leaves=6).fit(X, y)
        SoftTreeRegressor(selection="validation", ridge="auto", max_leaves=4).fit(X, y)
    assert [str(w.message).split(":")[0] for w in told] == ["SoftForestRegressor", "SoftTreeRegressor"]
    assert "SoftForestRegressor: in 3 of 3 trees, " in str(told[0].message)
    assert {w.filename for w in told} == {__file__}


def test_ties_are_counted_over_all_rows_where_the_spread_is_at_its_floor():
    y = np.repeat([0.0, 40.0, 50.0], [20, 100, 80])
    raw = [np.zeros(200), np.where(np.arange(200) % 2 == 0, -2.95, 1.0)]  # a little above the floor of -3
    floor, start = np.array([-np.inf, -3.0]), np.array([40.0, 2.6])
    found = find_ties(raw, floor, start, y)
    assert (found.value, found.count, found.rows, found.end) == (40.0, 100, 200, None)
    advice = "consider a family of counts or classes, or the rows of that value apart from the others"
    assert found.text().endswith(advice)
    assert find_ties([raw[0], raw[1] + 0.2], floor, start, y) is None  # not at the floor
    assert find_ties(raw, floor, start, np.arange(200.0)) is None  # no ties
    assert find_ties(raw, floor, start - 5.0, y) is None  # a floor of no harm
    assert find_ties(raw, np.full(2, -np.inf), start, y) is None  # no floor


def test_coarse_grades_are_no_point_masses():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 2))
    grades = np.round(X[:, 0] + 0.4 * rng.normal(size=200)).clip(-2.0, 2.0)
    model = SoftTreeRegressor(ridge=1.0, max_leaves=6).fit(X, grades)  # warnings are errors
    assert model.predict_dist(X).std().min() >= 0.999 / np.sqrt(12.0)


@pytest.mark.slow
def test_a_censored_family_does_better_on_cut_off_responses():
    rng = np.random.default_rng(5)
    X, far = rng.normal(size=(150, 2)), rng.normal(size=(500, 2))
    cut, new = (np.maximum(x[:, 0] + 0.5 * rng.normal(size=len(x)), 0.0) for x in (X, far))
    censored = SoftTreeRegressor(Censored(low=0.0), ridge=0.1).fit(X, cut)
    with pytest.warns(UserWarning, match="the spread vanishes there"):
        normal = SoftTreeRegressor(ridge=0.1).fit(X, cut)
    assert censored.log_score(far, new) > max(normal.log_score(far, new), -1.0)
    assert censored.predict_dist(far).crps(new).mean() < normal.predict_dist(far).crps(new).mean()
