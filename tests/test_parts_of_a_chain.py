"""Schedules, masks and losses of any make, as both boosters take them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import lightgbm as lgb
import numpy as np
import pytest
from catboost import CatBoost, CatBoostError

from boostplugins import BernoulliMask, CosineCycle, VirtualEnsemble, catboost, lightgbm
from boostplugins.losses import NormalLikelihood, Softmax, SquaredError
from boostplugins.schedules import GradientSchedule


@dataclass(frozen=True)
class Scale(GradientSchedule):
    kind = "scale of a test"
    first: float
    later: float

    def scale(self, iteration):
        return self.later if iteration else self.first


@dataclass(frozen=True)
class Given:
    kept: Any

    def rows(self, cycle, n_rows, first_row=0):
        return self.kept

    def to_dict(self):
        return {"kind": "given"}


def train(booster, schedule=None, mask=None, loss=None):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    y, module = X[:, 0], {"catboost": catboost, "lightgbm": lightgbm}[booster]
    chain = module.CyclicalSGLB(loss or SquaredError(0.1), schedule, mask)
    if booster == "lightgbm":
        params = {"objective": chain, "verbosity": -1, "num_threads": 1} | chain.lightgbm_params()
        return lgb.train(params, lgb.Dataset(X, y), 4, callbacks=[chain.callback()])
    params = {"loss_function": chain, "eval_metric": "RMSE", "iterations": 4, "thread_count": 1}
    params |= {"verbose": False, "allow_writing_files": False} | chain.catboost_params()
    return chain.fit(CatBoost(params), chain.pool(X, y))


both = pytest.mark.parametrize("booster", ["catboost", "lightgbm"])


@both
@pytest.mark.parametrize("scale", [-1.0, np.nan, np.inf])
def test_scales_that_are_none(booster, scale):
    for schedule in (Scale(scale, 1.0), Scale(1.0, scale)):
        with pytest.raises((ValueError, CatBoostError), match="scale of the schedule must be a finite num"):
            train(booster, schedule)


@both
@pytest.mark.parametrize("kept", [np.ones(5, bool), np.ones(50), [1] * 50, np.ones((50, 1), bool)])
def test_masks_of_another_shape_or_kind(booster, kept):
    """Compiled code would read beyond a mask that is too short."""
    with pytest.raises(ValueError, match=r"rows of a mask must be a boolean array of shape \(50,\) or None"):
        train(booster, CosineCycle(length=2), Given(kept))
    train(booster, CosineCycle(length=2), Given([True] * 50))


@both
def test_settings_may_be_numbers_of_numpy(booster):
    schedule = CosineCycle(length=np.int64(2), max_scale=np.float32(4.0))
    mask = BernoulliMask(np.float32(0.5), random_state=np.int64(3))
    model = train(booster, schedule, mask, SquaredError(np.float64(0.1)))
    read = getattr(VirtualEnsemble, f"from_{booster}")(model)
    assert read.schedule == schedule
    for part in (Softmax(np.int64(3)), NormalLikelihood((np.float32(-1), np.float32(1)))):
        assert json.loads(json.dumps(part.to_dict()))["name"] == part.name
