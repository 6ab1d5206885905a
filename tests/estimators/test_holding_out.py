"""Rows held out by default: which, what for, and what it is worth."""

from __future__ import annotations

import numpy as np
import pytest

from boostplugins import DistributionalRegressor
from boostplugins.estimators._holding_out import FEW, MANY, HoldingOut, check, resolve
from boostplugins.estimators._selection import folds, split
from boostplugins.families import get_family
from tests.estimators.distributional_data import both

NORMAL, GAMMA = get_family("normal"), get_family("gamma")


def resolved(n, settings=None, eval_set=False, family=NORMAL, sampling=False):
    model = DistributionalRegressor(**(settings or {}))
    check(model, eval_set)
    return resolve(model, n, eval_set, family, sampling)


def test_few_rows_hold_nothing_out_more_are_cross_fitted_and_many_split_once():
    assert resolved(FEW - 1) == HoldingOut(None, None, None, None)
    assert resolved(FEW) == resolved(MANY - 1) == HoldingOut(5, None, 30, "scale")
    assert resolved(MANY) == HoldingOut(None, 0.2, 30, "scale")
    assert resolved(MANY, family=GAMMA) == HoldingOut(None, 0.2, 30, None)
    assert resolved(FEW, sampling=True) == HoldingOut(None, None, None, None)


def test_what_is_asked_for_wins():
    assert resolved(100, {"n_folds": None, "validation_fraction": None}) == HoldingOut(None, None, None, None)
    assert resolved(100, {"n_folds": None}) == HoldingOut(None, 0.2, 30, "scale")
    assert resolved(MANY, {"validation_fraction": None}) == HoldingOut(5, None, 30, "scale")
    assert resolved(100, {"validation_fraction": 0.3}) == HoldingOut(None, 0.3, 30, "scale")
    assert resolved(20, {"n_folds": 3, "calibration": None}) == HoldingOut(3, None, 30, None)
    assert resolved(100, {"early_stopping_rounds": None}) == HoldingOut(5, None, None, "scale")
    # Rows that the caller gives say when to stop; they are not used up by a recalibration unasked.
    assert resolved(100, eval_set=True) == HoldingOut(None, None, 30, None)
    assert resolved(100, {"calibration": "scale"}, eval_set=True) == HoldingOut(None, None, 30, "scale")


def test_contradictions_are_refused():
    with pytest.raises(ValueError, match="early_stopping_rounds needs held-out rows"):
        resolved(9, {"n_folds": None, "validation_fraction": None, "early_stopping_rounds": 5})
    with pytest.raises(ValueError, match="n_folds holds rows out itself"):
        resolved(100, {"n_folds": 3}, eval_set=True)
    with pytest.raises(ValueError, match="calibration must be one of"):
        resolved(100, {"calibration": "isotonic"})
    X, y = np.arange(8.0)[:, None], np.tile([0.0, 1.0], 4)
    with pytest.raises(ValueError, match="calibration must be None for the classes of"):
        DistributionalRegressor("bernoulli", n_folds=2, calibration="scale").fit(X, y)


@pytest.mark.parametrize(("n", "sampling"), [(FEW - 1, False), (MANY, True)])
def test_calibration_asked_for_needs_rows_that_are_held_out(n, sampling):
    with pytest.raises(ValueError, match="calibration='scale' needs held-out rows"):
        resolved(n, {"calibration": "scale"}, sampling=sampling)
    asked = {"calibration": "scale", "n_folds": 3}
    assert resolved(n, asked, sampling=sampling).calibration == "scale"


@pytest.mark.parametrize(
    ("n", "fraction", "held"), [(10, 0.3, 3), (10, 0.4, 4), (10, 0.75, 8), (7, 0.01, 1), (5, 0.99, 4)]
)
def test_the_share_asked_for_is_held_out(n, fraction, held):
    used, out = split(n, fraction, seed=0)
    assert len(out) == held
    assert sorted([*used, *out]) == list(range(n))


def test_one_row_in_five_is_the_first_of_five_folds():
    for n in (10, 11, 14, 5000):
        first, second = next(folds(n, 5, seed=3)), split(n, 0.2, seed=3)
        assert all((one == other).all() for one, other in zip(first, second))


@both
@pytest.mark.parametrize("name", ["normal", "gamma"])
def test_intervals_cover_by_default_also_of_few_rows(name, booster):
    """All rounds on all rows cover about half; 3 samples of 4000 test rows have a standard error of 1.5 %."""
    inside, naive = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, (4200, 5))
        noise = rng.normal(size=4200) if name == "normal" else rng.gamma(3.0, 1.0, 4200)
        y = np.exp(X[:, 0]) * noise + (X[:, 1] if name == "normal" else 0.0)
        for kept, settings in ((inside, {}), (naive, {"n_folds": None, "validation_fraction": None})):
            model = DistributionalRegressor(name, booster=booster, n_estimators=200, **settings)
            ends = model.fit(X[:200], y[:200]).predict_interval(X[200:], 0.9)
            kept.append(((ends[:, 0] <= y[200:]) & (y[200:] <= ends[:, 1])).mean())
    assert 0.86 <= np.mean(inside) <= 0.95
    assert np.mean(naive) < 0.8
