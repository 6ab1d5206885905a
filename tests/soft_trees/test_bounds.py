"""Limits of spreads: what they are, what the likelihood makes of them, what predictions get."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from boostplugins.estimators.soft_tree import SoftTreeRegressor
from boostplugins.families import get_family
from boostplugins.soft_trees.bounds import bounded, limits_of_growth, spread_limits
from boostplugins.soft_trees.clipping import smooth_clip
from boostplugins.soft_trees.objective import Block, Objective, Penalty, Predictor
from boostplugins.soft_trees.tree import SoftTree

NORMAL = get_family("normal")


def hours(n, seed):
    """Whole numbers in 1..99, of which half or so are 40: more often so where a feature is large."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    tied = rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-X[:, 0]))
    return X, np.where(tied, 40.0, np.clip(np.round(40.0 + 12.0 * rng.normal(size=n)), 1.0, 99.0))


def test_limits_are_rounding_and_range():
    y = np.repeat([0.0, 0.5, 3.0], 4)
    low, high = spread_limits(NORMAL, y, np.ones(12))
    assert (low[0], high[0]) == (-np.inf, np.inf)
    assert (low[1], high[1]) == pytest.approx((np.log(0.5 / np.sqrt(12.0)), np.log(3.0)))
    smooth = np.random.default_rng(0).normal(size=50)  # not rounded
    low, high = spread_limits(NORMAL, smooth, np.ones(50))
    assert low[1] == pytest.approx(np.log(1e-4 * smooth.std()))
    assert high[1] == pytest.approx(np.log(np.ptp(smooth)))


@pytest.mark.parametrize("name", ["student_t", "jsu", "laplace", "logistic", "gumbel", "normal_mixture"])
def test_limits_hold_the_best_constant_between_them(name):
    family = get_family(name)
    y = np.random.default_rng(1).uniform(size=200)
    low, high = spread_limits(family, y, np.ones(200))
    start = family.init(y, np.ones(200))
    assert ((low <= start) & (start <= high)).all()
    assert set(np.flatnonzero(np.isfinite(high))) == set(family.scales)


@pytest.mark.parametrize("name", ["gamma", "poisson", "negative_binomial", "lognormal"])
def test_families_without_locations_have_no_limits(name):
    y = np.repeat([1.0, 2.0, 5.0], 10)
    limits = spread_limits(get_family(name), y, np.ones(30))
    assert np.isinf(limits).all()
    assert limits_of_growth(get_family(name), y, np.ones(30)) is None


def test_trees_grow_within_limits_where_responses_are_tied():
    tied = np.concatenate([np.zeros(10), np.arange(1.0, 91.0)])
    for y, weight in ((tied, np.ones(100)), (np.arange(91.0), np.array([10.0] + [1.0] * 90))):
        found = limits_of_growth(NORMAL, y, weight)
        np.testing.assert_array_equal(found, spread_limits(NORMAL, y, weight))
    assert limits_of_growth(NORMAL, tied[1:], np.ones(99)) is None
    grades = np.repeat([4.0, 5.0, 6.0], 30)
    assert limits_of_growth(NORMAL, grades, np.ones(90)) is None


@pytest.mark.parametrize("name", ["normal", "laplace", "logistic", "student_t"])
def test_a_likelihood_falls_beyond_the_ceiling(name):
    """No row has a residual beyond the range: a larger scale makes every row worse."""
    family = get_family(name)
    y = np.linspace(0.0, 1.0, 21)
    _, high = spread_limits(replace(family), y, np.ones(21))
    shape = family.init(y, np.ones(21))[2:]
    ceiling = np.log(np.ptp(y))
    raw = np.array([[mu, ceiling, *shape] for mu in (0.0, 0.5, 1.0)])
    for row in y:
        score, _ = family.score_and_fisher(np.full(3, row), raw)
        assert (score[:, 1] <= 1e-12).all()
    assert high[1] >= ceiling


def limited():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(40, 2))
    y = rng.normal(size=40)
    limits = np.array([-np.inf, -0.5]), np.array([np.inf, 0.5])
    objective = Objective(
        NORMAL, y, np.ones(40), [Block.of_features(x)] * 2, Penalty(0.1, 0.1), limits=limits
    )
    tree = SoftTree.stump(0.0, 2).split(0, 0.1, np.array([2.0, 1.0]), np.array([-2.0, 2.0]))
    return objective, [Predictor(np.empty(0), tree), Predictor(np.empty(0), tree)]


def test_what_lies_beyond_the_limits_counts_as_the_limit():
    objective, model = limited()
    raw = objective.raw(model)
    beyond = (raw[:, 1] < -0.75) | (raw[:, 1] > 0.75)
    assert 5 < beyond.sum() < 35
    free = replace(objective, limits=None)
    held, slope = smooth_clip(raw, *objective.limits)
    np.testing.assert_array_equal(held[beyond], np.clip(raw, *objective.limits)[beyond])
    assert objective.log_likelihood(raw) == free.log_likelihood(held)
    score, fisher = objective.derivatives(raw)
    plain = free.derivatives(held)
    assert (score[beyond, 1] == 0.0).all()
    np.testing.assert_array_equal(score, plain[0] * slope)
    np.testing.assert_array_equal(fisher, plain[1])


def test_a_smooth_clip_is_the_clip_but_for_its_bends():
    raw = np.linspace(-3.0, 3.0, 601)[:, None]
    low, high = np.array([-1.0]), np.array([1.0])
    held, slope = smooth_clip(raw, low, high)
    sharp = np.clip(raw, low, high)
    away = np.abs(np.abs(raw) - 1.0) >= 0.25
    np.testing.assert_array_equal(held[away], sharp[away])
    assert np.abs(held - sharp).max() == pytest.approx(0.0625)
    step = 1e-6
    ahead, back = (smooth_clip(raw + sign * step, low, high)[0] for sign in (1.0, -1.0))
    np.testing.assert_allclose(slope, (ahead - back) / (2.0 * step), atol=1e-5)
    same, ones = smooth_clip(raw, np.array([-np.inf]), np.array([np.inf]))
    np.testing.assert_array_equal(same, raw)
    assert (ones == 1.0).all()


def test_the_gradient_is_that_of_the_limited_likelihood():
    objective, model = limited()
    vector = objective.pack(model)
    _, gradient = objective.loss_and_gradient(vector, model)
    slopes = approx_fprime(vector, lambda v: objective.loss_and_gradient(v, model)[0], 1e-7)
    np.testing.assert_allclose(gradient, slopes, atol=2e-5)


def test_limits_that_are_never_reached_change_no_bit():
    objective, model = limited()
    wide = replace(objective, limits=(np.array([-np.inf, -9.0]), np.array([np.inf, 9.0])))
    free = replace(objective, limits=None)
    vector = objective.pack(model)
    (value, gradient), (other, same) = (o.loss_and_gradient(vector, model) for o in (wide, free))
    assert value == other
    np.testing.assert_array_equal(gradient, same)


def test_predictions_stay_between_the_limits():
    block = Block.of_features(np.linspace(-3.0, 3.0, 100)[:, None])
    tree = SoftTree.stump(0.0, 1).split(0, 0.0, np.array([5.0]), np.array([-8.0, 8.0]))
    held = bounded(Predictor(np.empty(0), tree), block, False, True, -2.0, 3.0)
    assert (held.low, held.high) == (-2.0, 3.0)
    inside = bounded(Predictor(np.empty(0), tree), block, False, True, -20.0, 30.0)
    value = np.sort(tree.value(block.x))
    assert (inside.low, inside.high) == (value[4], value[-1])


def test_a_half_of_tied_responses_leaves_the_spread_of_the_rest_alone():
    X, y = hours(300, 0)
    with pytest.warns(UserWarning, match="of 300 responses are 40"):
        model = SoftTreeRegressor(ridge=0.3).fit(X, y)
    far, new = hours(1000, 1)
    dist = model.predict_dist(far)
    assert dist.std().max() < np.ptp(y)
    constant = get_family("normal").crps(new, [y.mean(), y.std()]).mean()
    assert dist.crps(new).mean() < 1.1 * constant
    assert dist.std().min() >= 0.999 / np.sqrt(12.0)


def test_limits_follow_the_units_of_the_response():
    X, y = hours(120, 0)
    with pytest.warns(UserWarning, match="responses are"):
        plain, other = (
            SoftTreeRegressor(ridge=1.0, max_leaves=4, criterion=None).fit(X, scaled)
            for scaled in (y, 2.0**10 * y)
        )
    np.testing.assert_allclose(other.predict_dist(X).std(), 2.0**10 * plain.predict_dist(X).std(), rtol=1e-9)
