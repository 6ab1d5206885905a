"""SGLB estimators: several chains, default cycles, and prior functions beside categories."""

import numpy as np
import pandas as pd
import pytest

from boostplugins import BernoulliMask, Constant, RandomPrior, SGLBClassifier, SGLBRegressor
from boostplugins.losses import SquaredError

BOOSTERS = ["catboost", "lightgbm"]


@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.parametrize("schedule", [None, Constant()])
def test_the_first_of_several_chains_is_the_only_one_of_one(booster, schedule):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    y = (X[:, 0] + X[:, 1] > rng.normal(size=100)).astype(int)
    settings = {"booster": booster, "schedule": schedule, "prior": RandomPrior(), "random_state": 3}
    settings |= {"mask": BernoulliMask(0.7), "n_estimators": 20, "depth": 3, "n_jobs": 1}
    one, two = (SGLBClassifier(n_chains=chains, **settings).fit(X, y) for chains in (1, 2))
    far = np.concatenate([X, X + 20.0])
    first, both = one.members(far), two.members(far)
    assert both.shape[1] == 2 * first.shape[1]
    np.testing.assert_array_equal(both[:, : first.shape[1]], first)
    # The second has noise and functions of its own.
    apart = np.abs(both[100:, first.shape[1] :] - first[100:])
    assert apart.max(axis=(1, 2)).min() > 0.1


@pytest.mark.parametrize(
    ("trees", "length", "members"), [(7, 1, 7), (40, 4, 10), (500, 50, 10), (1000, 50, 20)]
)
def test_default_cycles(trees, length, members):
    schedule = SGLBRegressor(n_estimators=trees)._check_settings()["schedule"]
    assert schedule.length == length
    assert len(schedule.member_ends(trees)) == members


def _mixed(rng, n=300):
    frame = pd.DataFrame({"a": rng.normal(size=n), "kind": rng.choice(["x", "y", "z"], n)})
    frame["b"] = rng.normal(size=n)
    return frame, frame["a"] + (frame["kind"] == "x") + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.parametrize("loss", ["squared_error", "normal", "softmax"])
def test_prior_functions_beside_categories(booster, loss, tmp_path):
    """Numbers far from the training rows are seen; categories take no part in the functions."""
    frame, y = _mixed(np.random.default_rng(0))
    kind = SGLBRegressor
    if loss == "softmax":
        kind, y = SGLBClassifier, np.digitize(y, [-0.3, 0.8])
    settings = {"booster": booster, "n_estimators": 40, "depth": 3, "n_jobs": 1}
    model = kind(loss, **settings).fit(frame, y)
    far = frame.head(40).assign(a=lambda x: x["a"] + 20.0, b=lambda x: x["b"] - 20.0)
    here, there = (model.predict_uncertainty(rows).knowledge for rows in (frame, far))
    assert np.quantile(there, 0.1) > 3.0 * np.median(here)
    without = kind(loss, prior=None, **settings).fit(frame, y)
    assert without.predict_uncertainty(far).knowledge.mean() < there.mean() / 3.0
    path = tmp_path / "model"
    model.save(path)
    np.testing.assert_array_equal(kind.load(path).members(far), model.members(far))
    # The function's part of a member does not move with the category, only the trees' part does.
    prior, outputs = model._virtual[0].prior, model.members(far).shape[2]
    swapped = far.assign(kind="never seen")
    np.testing.assert_array_equal(prior.values(0, far, outputs), prior.values(0, swapped, outputs))


@pytest.mark.parametrize("booster", BOOSTERS)
def test_prior_functions_beside_categories_change_no_fit_in_the_domain(booster):
    rng = np.random.default_rng(1)
    frame, y = _mixed(rng, 600)
    settings = {"booster": booster, "n_estimators": 100, "depth": 3, "n_jobs": 1}
    train, test = frame[:400], frame[400:]
    scores = [
        SGLBRegressor(SquaredError(0.09), prior=prior, **settings).fit(train, y[:400]).score(test, y[400:])
        for prior in (None, "auto")
    ]
    assert scores[1] > scores[0] - 0.03


@pytest.mark.parametrize("booster", BOOSTERS)
def test_prior_functions_need_a_number(booster):
    frame, y = _mixed(np.random.default_rng(0), 60)
    settings = {"booster": booster, "n_estimators": 10, "n_jobs": 1}
    words = frame[["kind"]]
    assert SGLBRegressor(**settings).fit(words, y)._virtual[0].prior is None
    with pytest.raises(ValueError, match="prior must be None where all features are categories"):
        SGLBRegressor(prior=RandomPrior(), **settings).fit(words, y)


def test_early_stopping_beside_categories():
    frame, y = _mixed(np.random.default_rng(2), 200)
    for booster in BOOSTERS:
        model = SGLBRegressor(
            booster=booster,
            n_estimators=40,
            depth=3,
            n_jobs=1,
            early_stopping_rounds=8,
            validation_fraction=0.25,
        ).fit(frame, y)
        assert 4 <= model.n_iterations_ <= 40
        assert model._virtual[0].prior.columns == (0, 2)
