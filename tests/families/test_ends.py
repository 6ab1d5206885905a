"""What families say at the ends of their support, beyond them and between whole numbers."""

from __future__ import annotations

import copy
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from boostplugins.families import Censored, Family, IntervalCensored, Support, get_family
from tests.families.cases import FAMILIES, IDS, raws

each = pytest.mark.parametrize("family", FAMILIES, ids=IDS)
# Supports whose lower end is 0 and whether it is a response.
FROM_ZERO = {
    "bernoulli": True,
    "beta": False,
    "categorical": True,
    "exponential": True,
    "gamma": False,
    "hurdle": True,
    "inverse_gaussian": False,
    "lognormal": False,
    "negative_binomial": True,
    "poisson": True,
    "tweedie": True,
    "weibull": False,
    "zero_inflated": True,
}


@each
def test_nothing_lies_beyond_the_support(family):
    theta = family.theta(raws(family, 4, seed=16))
    low, high = family.support.low, family.support.high
    for gap in (0.3, 1.0, 2.5, 1e6):
        if np.isfinite(low):
            assert (family.cdf(low - gap, theta) == 0).all()
            assert (family.sf(low - gap, theta) == 1).all()
            assert (family.log_pdf(low - gap, theta) == -np.inf).all()
        if np.isfinite(high):
            np.testing.assert_allclose(family.cdf(high + gap, theta), 1.0, rtol=1e-14)
            np.testing.assert_allclose(family.sf(high + gap, theta), 0.0, atol=1e-14)
            assert (family.log_pdf(high + gap, theta) == -np.inf).all()


@each
def test_ends_have_a_density_where_they_are_responses(family):
    theta = family.theta(raws(family, 4, seed=16))
    assert family.support.integer == family.discrete
    if family.name in FROM_ZERO:
        assert family.support.low == 0
        assert family.support.closed_low == FROM_ZERO[family.name]
    for end in (family.support.low, family.support.high):
        if np.isfinite(end):
            found = family.log_pdf(end, theta)
            allowed = bool(family.support.contains(end))
            assert (np.isfinite(found) if allowed else found == -np.inf).all()


def test_beta_of_two_poles_has_none_at_its_ends():
    assert (get_family("beta").log_pdf([0.0, 1.0], [0.5, 1.0]) == -np.inf).all()


@pytest.mark.parametrize("family", [f for f in FAMILIES if f.discrete], ids=repr)
def test_counts_have_mass_on_whole_numbers_alone(family):
    theta = family.theta(raws(family, 4, seed=16))
    for k in (0.0, 1.0, 3.0):
        for part in (0.25, 0.5, 0.99):
            np.testing.assert_array_equal(family.cdf(k + part, theta), family.cdf(k, theta))
            np.testing.assert_array_equal(family.sf(k + part, theta), family.sf(k, theta))
            assert (family.log_pdf(k + part, theta) == -np.inf).all()


@each
def test_quantiles_of_0_and_1_are_the_ends(family):
    theta = family.theta(raws(family, 3))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(family.ppf(0.0, theta), family.support.low)
        np.testing.assert_array_equal(family.ppf(1.0, theta), family.support.high)


@pytest.mark.parametrize("nu", [3.0, 5.0, 10.0])
def test_quantiles_of_student_t_far_down(nu):
    theta = np.array([1.0, 2.0, nu])
    for level in (1e-200, 1e-260, 1e-300):
        found = get_family("student_t").log_cdf(get_family("student_t").ppf(level, theta), theta)
        assert found == pytest.approx(np.log(level), rel=1e-9)


@pytest.mark.parametrize("family", [f for f in FAMILIES if f.discrete], ids=repr)
def test_quantile_at_a_step_is_the_least_count_that_reaches_it(family):
    theta = family.theta(raws(family, 40, seed=17))
    for k in range(7):
        level = family.cdf(float(k), theta)
        inside = level < 1 - 1e-9
        assert (family.ppf(level, theta)[inside] == k).all()
        above = np.minimum(level * (1 + 1e-14), 1.0)  # beyond the step, and beyond rounding
        assert (family.ppf(above, theta)[inside] == k + 1).all()


@each
def test_families_are_frozen_and_hashable(family):
    assert hash(copy.deepcopy(family)) == hash(family)
    with pytest.raises(FrozenInstanceError):
        family.name = "another"


def test_limits_of_censoring_are_responses_within_the_support_of_the_base():
    gamma, beta = get_family("gamma"), get_family("beta")
    assert Censored(gamma, 0.5, 2.0).support == Support(0.5, 2.0, closed_low=True, closed_high=True)
    assert Censored(gamma, -1.0).support == Support(0.0)
    assert Censored(beta, 0.2, 1.5).support == Support(0.2, 1.0, closed_low=True)


def test_nothing_is_recorded_at_a_limit_beyond_which_nothing_lies():
    """A Gamma is never 0 or less: a response of 0 would have the probability 0."""
    gamma, beta = get_family("gamma"), get_family("beta")
    assert Censored(gamma).support == Support(0.0)
    assert Censored(beta, 0.2, 1.0).support == Support(0.2, 1.0, closed_low=True)
    with pytest.raises(ValueError, match=r"y must hold numbers in \(0, inf\)"):
        Censored(gamma).check_support(np.array([0.0, 1.0]))


@pytest.mark.parametrize("row", [(1.0, 2.0), (1.5, np.inf), (-1.0, 0.0), (-np.inf, -0.5)])
def test_intervals_beyond_the_support_are_impossible(row):
    family = IntervalCensored(get_family("beta"))
    theta = np.array([[0.4, 3.0]])
    assert (family.log_pdf(family.responses([row]), theta) == -np.inf).all()
    with pytest.raises(ValueError, match="must reach into"):
        family.check_support(family.responses([row]))


def test_intervals_that_reach_into_the_support_are_possible():
    family = IntervalCensored(get_family("beta"))
    rows = family.responses([(0.9, 2.0), (-1.0, 0.1), (-1.0, 2.0)])
    family.check_support(rows)
    assert np.isfinite(family.log_pdf(rows, np.array([[0.4, 3.0]] * 3))).all()


@pytest.mark.parametrize("name", ["gamma", "poisson", "student_t"])
def test_information_without_a_matrix_of_its_own_is_the_diagonal(name):
    family = get_family(name)
    raw = raws(family, 3)
    diagonal = family.score_and_fisher(np.ones(3), raw)[1]
    expected = np.stack([np.diag(row) for row in diagonal])
    np.testing.assert_array_equal(Family.fisher_matrix(family, raw), expected)


@pytest.mark.parametrize(
    ("name", "theta", "rule"),
    [
        ("normal", [0.0, -1.0], "sigma of family normal must be finite and > 0"),
        ("normal", [0.0, 0.0], "sigma of family normal must be finite and > 0"),
        ("normal", [0.0, np.inf], "sigma of family normal must be finite and > 0"),
        ("normal", [np.nan, 1.0], "mu of family normal must be finite"),
        ("bernoulli", [1.1], r"p of family bernoulli must be in \[0, 1\]"),
        ("bernoulli", [-0.1], r"p of family bernoulli must be in \[0, 1\]"),
    ],
)
def test_parameters_out_of_range_are_refused(name, theta, rule):
    with pytest.raises(ValueError, match=rule):
        get_family(name).check_theta(np.array([theta]))


def test_parameters_at_the_ends_of_their_range_are_allowed():
    get_family("bernoulli").check_theta(np.array([[0.0], [1.0]]))
    get_family("normal").check_theta(np.array([[-1e300, 1e-300]]))


@pytest.mark.parametrize("family", [f for f in FAMILIES if f.support.low == -np.inf], ids=repr)
def test_starts_of_zeros_alone_are_finite(family):
    assert np.isfinite(family.init(np.zeros(5))).all()


def test_guess_of_student_t_does_not_follow_an_outlier():
    y = np.append(np.linspace(-1.0, 1.0, 99), 1e9)
    guess = get_family("student_t")._guess(y, np.ones(100), None)
    assert abs(guess[0]) < 0.1
    assert np.exp(guess[1]) < 1.0


def test_variance_of_a_weibull_with_little_spread():
    """Logarithms of a Weibull are Gumbel: var = pi^2 / (6 k^2) of the square of its scale."""
    found = get_family("weibull").var([[3.0, 0.99e5], [3.0, 1.01e5], [3.0, 1e7]])
    expected = 9.0 * np.pi**2 / (6.0 * np.array([0.99e5, 1.01e5, 1e7]) ** 2)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_two_columns_are_refused_where_a_response_is_one_number():
    family = get_family("normal")
    np.testing.assert_array_equal(family.responses(np.array([1.0, 2.0])), [1.0, 2.0])
    for rows in (1, 2, 5):
        with pytest.raises(ValueError, match=r"two columns.*IntervalCensored"):
            family.responses(np.zeros((rows, 2)))
    with pytest.raises(ValueError, match="^(?!.*IntervalCensored)"):
        family.responses(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="^(?!.*numeric)"):
        IntervalCensored().responses(np.zeros((2, 3)))
