"""R-hat, effective sample size, ranks, and what the trees use, against known answers."""

from __future__ import annotations

import numpy as np
import pytest

from boostplugins.hbart.bins import MISSING, Bins
from boostplugins.hbart.chains import advance, collect
from boostplugins.hbart.diagnostics import (
    effective_sample_size,
    interaction_counts,
    rank_normalised,
    ranks,
    split_counts,
    split_rhat,
)
from boostplugins.hbart.polynomials import OrthogonalPolynomials
from tests.hbart.problems import make_problem, start


def autoregressive(rho, shape, rng):
    draws = np.zeros(shape)
    draws[:, 0] = rng.standard_normal(shape[0]) / np.sqrt(1 - rho**2)
    for i in range(1, shape[1]):
        draws[:, i] = rho * draws[:, i - 1] + rng.standard_normal(shape[0])
    return draws


def test_rhat_is_one_for_chains_alike_and_large_for_chains_apart():
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((4, 500))
    assert split_rhat(draws) == pytest.approx(1.0, abs=0.01)
    assert split_rhat(draws + 3 * np.arange(4)[:, None]) > 3
    trend = draws[:1] + np.linspace(0, 10, 500)
    assert split_rhat(trend) > 1.5  # a single chain that drifts
    assert split_rhat(np.ones((2, 10))) == 1.0
    assert np.isnan(split_rhat(np.ones((2, 3))))
    assert split_rhat(np.repeat([[1.0], [2.0]], 10, axis=1)) == np.inf


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_effective_sample_size_of_an_autoregression(rho):
    # Exact: draws (1 - rho) / (1 + rho). The estimate's standard error is below 8 % here.
    draws = autoregressive(rho, (4, 5000), np.random.default_rng(1))
    assert effective_sample_size(draws) == pytest.approx(20_000 * (1 - rho) / (1 + rho), rel=0.25)


def test_effective_sample_size_handles_many_quantities_and_constants():
    draws = np.random.default_rng(0).standard_normal((2, 100, 3))
    draws[:, :, 1] = 5.0
    sizes = effective_sample_size(draws)
    assert sizes.shape == (3,)
    assert np.isnan(sizes).tolist() == [False, True, False]


def test_constants_huge_tiny_and_lost_draws():
    """Sums of a constant that no float holds are rounding errors, and no spread."""
    draws = np.random.default_rng(0).standard_normal((2, 100))
    for size in (1e-300, 1e300):
        np.testing.assert_allclose(split_rhat(size * draws), split_rhat(draws))
        np.testing.assert_allclose(effective_sample_size(size * draws), effective_sample_size(draws))
    assert split_rhat(np.full((2, 100), 0.1)) == 1.0
    assert np.isnan(effective_sample_size(np.full((2, 100), 0.1)))
    for lost in (np.nan, np.inf):
        draws[1, 7] = lost
        assert np.isnan(split_rhat(draws))
        assert np.isnan(effective_sample_size(draws))
    assert effective_sample_size(np.empty((2, 10, 0))).shape == (0,)
    for function in (split_rhat, effective_sample_size):
        with pytest.raises(ValueError, match=r"draws must have shape \(n_chains, n_draws, ...\), got \(5,\)"):
            function(np.arange(5.0))


def test_ranks_are_over_all_chains():
    draws = np.array([[0.1, 5.0], [-2.0, 7.0]])
    assert ranks(draws).tolist() == [[2, 3], [1, 4]]
    assert rank_normalised(draws).sum() == pytest.approx(0)


def test_counts_equal_those_of_the_trees():
    run, _ = start(make_problem(p=3), n_trees=4, beta=0.5)
    expected, pairs = [], np.zeros((3, 3))
    for _ in range(30):
        advance(run, 1, keep=True)
        trees = run.chain.mean.trees
        inner = trees.var >= 0
        expected.append(np.bincount(trees.var[inner], minlength=3))
        for t, node in zip(*np.nonzero(inner)):
            for child in (trees.left[t, node], trees.right[t, node]):
                if trees.var[t, child] >= 0:
                    a, b = sorted((trees.var[t, node], trees.var[t, child]))
                    pairs[a, b] += 1
    forest = collect([run]).mean
    np.testing.assert_array_equal(split_counts(forest, 3), expected)
    assert pairs.sum() > 0
    np.testing.assert_allclose(np.triu(interaction_counts(forest, 3)), pairs / 30)


def test_bins_split_between_neighbours():
    column = np.array([[3.0], [1.0], [2.0], [np.nan], [1.0]])
    bins = Bins.learn(column, np.zeros(1, dtype=int), None)
    np.testing.assert_allclose(bins.cuts[0], [1.5, 2.5])
    assert bins.codes(column)[0].tolist() == [2, 0, 1, 65535, 0]
    assert bins.n_rules.tolist() == [3]  # two cuts, and present against missing
    assert bins.codes(np.array([[-9.0], [1.5], [9.0]]))[0].tolist() == [0, 0, 2]


def test_a_single_level_may_be_missing():
    matrix = np.array([[0.0, 0.0], [np.nan, 0.0], [0.0, 0.0]])
    bins = Bins.learn(matrix, np.array([1, 1]), None)
    assert bins.rules().usable.tolist() == [0]
    np.testing.assert_array_equal(bins.codes(matrix), [[0, MISSING, 0], [0, 0, 0]])


@pytest.mark.parametrize("max_bins", [2, 10, 255])
def test_many_values_share_bins_of_about_equal_counts(max_bins):
    column = np.random.default_rng(0).standard_normal((5000, 1))
    bins = Bins.learn(column, np.zeros(1, dtype=int), max_bins)
    counts = np.bincount(bins.codes(column)[0])
    assert len(counts) == max_bins
    assert counts.min() >= 5000 / max_bins - 2
    assert counts.max() <= 5000 / max_bins + 2


def test_bins_of_neighbouring_floats_and_huge_values():
    column = np.array([[1.0], [np.nextafter(1.0, 2)], [-1.7e308], [1.7e308]])
    bins = Bins.learn(column, np.zeros(1, dtype=int), None)
    assert bins.codes(column)[0].tolist() == [1, 2, 0, 3]


def test_polynomials_are_orthogonal_and_extend_to_new_rows():
    x = np.random.default_rng(0).random((50, 1))
    transformer = OrthogonalPolynomials(3).fit(x)
    Z = transformer.transform(x)
    np.testing.assert_allclose(Z.T @ Z, np.eye(3), atol=1e-10)
    np.testing.assert_allclose(Z.sum(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(transformer.transform(x[:5]), Z[:5])
    with pytest.raises(ValueError, match="below the number of distinct values"):
        OrthogonalPolynomials(2).fit(np.array([[0.0], [1.0], [0.0]]))
