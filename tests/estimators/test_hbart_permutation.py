"""Permutation tests with BART: they find what is there and keep their level."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from boostplugins import BARTRegressor
from boostplugins.estimators import bart_permutation
from boostplugins.estimators.bart_permutation import covariate_test, heteroskedasticity_test

MODEL = BARTRegressor(n_trees=5, n_burn=30, n_draws=20, n_chains=1, random_state=0)


def test_a_column_that_matters_and_one_that_does_not():
    rng = np.random.default_rng(0)
    X = rng.random((100, 3))
    y = 5 * X[:, 0] + rng.standard_normal(100)
    found = covariate_test(MODEL, X, y, [0], n_permutations=19, random_state=0)
    assert found.p_value == 0.05
    assert found.statistic > found.permuted.max()
    # Under the hypothesis p is uniform on twentieths: p = .05 in 1 of 20 seeds; the seed is fixed.
    assert covariate_test(MODEL, X, y, [1, 2], n_permutations=19, random_state=0).p_value > 0.05
    frame = pd.DataFrame(X, columns=list("abc"))
    named = covariate_test(MODEL, frame, y, ["a"], n_permutations=19, random_state=0)
    np.testing.assert_array_equal(named.permuted, found.permuted)


def test_noise_that_depends_on_the_features():
    rng = np.random.default_rng(0)
    X = rng.random((200, 2))
    y = X[:, 1] + np.exp(3 * X[:, 0]) * rng.standard_normal(200)
    assert heteroskedasticity_test(MODEL, X, y, n_permutations=19, random_state=0).p_value == 0.05


@pytest.mark.slow
def test_constant_noise_keeps_the_level():
    # p is uniform on twentieths: the mean of 20 has mean .525 and standard error .064; 4 of them
    # either way, false alarm in 1 of 15 000 seeds; the seeds are fixed.
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.random((200, 2))
        y = X[:, 1] + rng.standard_normal(200)
        found.append(heteroskedasticity_test(MODEL, X, y, n_permutations=19, random_state=seed).p_value)
    assert 0.27 < np.mean(found) < 0.78


def test_permutations_are_counted():
    with pytest.raises(ValueError, match="n_permutations must be an integer >= 1"):
        covariate_test(MODEL, np.ones((5, 1)), np.arange(5.0), [0], n_permutations=0)


def test_a_permuted_column_keeps_its_type(monkeypatch):
    """Numbers of a category that were permuted as plain numbers would be fitted by other trees."""
    X = pd.DataFrame({"c": pd.Categorical(np.arange(30) % 3), "b": pd.array([True, None] * 15, "boolean")})
    seen = []
    monkeypatch.setattr(bart_permutation, "_pseudo_r2", lambda model, X, y: seen.append(X) or 0.0)
    covariate_test(MODEL, X, np.arange(30.0), ["c", 1], n_permutations=2, random_state=0)
    for table in seen:
        assert table.dtypes.tolist() == X.dtypes.tolist()
    assert not seen[0]["c"].equals(X["c"])
    assert seen[-1] is X


@pytest.mark.parametrize("columns", [[], "a", [2], ["z"], [0.0], 0])
def test_odd_columns_are_refused(columns):
    with pytest.raises((TypeError, ValueError), match="columns must be"):
        covariate_test(MODEL, np.zeros((5, 2)), np.arange(5.0), columns)


def test_rows_that_cannot_be_tested_are_refused():
    with pytest.raises(ValueError, match="X and y must have as many rows, got 5 and 4"):
        covariate_test(MODEL, np.zeros((5, 2)), np.arange(4.0), [0])
    with pytest.raises(ValueError, match="y must not be constant, got 3 in every row"):
        heteroskedasticity_test(MODEL, np.zeros((5, 2)), np.full(5, 3.0))
