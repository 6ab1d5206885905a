"""The chain samples the posteriors that it should."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pytest

from boostplugins.lightgbm import CyclicalSGLB
from boostplugins.lightgbm.reader import LightGBMReader
from boostplugins.losses import Logistic, SquaredError

pytestmark = pytest.mark.slow
STEP = 0.1


def states(chain, y, n_steps, weight=None):
    """States of a chain of stumps on one binary feature: two independent means."""
    X = np.repeat([[0.0], [1.0]], len(y) // 2, axis=0)
    params = {"objective": chain, "verbosity": -1, "num_threads": 1, "num_leaves": 2, "learning_rate": STEP}
    params |= {"min_data_in_leaf": 1, "min_data_in_bin": 1} | chain.lightgbm_params()
    data = lgb.Dataset(X, y, weight=weight)
    booster = lgb.train(params, data, n_steps, callbacks=[chain.callback()])
    return LightGBMReader(booster).states(X[[0, -1]], np.arange(1, n_steps + 1))[:, :, 0]


@pytest.mark.parametrize(
    ("shrink", "temperature", "leaf_noise"),
    [(0.0, 1.0, "shared"), (0.1, 1.0, "independent"), (0.1, 4.0, "shared")],
)
def test_conjugate_normal(shrink, temperature, leaf_noise):
    # Leaf mean of n rows with noise variance s2: F' = (1 - (1 + g) e) F + e mean(y) + noise of variance
    # 2 e s2 / (n tau): an autoregression with the stationary variance below, s2 / (n tau (1 + g)) for small
    # steps. Its variance over 3000 states with correlation 0.9 has a relative standard error of
    # sqrt(2 * 9.5 / 3000 / 2) = 0.056 over two leaves: 0.25 is passed by chance once in 100 000 runs.
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.normal(3.0, 1.0, size=20), rng.normal(5.0, 1.0, size=20)])
    chain = CyclicalSGLB(
        SquaredError(0.5), temperature=temperature, shrink=shrink, leaf_noise=leaf_noise, random_state=4
    )
    found = states(chain, y, 3200)[:, 200:]
    rate = (1 + shrink) * STEP
    variance = 2 * STEP * 0.5 / (20 * temperature) / (1 - (1 - rate) ** 2)
    assert found.var(axis=1).mean() == pytest.approx(variance, rel=0.25)
    mean = y.reshape(2, 20).mean(axis=1) / (1 + shrink)
    # Standard error sqrt(variance * 19 / 3000) = 0.013 at most; five of them.
    np.testing.assert_allclose(found.mean(axis=1), mean, atol=0.065)


def test_weights_are_repeated_rows():
    # Ten rows of weight 3 have the posterior of thirty rows; error as above.
    y = np.concatenate([np.linspace(2, 4, 10), np.linspace(4, 6, 10)])
    found = states(
        CyclicalSGLB(SquaredError(1.0), leaf_noise="shared", random_state=5), y, 3200, np.full(20, 3.0)
    )[:, 200:]
    variance = 2 * STEP / 30 / (1 - (1 - STEP) ** 2)
    assert found.var(axis=1).mean() == pytest.approx(variance, rel=0.25)


def test_logistic_posterior():
    # Flat prior on the logit of 200 rows with 60 % ones: nearly normal with the variance
    # 1 / (n p (1 - p)). The step is small (e p (1 - p) = 0.024), states correlate over 80 iterations,
    # 6000 states of two leaves hold about 150: standard error 0.12 of the variance, four of them allowed.
    y = np.tile(np.repeat([1.0, 0.0], [120, 80]), 2)
    found = states(CyclicalSGLB(Logistic(), leaf_noise="shared", random_state=6), y, 6300)[:, 300:]
    assert found.var(axis=1).mean() == pytest.approx(1 / (200 * 0.24), rel=0.48)
    assert found.mean() == pytest.approx(np.log(1.5), abs=0.1)
