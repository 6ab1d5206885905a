"""The best split: against brute force, at its level, with power, with missing values and levels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import levene

from boostplugins.usnrt.splits import best_split
from tests.naive import usnrt_levene as naive


def standard(e):
    e = e - e.mean()
    return e / np.sqrt(np.mean(e**2))


def test_paper_rule_is_the_smallest_p_value_of_all():
    rng = np.random.default_rng(0)
    n = 150
    table = np.column_stack([rng.normal(size=n), rng.integers(0, 4, n), np.round(rng.normal(size=n))])
    e = rng.normal(size=n) * np.exp(0.3 * table[:, 0])
    split = best_split(table, [0, 4, 0], e, 20, "levene")
    z = standard(e)
    every = [
        naive.all_cuts(table[:, 0], z, 20),
        naive.all_subsets(table[:, 1].astype(int), z, 4, 20),
        naive.all_cuts(table[:, 2], z, 20),
    ]
    best = [np.nanmax(np.abs(t)) for t in every]
    assert split.feature == int(np.argmax(best))
    assert abs(split.statistic) == pytest.approx(max(best), rel=1e-9)
    left = split.goes_left(table[:, split.feature])
    assert (left.sum(), (~left).sum()) == (split.n_left, split.n_right)
    assert split.log_p == pytest.approx(np.log(levene(e[left], e[~left], center="mean").pvalue), rel=1e-8)


@pytest.mark.parametrize("noise", ["normal", "student 5", "exponential"])
def test_adjusted_rule_holds_its_level(noise):
    rng = np.random.default_rng(1)
    draw = {
        "normal": rng.standard_normal,
        "student 5": lambda n: rng.standard_t(5, n),
        "exponential": rng.standard_exponential,
    }[noise]
    runs, n, alpha = 250, 600, 0.05
    rejected = {"levene": 0, "levene-adjusted": 0}
    for _ in range(runs):
        table, e = rng.normal(size=(n, 4)), draw(n)
        for test in rejected:
            rejected[test] += best_split(table, [0] * 4, e, 60, test).log_p <= np.log(alpha)
    # Three standard errors of a share at the level: a false alarm in a thousand.
    assert rejected["levene-adjusted"] / runs <= alpha + 3 * np.sqrt(alpha * (1 - alpha) / runs)
    assert rejected["levene"] / runs > 0.3  # why the correction exists


def test_adjusted_rule_holds_its_level_over_categories():
    rng = np.random.default_rng(2)
    runs, n, alpha = 250, 400, 0.05
    rejected = 0
    for _ in range(runs):
        table = np.column_stack([rng.integers(0, 5, n), rng.integers(0, 25, n)])
        rejected += best_split(table, [5, 25], rng.normal(size=n), 40).log_p <= np.log(alpha)
    assert rejected / runs <= alpha + 3 * np.sqrt(alpha * (1 - alpha) / runs)


@pytest.mark.parametrize("test", ["levene", "levene-adjusted"])
def test_planted_variance_change_is_found(test):
    rng = np.random.default_rng(3)
    table = rng.uniform(size=(1000, 5))
    e = rng.normal(size=1000) * np.where(table[:, 2] <= 0.7, 1.0, 1.6)
    split = best_split(table, [0] * 5, e, 100, test)
    assert split.feature == 2
    assert split.threshold == pytest.approx(0.7, abs=0.05)
    assert split.statistic < 0
    assert split.log_p < np.log(1e-6)


@pytest.mark.parametrize("n_levels", [6, 30])
def test_planted_levels_are_found(n_levels):
    rng = np.random.default_rng(4)
    codes = rng.integers(0, n_levels, 3000)
    loud = codes % 3 == 0
    split = best_split(codes[:, None].astype(float), [n_levels], rng.normal(size=3000) * (1 + 2 * loud), 200)
    left = split.goes_left(codes.astype(float))
    assert (left == loud).all() or (left == ~loud).all()
    assert split.log_p < np.log(1e-6)


def test_missing_numbers_go_right_and_may_be_a_side():
    rng = np.random.default_rng(5)
    x = rng.normal(size=800)
    x[::4] = np.nan
    split = best_split(x[:, None], [0], rng.normal(size=800) * np.where(np.isnan(x), 5.0, 1.0), 100)
    assert split.threshold == np.inf
    np.testing.assert_array_equal(split.goes_left(np.array([-1e9, 1e300, np.nan])), [True, True, False])


def test_unknown_and_absent_levels_go_to_the_larger_side():
    rng = np.random.default_rng(6)
    codes = rng.choice([0, 2], size=500, p=[0.7, 0.3])
    split = best_split(codes[:, None].astype(float), [4], rng.normal(size=500) * (1 + codes), 50)
    side = split.goes_left(np.array([0.0, -1.0, 1.0, 3.0, 2.0]))
    np.testing.assert_array_equal(side == side[0], [True, True, True, True, False])


@pytest.mark.parametrize(
    ("table", "e"),
    [
        (np.zeros((50, 2)), np.arange(50.0)),
        (np.full((50, 1), np.nan), np.arange(50.0)),
        (np.arange(50.0)[:, None], np.ones(50)),
        (np.arange(5.0)[:, None], np.arange(5.0)),
    ],
    ids=["constant features", "all missing", "constant residuals", "too few rows"],
)
def test_nothing_to_split(table, e):
    assert best_split(table, [0] * table.shape[1], e, 10) is None


def test_threshold_lies_between_neighbours_that_rounding_cannot_part():
    x = np.array([1.0] * 20 + [np.nextafter(1.0, 2.0)] * 20)
    e = np.random.default_rng(7).normal(size=40) * np.where(x > 1, 3, 1)
    split = best_split(x[:, None], [0], e, 10)
    assert split.goes_left(x).sum() == 20


def test_scale_of_residuals_and_features_does_not_matter():
    rng = np.random.default_rng(8)
    table, e = rng.normal(size=(300, 2)), rng.normal(size=300)
    plain = best_split(table, [0, 0], e, 30)
    scaled = best_split(table * 1e9, [0, 0], e * 1e-9 + 1.0, 30)
    assert scaled.feature == plain.feature
    assert scaled.statistic == pytest.approx(plain.statistic, rel=1e-5)
