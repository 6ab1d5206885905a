"""What must hold after every iteration, whatever the data."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from boostplugins.hbart import chains
from boostplugins.hbart.chains import advance, collect
from boostplugins.hbart.sampler import sum_of_leaves
from tests.hbart.problems import make_problem, routed, start

CASES = {
    "plain": ({}, {"n_trees": 5, "beta": 0.5}),
    "missing, levels, leaves of 4": (
        {"missing": 0.3, "levels": 5},
        {"n_trees": 5, "min_leaf": 4, "beta": 0.5},
    ),
    "variance forest": ({"missing": 0.1}, {"n_trees": 4, "n_variance_trees": 4, "beta": 0.5}),
    "log-linear": ({"k": 2, "weights": True}, {"n_trees": 4}),
    "swap": (
        {"missing": 0.2, "levels": 4, "weights": True},
        {"n_trees": 4, "n_variance_trees": 4, "beta": 0.3, "half_range": 3.0, "p_swap": 0.4, "min_leaf": 2},
    ),
    "full trees": ({"n": 60}, {"n_trees": 3, "beta": 0.0, "max_nodes": 9, "half_range": 4.0}),
}


@pytest.mark.parametrize("name", CASES)
def test_trees_and_rows_stay_consistent(name):
    data, settings = CASES[name]
    run, hyper = start(make_problem(**data), seed=1, **settings)
    most = 0
    for _ in range(60):
        advance(run, 1, keep=False)
        for forest in (run.chain.mean, run.chain.variance):
            trees = forest.trees
            for t in range(len(trees.top)):
                labels = routed(run, forest, t)
                np.testing.assert_array_equal(labels, trees.leaf_of[t])
                leaves = np.flatnonzero(trees.var[t] == -1)
                inner = np.flatnonzero(trees.var[t] >= 0)
                counts = np.bincount(labels, minlength=trees.var.shape[1])
                np.testing.assert_array_equal(counts[leaves], trees.rows[t, leaves])
                assert counts[leaves].min() >= hyper.min_leaf
                assert len(leaves) == len(inner) + 1
                assert trees.used[t] == len(leaves) + len(inner) <= hyper.max_nodes
                for node in inner:
                    assert trees.parent[t, trees.left[t, node]] == node
                    assert trees.parent[t, trees.right[t, node]] == node
                most = max(most, len(leaves))
    assert most >= 3


@pytest.mark.parametrize("name", CASES)
def test_running_vectors_equal_recomputed_ones(name):
    data, settings = CASES[name]
    run, _ = start(make_problem(**data), seed=2, **settings)
    advance(run, 63, keep=False)  # one before the running vectors are refreshed
    chain, rows = run.chain, run.chain.mean.rows
    np.testing.assert_allclose(rows.residual, chain.target - sum_of_leaves(chain.mean.trees), atol=3e-6)
    expected = chain.linear.given * np.exp(-chain.linear.gamma @ chain.linear.zt)
    expected = expected / np.exp(sum_of_leaves(chain.variance.trees, np.log))
    np.testing.assert_allclose(rows.weight, expected, rtol=3e-5)


@pytest.mark.parametrize("name", CASES)
def test_stored_draws_predict_the_chain(name):
    data, settings = CASES[name]
    problem = make_problem(**data)
    run, _ = start(problem, seed=4, **settings)
    states = []
    for _ in range(12):
        advance(run, 1, keep=True)
        states.append((run.chain.target - run.chain.mean.rows.residual, 1.0 / run.chain.mean.rows.weight))
    advance(run, 140, keep=True)
    posterior = collect([run])
    f, spread = posterior.moments(problem.codes, problem.z)
    assert f.shape == (152, len(problem.target))
    for draw, (expected, relative) in enumerate(states):
        np.testing.assert_allclose(f[draw], expected, atol=3e-6)
        np.testing.assert_allclose(
            spread[draw] / posterior.sigma2[draw] / problem.weight, relative, rtol=3e-5
        )
    part, _ = posterior.moments(problem.codes, problem.z, slice(5, 9))
    np.testing.assert_array_equal(part, f[5:9])


def test_length_of_rounds_changes_no_bit():
    problem = make_problem(k=1, missing=0.1)
    one, _ = start(problem, seed=5, n_trees=4)
    other, _ = start(problem, seed=5, n_trees=4)
    advance(one, 150, keep=True)
    for _ in range(50):
        advance(other, 3, keep=True)
    a, b = collect([one]), collect([other])
    np.testing.assert_array_equal(a.mean.values, b.mean.values)
    np.testing.assert_array_equal(a.gamma, b.gamma)
    np.testing.assert_array_equal(a.sigma2, b.sigma2)


@pytest.mark.parametrize("keep_before", [0, 7])
def test_draws_stay_right_after_an_interruption(keep_before, monkeypatch):
    problem = make_problem(missing=0.1)
    run, _ = start(problem, seed=6, n_trees=4, n_variance_trees=3, beta=0.5)
    advance(run, keep_before, keep=True)
    whole = chains.run

    def interrupted(*arguments):
        whole(*arguments)  # the signal arrives within the kernel and is seen when it returns
        raise KeyboardInterrupt

    monkeypatch.setattr(chains, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        advance(run, 20, keep=True)
    monkeypatch.setattr(chains, "run", whole)
    advance(run, 9, keep=True)
    posterior = collect([run])
    assert posterior.n_draws == keep_before + 9
    f, spread = posterior.moments(problem.codes, problem.z)
    rows = run.chain.mean.rows
    np.testing.assert_allclose(f[-1], run.chain.target - rows.residual, atol=3e-6)
    np.testing.assert_allclose(spread[-1], posterior.sigma2[-1] / rows.weight, rtol=3e-5)


def test_draws_are_held_once_and_go_on():
    """Collecting packs a chain's rounds; the posterior of one chain shares them, and later draws follow."""
    problem = make_problem()
    settings = {"n_trees": 3, "n_variance_trees": 2, "beta": 0.5}
    in_two, in_one = (start(problem, seed=5, **settings)[0] for _ in range(2))
    for n_steps in (7, 1, 12):
        advance(in_two, n_steps, keep=True)
    first = collect([in_two])
    assert len(in_two.pieces.mean) == len(in_two.pieces.variance) == len(in_two.pieces.scalars) == 1
    assert np.shares_memory(first.mean.var, in_two.pieces.mean[0].var)
    assert np.shares_memory(first.variance.values, in_two.pieces.variance[0].values)
    advance(in_two, 10, keep=True)
    advance(in_one, 30, keep=True)
    assert first.n_draws == 20
    codes = in_one.chain.mean.rows.codes
    more, whole = collect([in_two]), collect([in_one])
    for forest in ("mean", "variance"):
        halves, full = getattr(more, forest), getattr(whole, forest)
        got = halves.predict(codes, slice(None), forest == "variance")
        np.testing.assert_array_equal(got, full.predict(codes, slice(None), forest == "variance"))
        before = getattr(first, forest).predict(codes, slice(None), forest == "variance")
        np.testing.assert_array_equal(got[:20], before)
    np.testing.assert_array_equal(more.sigma2, whole.sigma2)


def test_draws_of_several_chains_are_held_once_even_where_one_is_ahead():
    """The chains' nodes and values are views of the joint ones, and go on to the same draws."""
    problem = make_problem()
    settings = {"n_trees": 3, "n_variance_trees": 2, "beta": 0.5}
    shared, apart = ([start(problem, seed=seed, **settings)[0] for seed in (5, 6)] for _ in range(2))
    for runs in (shared, apart):
        for run, n_steps in zip(runs, (20, 26)):
            advance(run, n_steps, keep=True)
    first = collect(shared)
    assert first.n_draws == 40
    for run, values in zip(shared, (True, False)):
        for forest in ("mean", "variance"):
            piece, joint = getattr(run.pieces, forest)[0], getattr(first, forest)
            assert all(
                np.shares_memory(getattr(piece, name), getattr(joint, name)) for name in ("var", "cut")
            )
            assert np.shares_memory(piece.values, joint.values) == values
    shared = pickle.loads(pickle.dumps(shared))
    for runs in (shared, apart):
        for run, n_steps in zip(runs, (10, 4)):
            advance(run, n_steps, keep=True)
    again, whole = collect(shared), collect(apart)
    codes, z = problem.codes, problem.z
    assert again.n_draws == 60
    for got, expected in zip(again.moments(codes, z), whole.moments(codes, z)):
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(again.sigma2, whole.sigma2)
