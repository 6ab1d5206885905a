"""Where a fit begins: the best constant, with an offset as well, and the guess from which it climbs."""

from __future__ import annotations

import numpy as np
import pytest

from boostplugins.families import NormalMixture, Tweedie, get_family
from boostplugins.families._quantile import weighted_quantile
from boostplugins.families._start import best_constant
from boostplugins.links import Identity
from tests.families.cases import FAMILIES, IDS, draws, raws

# Families whose guess is an estimate by moments or quantiles of all responses, and how far below the
# best log likelihood of a row it may stay.
NEAR = {
    "bernoulli": 1e-9,
    "beta": 0.01,
    "exponential": 1e-9,
    "gamma": 0.01,
    "gumbel": 0.01,
    "hurdle": 0.06,
    "inverse_gaussian": 0.02,
    "logistic": 0.002,
    "negative_binomial": 0.002,
    "student_t": 0.02,
    "tweedie": 0.02,
    "weibull": 0.002,
    "zero_inflated": 0.05,
}
ESTIMATES = [family for family in FAMILIES if family.name in NEAR]


def sample(family, spread, seed=0, n=400):
    """Responses, weights and offset of one set of parameters, and their mean log likelihood."""
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 3, n).astype(float)
    offset = spread * rng.normal(size=n)
    raw = np.tile(raws(family, 1, seed=seed), (n, 1))
    raw[:, 0] += offset
    y = draws(family, family.theta(raw), seed=10)

    def value(at):
        moved = np.tile(at, (n, 1))
        moved[:, 0] += offset
        return weight @ family.log_pdf(y, family.theta(moved)) / weight.sum()

    return y, weight, offset, value


@pytest.mark.parametrize("family", FAMILIES, ids=IDS)
def test_start_with_an_offset_maximises_the_weighted_likelihood(family):
    y, weight, offset, value = sample(family, 0.7, n=150)
    start = family.init(y, weight, offset)
    for k in range(family.n_params):
        for step in (-0.02, 0.02):
            moved = start.copy()
            moved[k] += step
            assert value(moved) <= value(start) + 1e-11


@pytest.mark.parametrize("family", ESTIMATES, ids=repr)
def test_guesses_are_near_the_best_constant(family):
    for seed in range(3):
        y, weight, _, value = sample(family, 0.0, seed)
        guess, best = family._guess(y, weight, None), family.init(y, weight)
        assert value(best) - value(guess) <= NEAR[family.name]


@pytest.mark.parametrize("family", ESTIMATES, ids=repr)
def test_guesses_take_an_offset_off(family):
    """Some guesses use the mean of the offset alone, others leave out the zeros: they are cruder."""
    crude = family.name in ("beta", "hurdle", "negative_binomial", "tweedie", "zero_inflated")
    for seed in range(3):
        y, weight, offset, value = sample(family, 0.3 if crude else 0.7, seed)
        guess, best = family._guess(y, weight, offset), family.init(y, weight, offset)
        assert value(best) - value(guess) <= (0.1 if crude else 0.02)


def test_counts_without_an_event_get_half_of_the_heaviest_row():
    weight, offset = np.array([2.0, 1.0, 1.0, 0.0]), np.log([1.0, 3.0, 5.0, 7.0])
    for exposed, total in ((None, 4.0), (offset, 2.0 + 3.0 + 5.0)):
        start = get_family("poisson").init(np.zeros(4), weight, exposed)
        guess = get_family("negative_binomial")._guess(np.zeros(4), weight, exposed)
        np.testing.assert_allclose([start[0], guess[0]], np.log(1.0 / total))


def test_guess_of_zero_inflation_takes_off_the_zeros_of_the_base():
    y = np.repeat([0.0, 1.0, 2.0, 4.0], [40, 20, 20, 20])
    weight = np.where(np.arange(100) % 2, 1.0, 0.0)
    for scale, offset in ((1.0, None), (3.0, np.full(100, np.log(3.0)))):
        family = get_family("ZIP")
        guess = family._guess(y, weight, offset)
        none = np.exp(-7 / 3)  # of the mean of the positive ones
        share = (0.4 - none) / (1 - none)
        np.testing.assert_allclose(family.theta(guess), [7 / 3 / scale, share], rtol=1e-12)


@pytest.mark.parametrize("name", ["gumbel", "jsu", "logistic", "student_t", "gamma", "inverse_gaussian"])
def test_guess_with_an_offset_is_that_of_what_it_leaves(name):
    family = get_family(name)
    rng = np.random.default_rng(3)
    y, offset, weight = rng.gamma(2.0, size=50), rng.normal(size=50), rng.integers(0, 3, 50).astype(float)
    rest = y - offset if family.locations else y * np.exp(-offset)
    found = family._guess(y, weight, offset)
    np.testing.assert_allclose(found, family._guess(rest, weight, None), rtol=1e-12)


@pytest.mark.parametrize("family", [get_family("negative_binomial"), Tweedie(1.5)], ids=repr)
def test_guess_with_a_constant_offset_moves_the_log_mean(family):
    y = np.array([0.0, 1.0, 3.0, 7.0, 20.0])
    found = family._guess(y, np.ones(5), np.full(5, 0.8))
    np.testing.assert_allclose(found, family._guess(y, np.ones(5), None) - [0.8, 0.0], rtol=1e-12)


def test_guess_of_an_inverse_gaussian_has_mean_and_variance_of_the_responses():
    y = np.array([1.0, 2.0, 3.0, 6.0])
    family = get_family("inverse_gaussian")
    theta = family.theta(family._guess(y, np.ones(4), None))
    np.testing.assert_allclose([family.mean(theta), family.var(theta)], [3.0, 3.5])


def test_guess_of_a_mixture_spreads_its_parts_over_the_quantiles():
    y = np.arange(100.0)
    for parts, means in ((2, [24.5, 74.5]), (4, [12.0, 37.0, 62.0, 87.0])):
        guess = NormalMixture(parts)._guess(y, np.ones(100), None)
        np.testing.assert_allclose(guess[:parts], 0.0)
        np.testing.assert_allclose(guess[parts : 2 * parts], means, atol=0.5)
        np.testing.assert_allclose(np.exp(guess[2 * parts :]), y.std() / parts)


class Steep:
    """A likelihood whose information is a twentieth of its curvature: every full step is too long."""

    links = (Identity(-50.0, 50.0),)

    def theta(self, raw):
        return raw

    def seen(self, y, raw):
        return None

    def log_pdf(self, y, theta):
        return -np.logaddexp(3.0 * (theta[:, 0] - y), -3.0 * (theta[:, 0] - y))

    def score_and_fisher(self, y, raw):
        return -3.0 * np.tanh(3.0 * (raw - y[:, None])), np.full(raw.shape, 0.45)


def test_steps_that_go_too_far_are_halved():
    found = best_constant(Steep(), np.full(4, 1.5), np.ones(4), np.array([4.0]), None)
    np.testing.assert_allclose(found, [1.5], atol=1e-6)


def test_weighted_quantiles_take_the_middle_of_a_tie_and_the_ends():
    y, weight = np.array([4.0, 9.0, 2.0, 1.0, 3.0]), np.array([1.0, 0.0, 1.0, 1.0, 1.0])
    found = [weighted_quantile(y, weight, q) for q in (0.0, 0.3, 0.5, 0.75, 1.0)]
    assert found == [1.0, 2.0, 2.5, 3.5, 4.0]
    assert weighted_quantile(y, 2 * weight, 0.5) == 2.5
