"""Without data the chain draws from the prior, which is simulated directly."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, ks_2samp, kstest, norm
from scipy.stats import t as student

from boostplugins.hbart.chains import advance, collect
from boostplugins.hbart.diagnostics import split_counts
from tests.hbart.problems import make_problem, start
from tests.naive.hbart_sampler import NaiveSampler, NaiveTree


def naive_tree(sampler, rng, forest):
    """A tree from the prior restricted to leaves of at least `min_leaf` rows, by rejection."""
    while True:
        hyper = sampler.hyper
        prior = hyper.mean_prior() if forest == "mean" else hyper.variance_prior()
        tree = NaiveTree(sampler, 0.0 if forest == "mean" else 1.0, prior)
        todo = [tree.nodes[0]]
        while todo:
            node = todo.pop()
            if rng.random() < tree.split_probability(node):
                tree.attach(node, tree.draw_rule(rng, node))
                todo += [node.left, node.right]
        if min(len(leaf.rows) for leaf in tree.leaves()) >= tree.prior.min_leaf:
            return tree


def describe(tree):
    inner = [node for node in tree.nodes.values() if not node.is_leaf]
    depth = max(node.depth for node in tree.nodes.values())
    return len(inner) + 1, depth, sum(node.rule[0] == 0 for node in inner)


def depths(forest):
    """Depth of every structure, from its preorder."""
    out = np.zeros(len(forest.start) - 1, dtype=int)
    for s in range(len(out)):
        level, stack = 0, [(forest.start[s], 0)]
        while stack:
            node, depth = stack.pop()
            level = max(level, depth)
            if forest.var[node] >= 0:
                stack += [(node + 1, depth + 1), (node + forest.right[node], depth + 1)]
        out[s] = level
    return out


CASES = {
    "plain": {"n": 40},
    "levels and missing": {"n": 40, "levels": 4, "missing": 0.2, "n_values": 3},
    "swap": {"n": 40, "levels": 4, "missing": 0.2, "n_values": 3},
}


@pytest.mark.parametrize("forest", ["mean", "variance"])
@pytest.mark.parametrize("name", CASES)
def test_structures_follow_the_prior(name, forest):
    # 54 comparisons at p < 1e-4 each: false alarm in 1 of 180 seeds; the seed is fixed.
    problem = make_problem(**CASES[name])
    settings = {"n_trees": 20, "n_variance_trees": 20, "min_leaf": 2, "beta": 1.0}
    if name == "swap":
        settings |= {"p_swap": 0.3, "beta": 0.5}
    run, hyper = start(problem, seed=0, informed=False, **settings)
    advance(run, 100, keep=False)
    advance(run, 3000, keep=True)
    draws = getattr(collect([run]), forest)
    rng = np.random.default_rng(1)
    sampler = NaiveSampler(problem, hyper)
    expected = np.array([describe(naive_tree(sampler, rng, forest)) for _ in range(1500)])
    found = np.stack(
        [
            draws.n_leaves[draws.structure],
            depths(draws)[draws.structure],
            per_structure(draws, 0)[draws.structure],
        ],
        axis=2,
    )
    for part in range(3):
        for value in range(3):
            hits = (found[:, :, part] == value + (part == 0)).astype(float)
            # Trees are independent chains: their means give the standard error.
            mean, error = hits.mean(), hits.mean(axis=0).std(ddof=1) / np.sqrt(hits.shape[1])
            target = (expected[:, part] == value + (part == 0)).mean()
            error = np.hypot(error, np.sqrt(target * (1 - target) / len(expected)))
            assert abs(mean - target) < 4.5 * error + 1e-9, (part, value, mean, target, error)


def per_structure(forest, column):
    of_node = np.repeat(np.arange(len(forest.start) - 1), np.diff(forest.start))
    return np.bincount(of_node, forest.var == column, minlength=len(forest.start) - 1).astype(int)


def test_scalars_and_leaf_values_follow_the_prior():
    # Five tests at p < 1e-4: false alarm in 1 of 2000 seeds; the seed is fixed.
    problem = make_problem(n=20, k=2)
    run, hyper = start(problem, informed=False, n_trees=5, gamma_var=4.0, nu=5.0)
    advance(run, 4000, keep=True)
    posterior = collect([run])
    assert kstest(hyper.nu * problem.lam / posterior.sigma2, chi2(hyper.nu).cdf).pvalue > 1e-4
    for j in range(2):  # an independence sampler: thinned draws are all but independent
        assert kstest(posterior.gamma[::4, j], norm(0, 2).cdf).pvalue > 1e-4
    scale = hyper.half_range / (hyper.k * np.sqrt(hyper.n_trees))
    assert kstest(posterior.mean.values, norm(0, scale).cdf).pvalue > 1e-4
    forest, hyper = start(problem, informed=False, n_trees=1, n_variance_trees=5, variance_spread=2.0)
    advance(forest, 1000, keep=True)
    values = collect([forest]).variance.values
    shape = 5 / 2.0**2 + 0.5
    exact = shape / np.random.default_rng(0).standard_gamma(shape, 20000)
    assert ks_2samp(values, exact).pvalue > 1e-4


def test_leaf_variances_follow_the_prior():
    # Three tests at p < 1e-4: false alarm in 1 of 3000 seeds; the seed is fixed. The draws' correlation is
    # leaves / (5 + leaves) a step, about 0.6: every twentieth draw is all but independent.
    run, _ = start(make_problem(n=20)._replace(spread=2.0), informed=False, n_trees=3, leaf_nu=5.0)
    advance(run, 500, keep=False)
    advance(run, 20_000, keep=True)
    posterior = collect([run])
    drawn, guess = posterior.leaf_var[::20] * 3, 2.0**2
    lam = guess * chi2(5).isf(0.9) / 5  # P(3 leaf_var < 2^2) = 0.9
    assert kstest(5 * lam / drawn, chi2(5).cdf).pvalue > 1e-4
    assert abs((drawn < guess).mean() - 0.9) < 4.5 * np.sqrt(0.09 / len(drawn))
    # A leaf value alone has a t distribution.
    values = posterior.mean.values[posterior.mean.first_values()[:-1:20]] * np.sqrt(3 / lam)
    assert kstest(values, student(5).cdf).pvalue > 1e-4


def test_every_column_is_split_as_often_as_any():
    problem = make_problem(n=200, p=4)
    run, _ = start(problem, informed=False, n_trees=50)
    advance(run, 2000, keep=True)
    counts = split_counts(collect([run]).mean, 4)[::100].sum(axis=0)
    # Chi-square on 3 degrees of freedom; draws 100 iterations apart are about independent.
    statistic = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
    assert statistic < chi2(3).isf(1e-4)
