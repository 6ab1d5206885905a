"""Short fits and small data for the tests of reported cases of Bayesian trees."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone

from boostplugins import BARTRegressor, HBARTRegressor

SHORT = {"n_trees": 5, "n_burn": 15, "n_draws": 15, "n_chains": 2, "random_state": 0}
FEW = {"n_trees": 20, "n_burn": 100, "n_draws": 100, "n_chains": 2, "random_state": 0}
REGRESSORS = {
    "BART": BARTRegressor(),
    "HBART": HBARTRegressor(),
    "forest": HBARTRegressor(variance="forest", n_variance_trees=5),
}
each = pytest.mark.parametrize("kind", REGRESSORS)
quiet = pytest.mark.filterwarnings("ignore::boostplugins.estimators._bart_base.MixingWarning")


def build(kind, **params):
    return clone(REGRESSORS[kind]).set_params(**params)


def data(n=100, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    return X, 2 * X[:, 0] + np.exp(X[:, 1] - 1) * rng.standard_normal(n)


def in_new_process(code, *arguments, **environment):
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return run.stdout
