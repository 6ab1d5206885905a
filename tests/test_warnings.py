"""Warnings show the user's own line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from boostplugins import (
    BARTRegressor,
    DistributionalRegressor,
    HNNRegressor,
    SGLBRegressor,
    SoftTreeRegressor,
    VirtualEnsemble,
    _warnings,
)
from boostplugins.estimators._bart_base import MixingWarning

X = np.random.default_rng(0).normal(size=(60, 2))
Y = X[:, 0] + np.random.default_rng(1).normal(size=60)
ONE = np.ones(60)
SHORT = {"n_trees": 20, "n_burn": 0, "n_draws": 12}
CASES = {
    "chains disagree": (MixingWarning, lambda: BARTRegressor(**SHORT, random_state=0).fit(X, Y)),
    "constant for Bayesian trees": (UserWarning, lambda: BARTRegressor(**SHORT).fit(X, ONE)),
    "constant for networks": (UserWarning, lambda: HNNRegressor(max_epochs=1).fit(X, ONE)),
    "constant for soft trees": (UserWarning, lambda: SoftTreeRegressor().fit(X, ONE)),
    "constant for chains": (UserWarning, lambda: SGLBRegressor(n_estimators=2).fit(X, ONE)),
    "no feature varies": (UserWarning, lambda: DistributionalRegressor().fit(np.ones((60, 1)), Y)),
}


@pytest.mark.parametrize("name", CASES)
def test_warnings_point_at_the_call(name):
    category, call = CASES[name]
    with pytest.warns(category) as told:
        call()
    assert {warning.filename for warning in told} == {__file__}


def test_warnings_of_virtual_ensembles_point_at_the_call():
    model = SGLBRegressor(booster="lightgbm", n_estimators=60, n_jobs=1).fit(X, Y)
    with pytest.warns(UserWarning, match="members") as told:
        VirtualEnsemble.from_lightgbm(model.models_[0], n_members=1000)
    assert {warning.filename for warning in told} == {__file__}


def test_a_users_package_of_a_longer_name_is_the_users():
    neighbour = f"{Path(_warnings.__file__).parent}_app/run.py"
    user = compile("def call(): warn('of mine')", neighbour, "exec")
    names = {"warn": _warnings.warn}
    exec(user, names)
    with pytest.warns(UserWarning, match="of mine") as told:
        names["call"]()
    assert told[0].filename == neighbour
