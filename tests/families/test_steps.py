"""What a booster is given for one round."""

from __future__ import annotations

import numpy as np
import pytest

from boostplugins.families import Censored, get_family
from boostplugins.families._steps import MAX_SCORE, MAX_STEP, Steps, cut_steps
from tests.families.cases import draws, raws


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("name", "rate"), [("poisson", 0.02), ("poisson", 1e-3), ("bernoulli", 1e-3)])
def test_limits_of_scores_leave_the_rate_of_rare_events_alone(name, rate, exponent):
    """At the true rate the gradients of all rows add up to nothing."""
    n = 10_000
    y = (np.arange(n) < rate * n).astype(float)
    steps = Steps(get_family(name), y, None, None, exponent)
    out = np.empty((n, 1)), np.empty((n, 1))
    steps.terms(np.tile(steps.start, (n, 1)), -1.0, out)
    assert abs(out[0].sum()) <= 1e-6 * np.abs(out[0]).sum()


def test_one_outlier_has_a_limited_say():
    y = np.append(np.ones(99), 1e6)
    for name, largest in (("normal", 20.0), ("poisson", 20.0), ("gamma", 20.0)):
        steps = Steps(get_family(name), y, None, None, 1.0)
        raw = np.tile(get_family(name).init(y[:50] + np.linspace(0.0, 1.0, 50)), (100, 1))
        out = np.empty(raw.shape), np.empty(raw.shape)
        steps.terms(raw, -1.0, out)
        fisher = get_family(name).score_and_fisher(y, raw)[1]
        free = steps.unit_free
        assert (np.abs(out[0][:, free]) <= largest * np.sqrt(np.maximum(fisher, 1.0))[:, free] * 1.001).all()


@pytest.mark.parametrize("exponent", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("name", ["gumbel", "gamma"])
def test_terms_are_steps_that_count_by_information_to_a_power(name, exponent):
    family, n = get_family(name), 40
    raw = raws(family, n)
    y = draws(family, family.theta(raw))
    weight = np.linspace(0.5, 2.0, n)
    steps = Steps(family, y, weight, None, exponent)
    score, fisher = family.score_and_fisher(y, raw)
    unit = np.ones(family.n_params)
    for k in family.locations:
        unit[k] = family.score_and_fisher(y[:1], steps.start[None])[1][0, k] ** -exponent
    for sign in (1.0, -1.0):
        out = np.empty(raw.shape), np.empty(raw.shape)
        steps.terms(raw, sign, out)
        count = weight[:, None] * unit * fisher**exponent
        np.testing.assert_allclose(out[0], sign * count * score / fisher, rtol=1e-12)
        np.testing.assert_allclose(out[1], count, rtol=1e-12)


def test_a_parameter_whose_tree_did_not_split_moves_by_its_constant():
    family, n, rate = get_family("gamma"), 30, 0.3
    y = draws(family, family.theta(raws(family, n)))
    steps = Steps(family, y, None, None, 1.0)
    steps.start = steps.start + 0.2
    rng = np.random.default_rng(0)
    preds = 0.1 * rng.normal(size=(n, 2))
    offset = 0.1 * rng.normal(size=n)
    out = np.empty((n, 2)), np.empty((n, 2))
    before = steps.start.copy()
    assert steps.descend(preds, offset, rate, out) == []
    moved = preds.copy()
    moved[:, 0] += 0.05  # the first parameter's tree did split
    raw = moved + before
    raw[:, 0] += offset
    score, fisher = family.score_and_fisher(y, raw)
    expected = rate * score[:, 1].sum() / fisher[:, 1].sum()
    (k, step), *others = steps.descend(moved, offset, rate, out)
    assert (k, others) == (1, [])
    assert step == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(steps.start, before + np.array([0.0, expected]))
    raw[:, 1] += expected
    score, fisher = family.score_and_fisher(y, raw)
    np.testing.assert_allclose(out[0], -score, rtol=1e-12)
    np.testing.assert_allclose(out[1], fisher, rtol=1e-12)


def test_steps_are_cut():
    score = np.array([[1.0, 1.0], [1e6, 1e6], [-1e6, -1e6], [3.0, 3.0]])
    fisher = np.array([[4.0, 4.0], [4.0, 4.0], [4.0, 4.0], [0.01, 0.01]])
    cut_steps(score, fisher, np.array([False, True]), MAX_SCORE, MAX_STEP)
    limit = MAX_SCORE / 2.0
    free = min(limit, MAX_STEP)
    np.testing.assert_allclose(score[:, 0], [0.25, limit, -limit, MAX_SCORE / 0.1])
    np.testing.assert_allclose(score[:, 1], [0.25, free, -free, 300.0])


def test_weights_beyond_single_precision_count_as_they_are_to_one_another():
    y, weight = np.random.default_rng(0).normal(size=50), np.random.default_rng(1).uniform(0.5, 2.0, 50)
    out = []
    for size in (1e20, 1e300):
        steps = Steps(get_family("normal"), y, size * weight, None, 0.0)
        gradient, curvature = (np.empty((50, 2), np.float32, order="F") for _ in range(2))
        steps.descend(np.zeros((50, 2)), 0.0, 0.1, (gradient, curvature))
        assert np.isfinite(gradient).all()
        out.append(gradient / curvature.sum(axis=0))
    np.testing.assert_allclose(*out, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")  # of the kernel as plain Python
def test_terms_beyond_single_precision_stay_finite():
    """All responses at a limit: the start has no spread, its information 1e118."""
    family = Censored(low=0.0)
    steps = Steps(family, np.zeros(30), None, None, 1.0)
    gradient, curvature = (np.empty((30, 2), np.float32, order="F") for _ in range(2))
    for _ in range(3):
        steps.descend(np.zeros((30, 2)), 0.0, 0.1, (gradient, curvature))
    assert np.isfinite(steps.start).all()
    assert np.isfinite(gradient).all()
    assert (np.isfinite(curvature) & (curvature > 0)).all()
