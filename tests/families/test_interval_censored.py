"""Rows with limits of their own: laws, formulas by hand, failures."""

from __future__ import annotations

import numpy as np
import pytest

from boostplugins.families import (
    Exponential,
    Gamma,
    Gumbel,
    IntervalCensored,
    LogNormal,
    Normal,
    Poisson,
    StudentT,
    Truncated,
    Weibull,
    get_family,
)
from boostplugins.families._between import log_between, score_between
from boostplugins.families._steps import Steps
from boostplugins.predictive import Predictive
from tests.families.cases import draws, raws

BASES = [Normal(), Weibull(), Gamma(), LogNormal(), StudentT(), Gumbel(), Truncated(Normal(), low=0.0)]
each = pytest.mark.parametrize("base", BASES, ids=repr)


def limits(base, theta, seed=0):
    """Observed, right-censored, left-censored and interval rows, in turns."""
    rng = np.random.default_rng(seed)
    y = draws(base, theta, seed=seed + 1)
    width = np.abs(y) * rng.uniform(0.05, 0.5, len(y)) + 0.05
    kind = np.arange(len(y)) % 4
    low = np.where(kind == 2, -np.inf, np.where(kind == 3, y - width, y))
    high = np.where(kind == 1, np.inf, np.where(kind == 3, y + width, y))
    return np.column_stack([low, high])


@each
def test_score_equals_finite_difference(base):
    family = IntervalCensored(base)
    raw = raws(base, 60)
    y = family.responses(limits(base, family.theta(raw)))
    score, fisher = family.score_and_fisher(y, raw)
    assert (fisher > 0).all()
    for k in range(family.n_params):
        step = np.zeros(family.n_params)
        step[k] = 1e-4
        value = [family.log_pdf(y, family.theta(raw + m * step)) for m in (-2, -1, 1, 2)]
        numeric = (value[0] - 8 * value[1] + 8 * value[2] - value[3]) / (12 * 1e-4)
        np.testing.assert_allclose(score[:, k], numeric, rtol=1e-6, atol=2e-6)


@each
@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9])
def test_score_of_a_censored_row_has_mean_zero_and_the_variance_that_is_seen(base, cut):
    """Each row is censored at its own quantile: expectations over what may have happened, by quadrature."""
    family = IntervalCensored(base)
    raw = raws(base, 3, seed=2)
    theta = family.theta(raw)
    nodes, weights = np.polynomial.legendre.leggauss(200)
    s = 0.5 * (nodes + 1)
    levels, weights = cut * s**6, 0.5 * weights * cut * 6 * s**5  # scores may be infinite at one end
    for i in range(3):
        limit = float(base.ppf(cut, theta[i]))
        seen = base.ppf(levels, theta[i])
        y = family.responses(np.column_stack([np.append(seen, limit), np.append(seen, np.inf)]))
        score, fisher = family.score_and_fisher(y, np.tile(raw[i], (len(y), 1)))
        mass = np.append(weights, 1.0 - cut)
        np.testing.assert_allclose(mass @ score, 0.0, atol=1e-5)
        share = family.seen(y[-1:], raw[i])
        np.testing.assert_allclose(mass @ score**2, share * fisher[-1], rtol=0.02)
        assert (share <= 1.0).all()


def test_likelihood_of_survival_times_by_hand():
    """Events tell log hazard and cumulative hazard, censored times the latter alone."""
    rng = np.random.default_rng(0)
    time, event = rng.exponential(2.0, 50) + 0.1, rng.random(50) < 0.6
    y = np.column_stack([time, np.where(event, time, np.inf)])
    scale, shape = 3.0, 1.4
    hand = event * np.log(shape / scale * (time / scale) ** (shape - 1)) - (time / scale) ** shape
    family = IntervalCensored(Weibull())
    dist = Predictive(family, np.tile([scale, shape], (50, 1)))
    np.testing.assert_allclose(dist.log_pdf(y), hand, rtol=1e-12)
    structured = np.array(list(zip(event, time)), dtype=[("event", bool), ("time", float)])
    np.testing.assert_array_equal(family.responses(structured), family.responses(y))
    np.testing.assert_allclose(1.0 - dist.cdf(2.0), np.exp(-((2 / 3) ** 1.4)))
    mixture = Predictive(family, np.tile([[scale, shape], [scale, shape]], (50, 1, 1)))
    np.testing.assert_allclose(mixture.log_pdf(y), hand, rtol=1e-12)


@pytest.mark.parametrize("share", [0.3, 0.95])
def test_best_constant_of_exponential_times_is_total_time_over_events(share):
    rng = np.random.default_rng(1)
    time, censor = rng.exponential(4.0, 2000), rng.exponential(4.0 * (1 - share) / share, 2000)
    seen, event = np.minimum(time, censor), time <= censor
    weight = rng.integers(0, 3, 2000).astype(float)
    family = IntervalCensored(Exponential())
    y = family.responses(np.column_stack([seen, np.where(event, seen, np.inf)]))
    expected = (weight @ seen) / (weight @ event)
    assert family.theta(family.init(y, weight))[0] == pytest.approx(expected, rel=1e-5)
    offset = rng.normal(size=2000)
    expected = (weight @ (seen * np.exp(-offset))) / (weight @ event)
    assert family.theta(family.init(y, weight, offset))[0] == pytest.approx(expected, rel=1e-5)


@each
def test_observed_pairs_are_the_base_family(base):
    family = IntervalCensored(base)
    raw = raws(base, 30)
    y = draws(base, family.theta(raw))
    pairs = family.responses(np.column_stack([y, y]))
    np.testing.assert_array_equal(family.log_pdf(pairs, family.theta(raw)), base.log_pdf(y, base.theta(raw)))
    for mine, theirs in zip(family.score_and_fisher(pairs, raw), base.score_and_fisher(y, raw)):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(family.init(pairs), base.init(y))
    np.testing.assert_array_equal(family.crps(pairs, family.theta(raw)), base.crps(y, base.theta(raw)))


@each
def test_far_limits_stay_finite(base):
    family = IntervalCensored(base)
    ends = [1e-300, 1e-3, 1.0, 1e6, 1e300]
    pairs = [(low, high) for low in [-np.inf, *ends] for high in [*ends, np.inf] if low < high][:-1]
    y = family.responses(np.array([pair for pair in pairs if np.isfinite(pair).any()]))
    for level in (-700.0, -20.0, 0.0, 20.0, 700.0):
        for other in (-700.0, 0.0, 700.0):
            raw = np.full((len(y), family.n_params), other)
            raw[:, 0] = level
            score, fisher = family.score_and_fisher(y, raw)
            assert np.isfinite(score).all()
            assert np.isfinite(fisher).all()
            assert (fisher > 0).all()
            assert np.isfinite(family.log_pdf(y, family.theta(raw))).all()


def test_narrow_intervals_are_densities_times_widths():
    """Far in a tail, or narrow for the scale: differences of probabilities would be nothing but rounding."""
    normal = Normal()
    low = np.array([30.0, -30.0, 0.3, 5.0])
    theta = np.tile([0.0, 1.0], (4, 1))
    width = 1e-9
    found = log_between(normal, low, low + width, theta)
    np.testing.assert_allclose(found, normal.log_pdf(low + width / 2, theta) + np.log(width), rtol=1e-7)
    score = score_between(normal, low, low + width, normal.raw(theta))
    np.testing.assert_allclose(score, normal.score_and_fisher(low, normal.raw(theta))[0], rtol=1e-6)
    wide = np.tile([0.0, 1e60], (2, 1))  # as good as uniform: nothing in the interval tells of the scale
    flat = log_between(normal, np.array([-1.0, 0.0]), np.array([1.0, 5.0]), wide)
    np.testing.assert_allclose(
        flat, np.log([2.0, 5.0]) - 60 * np.log(10) - 0.5 * np.log(2 * np.pi), rtol=1e-12
    )


def test_steps_allow_for_what_censored_rows_lack():
    family = IntervalCensored(Exponential())
    y = np.full(1000, 1.0)
    pairs = family.responses(np.column_stack([y, np.where(np.arange(1000) < 100, y, np.inf)]))
    for exponent in (0.0, 1.0):
        steps = Steps(family, pairs, None, None, exponent)
        np.testing.assert_allclose(steps.share, [0.1 + 0.9 * (1 - np.exp(-0.1))], atol=0.02)
        out = np.empty((1000, 1)), np.empty((1000, 1))
        steps.terms(np.tile(steps.start, (1000, 1)), 1.0, out)
        assert abs(out[0].sum()) <= 1e-5 * np.abs(out[0]).sum()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[2.0, 1.0], [0.0, 1.0]], "must hold lower <= upper"),
        ([[-np.inf, np.inf]], "one of them finite"),
        ([[np.nan, 1.0]], "neither NaN"),
        ([[np.inf, np.inf]], "must hold lower <= upper"),
        ([["a", "b"]], "must be numeric"),
        ([1.0, np.inf], "must be finite"),
        (np.empty((0, 2)), "at least one row"),
        (np.zeros(2, dtype=[("a", float), ("b", float), ("c", float)]), "structured as"),
    ],
)
def test_bad_limits_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        IntervalCensored().responses(y)


def test_impossible_rows_and_bases_are_refused():
    family = IntervalCensored(Weibull())
    with pytest.raises(ValueError, match="must reach into the numbers in"):
        family.check_support(family.responses([[-2.0, -1.0], [1.0, 1.0]]))
    with pytest.raises(ValueError, match="must hold numbers in"):
        family.check_support(family.responses([[0.0, 0.0]]))
    family.check_support(family.responses([[-2.0, 1.0], [0.0, 3.0], [5.0, np.inf]]))
    for base in (Poisson(), IntervalCensored(), "normal", get_family("tweedie")):
        with pytest.raises(ValueError, match="base of IntervalCensored"):
            IntervalCensored(base)
    with pytest.raises(ValueError, match="crps needs observed responses"):
        family.crps(family.responses([[1.0, np.inf]]), [[1.0, 1.0]])
