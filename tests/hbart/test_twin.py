"""The compiled sampler and its naive twin draw the same chain from the same random numbers."""

from __future__ import annotations

import numpy as np
import pytest

from boostplugins.hbart.chains import advance
from tests.hbart.problems import make_problem, start
from tests.naive.hbart_sampler import NaiveSampler

CASES = {
    "constant": ({}, {"n_trees": 3}),
    "weights, leaves of 3": ({"weights": True}, {"n_trees": 2, "min_leaf": 3}),
    "missing and levels": ({"missing": 0.2, "levels": 4, "n_values": 3}, {"n_trees": 3}),
    "log-linear": ({"k": 2}, {"n_trees": 3}),
    "variance forest": ({"weights": True}, {"n_trees": 2, "n_variance_trees": 2}),
    "leaf variance": ({"k": 1}, {"n_trees": 3, "leaf_nu": 3.0}),
    "leaf variance, variance forest": (
        {"weights": True, "missing": 0.1},
        {"n_trees": 2, "n_variance_trees": 2, "leaf_nu": 5.0, "beta": 0.5},
    ),
    "deep": ({"n_values": 4}, {"n_trees": 2, "beta": 0.3, "half_range": 3.0}),
    "swap": ({"p": 3}, {"n_trees": 2, "beta": 0.3, "k": 8.0, "p_swap": 0.4}),
    "swap of levels": (
        {"p": 1, "levels": 5, "missing": 0.2, "weights": True},
        {"n_trees": 2, "n_variance_trees": 2, "beta": 0.3, "k": 8.0, "p_swap": 0.4, "min_leaf": 2},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_chain_equals_naive_twin(name):
    data, settings = CASES[name]
    problem = make_problem(**data)
    run, hyper = start(problem, seed=3, **settings)
    twin, rng = NaiveSampler(problem, hyper), np.random.default_rng(3)
    sizes = set()
    for _ in range(40):
        advance(run, 1, keep=False)
        twin.iterate(rng)
        chain = run.chain
        assert chain.sigma2[0] == pytest.approx(twin.sigma2, rel=1e-3)
        assert chain.mean.prior.leaf_var[0] == pytest.approx(twin.leaf_var, rel=2e-3)
        np.testing.assert_allclose(chain.linear.gamma, twin.gamma, atol=2e-3)
        for forest, trees in ((chain.mean, twin.mean), (chain.variance, twin.spread)):
            for t, tree in enumerate(trees):
                sizes.add(len(tree.nodes))
                used = np.flatnonzero(forest.trees.var[t] != -2)
                assert used.tolist() == sorted(tree.nodes)
                values = forest.trees.value[t][forest.trees.leaf_of[t]]
                np.testing.assert_allclose(values, tree.at_rows(), rtol=2e-3, atol=2e-4)
    # Chains that never split would agree on nothing much.
    assert len(sizes) > 1
    swaps = run.chain.mean.scratch.tally[3, 1] + run.chain.variance.scratch.tally[3, 1]
    assert (swaps > 0) == (hyper.p_swap > 0)
