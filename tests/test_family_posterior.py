"""Chains of families sample the posteriors that they should, on both boosters."""

from __future__ import annotations

import lightgbm
import numpy as np
import pytest
from catboost import CatBoost
from scipy.special import digamma, polygamma

from boostplugins.catboost import CyclicalSGLB as CatBoostChain
from boostplugins.catboost.reader import CatBoostReader
from boostplugins.lightgbm import CyclicalSGLB as LightGBMChain
from boostplugins.lightgbm.reader import LightGBMReader
from boostplugins.losses import FamilyLikelihood

STEP, ROWS, LENGTH, BURN = 0.1, 40, 3200, 200
both = pytest.mark.parametrize("booster", ["lightgbm", "catboost"])


def states(booster, family, y, length=LENGTH, **options):
    """States of a chain of stumps on one binary feature, two leaves of ROWS rows, without the burn-in."""
    X = np.repeat([[0.0], [1.0]], len(y) // 2, axis=0)
    options = {"random_state": 3, "shrink_to": "start", **options}
    if booster == "lightgbm":
        chain = LightGBMChain(FamilyLikelihood(family), **options)
        params = {"objective": chain, "verbosity": -1, "num_threads": 1, "num_leaves": 2}
        params |= {"learning_rate": STEP, "min_data_in_leaf": 1, "min_data_in_bin": 1}
        params |= chain.lightgbm_params()
        model = lightgbm.train(params, lightgbm.Dataset(X, y), length, callbacks=[chain.callback()])
        reader = LightGBMReader(model)
    else:
        chain = CatBoostChain(FamilyLikelihood(family), **options)
        trees = length * chain.loss.n_outputs
        settings = {"loss_function": chain, "eval_metric": chain.metric(), "iterations": trees, "depth": 1}
        settings |= {"learning_rate": STEP, "metric_period": trees, "verbose": False, "thread_count": 1}
        model = CatBoost({**settings, "allow_writing_files": False, **chain.catboost_params()})
        chain.fit(model, chain.pool(X, y))
        reader = CatBoostReader(model)
    return reader.states(X[[0, -1]], np.arange(BURN + 1, length + 1))


# A state follows its predecessor by 1 - STEP: its variance over 3000 states of two leaves has a
# relative standard error of sqrt(2 * 9.5 / 3000 / 2) = 0.056, its mean one of sqrt(19 / 3000) standard
# deviations. Bands of five and more: a false alarm in some millions of runs. Steps of STEP make the
# variance of a linear chain larger by 1 / (1 - STEP / 2).
LARGER = 1.0 / (1.0 - STEP / 2.0)


def check(found, mean, variance, shape=1.0):
    np.testing.assert_allclose(found.var(axis=1), variance * LARGER, rtol=0.40 * shape)
    assert found.var(axis=1).mean() == pytest.approx(np.mean(variance) * LARGER, rel=0.28 * shape)
    assert (np.abs(found.mean(axis=1) - mean) <= 5.5 * np.sqrt(variance * LARGER * 19.0 / 3000.0)).all()


@pytest.mark.slow
@both
def test_poisson_rate_has_a_gamma_posterior(booster):
    y = np.random.default_rng(0).poisson(np.repeat([3.0, 1.0], ROWS)).astype(float)
    total = y.reshape(2, ROWS).sum(axis=1)
    # Flat prior of the mean: mean ~ Gamma(total + 1) / ROWS.
    found = states(booster, "poisson", y)[:, :, 0]
    check(found, digamma(total + 1) - np.log(ROWS), polygamma(1, total + 1))


@pytest.mark.slow
@both
@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_exponential_mean_has_an_inverse_gamma_posterior(booster, temperature):
    # In units of thousands: the law is that of the logarithm.
    y = 1e3 * np.random.default_rng(1).exponential(np.repeat([3.0, 1.0], ROWS))
    total, count = temperature * y.reshape(2, ROWS).sum(axis=1), temperature * ROWS
    found = states(booster, "exponential", y, temperature=temperature)[:, :, 0]
    check(found, np.log(total) - digamma(count), polygamma(1, count) * np.ones(2))


@pytest.mark.slow
@both
def test_normal_scale_and_location_with_shrinkage(booster):
    """A pull of gamma rows towards the start, in units of a row's information."""
    rng = np.random.default_rng(2)
    gamma, y = 0.1, 100.0 * rng.normal(np.repeat([0.0, 0.4], ROWS))
    found = states(booster, "normal", y, shrink=gamma)
    sigma = np.exp(found[..., 1].mean(axis=1))
    mean = (y.reshape(2, ROWS).mean(axis=1) + gamma * y.mean()) / (1.0 + gamma)
    variance = sigma**2 / ROWS / (1.0 + gamma)
    # Correlation is lower, the step larger by 1 + gamma; sigma itself moves by 10 %.
    check(found[..., 0], mean, variance, shape=1.3)
    np.testing.assert_allclose(
        found[..., 1].var(axis=1).mean(), 0.5 / ROWS / (1.0 + gamma) * LARGER, rtol=0.4
    )


@both
def test_parameters_move_in_short_chains_and_are_read_exactly(booster):
    y = np.random.default_rng(3).gamma(2.0, 1.0, 2 * ROWS)
    found = states(booster, "gamma", y, length=BURN + 20)
    assert found.shape == (2, 20, 2)
    assert (found.std(axis=1) > 0).all()
    assert np.abs(found[:, :, 0]).max() < 3.0


def test_catboost_needs_a_pool_and_shrinks_families_to_their_start():
    chain = CatBoostChain(FamilyLikelihood("gamma"), shrink=0.1)
    X, y = np.arange(40.0)[:, None], np.arange(1.0, 41.0)
    model = CatBoost({"loss_function": chain, "iterations": 2, "verbose": False, **chain.catboost_params()})
    with pytest.raises(ValueError, match='shrink_to must be "start"'):
        chain.fit(model, chain.pool(X, y))
    chain = CatBoostChain(FamilyLikelihood("gamma"))
    model = CatBoost({"loss_function": chain, "iterations": 2, "verbose": False, **chain.catboost_params()})
    with pytest.raises(ValueError, match=r"must be trained on loss.pool\(X, y\)"):
        chain.fit(model, X, y)
