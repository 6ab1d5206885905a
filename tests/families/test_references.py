"""Families against scipy.stats, scoringrules and values known from elsewhere."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scoringrules as sr
from scipy import integrate, special, stats

from boostplugins.families import (
    Censored,
    Gamma,
    Hurdle,
    NegativeBinomial,
    Normal,
    NormalMixture,
    Poisson,
    StudentT,
    Truncated,
    Tweedie,
    ZeroInflated,
    get_family,
)
from boostplugins.families import _special as own

# Each family, its scipy twin as a function of theta, and responses.
GRID = np.array([0.05, 0.3, 0.9, 1.7, 4.0])
COUNTS = np.arange(8.0)
UNIT = np.array([0.02, 0.3, 0.6, 0.97])
SCIPY = [
    ("normal", (0.4, 1.7), lambda m, s: stats.norm(m, s), GRID),
    ("lognormal", (0.4, 0.7), lambda m, s: stats.lognorm(s, scale=math.exp(m)), GRID),
    ("student_t", (0.4, 1.7, 3.5), lambda m, s, nu: stats.t(nu, m, s), GRID),
    ("laplace", (0.4, 1.7), lambda m, b: stats.laplace(m, b), GRID),
    ("logistic", (0.4, 1.7), lambda m, s: stats.logistic(m, s), GRID),
    ("gumbel", (0.4, 1.7), lambda m, b: stats.gumbel_r(m, b), GRID),
    ("gamma", (1.4, 2.7), lambda m, k: stats.gamma(k, scale=m / k), GRID),
    ("gamma", (1.4, 3e5), lambda m, k: stats.gamma(k, scale=m / k), np.array([1.39, 1.4, 1.405])),
    ("inverse_gaussian", (1.4, 2.7), lambda m, k: stats.invgauss(m / k, scale=k), GRID),
    ("weibull", (1.4, 2.7), lambda c, k: stats.weibull_min(k, scale=c), GRID),
    ("exponential", (1.4,), lambda m: stats.expon(scale=m), GRID),
    ("beta", (0.4, 2.7), lambda m, f: stats.beta(m * f, (1 - m) * f), UNIT),
    ("jsu", (0.4, 1.7, -0.3, 1.2), lambda m, s, nu, tau: stats.johnsonsu(nu, tau, m, s), GRID),
    ("poisson", (2.4,), lambda m: stats.poisson(m), COUNTS),
    ("negative_binomial", (2.4, 1.3), lambda m, k: stats.nbinom(k, k / (k + m)), COUNTS),
    ("bernoulli", (0.3,), lambda p: stats.bernoulli(p), np.array([0.0, 1.0])),
]


@pytest.mark.parametrize(("name", "theta", "twin", "y"), SCIPY, ids=[f"{case[0]}{case[1]}" for case in SCIPY])
def test_equals_scipy(name, theta, twin, y):
    family, other = get_family(name), twin(*theta)
    theta = np.array(theta)
    log_pdf = other.logpmf if family.discrete else other.logpdf
    np.testing.assert_allclose(family.log_pdf(y, theta), log_pdf(y), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(family.cdf(y, theta), other.cdf(y), rtol=1e-10)
    np.testing.assert_allclose(family.sf(y, theta), other.sf(y), rtol=1e-9, atol=1e-14)
    q = np.array([0.001, 0.2, 0.5, 0.9, 0.999])
    np.testing.assert_allclose(family.ppf(q, theta), other.ppf(q), rtol=1e-9, atol=1e-12)
    assert float(family.mean(theta)) == pytest.approx(other.mean(), rel=1e-9)
    assert float(family.var(theta)) == pytest.approx(other.var(), rel=1e-6)


N = 50
RNG = np.random.default_rng(0)
Y = np.abs(RNG.normal(size=N)) + 0.05
A, B = RNG.normal(size=N), np.exp(RNG.normal(size=N) * 0.4)
P = RNG.uniform(0.1, 0.9, N)
SCORES = [
    ("normal", (A, B), sr.crps_normal(Y, A, B), Y),
    ("lognormal", (A, B), sr.crps_lognormal(Y, A, B), Y),
    ("student_t", (A, B, 2 + B), sr.crps_t(Y, 2 + B, A, B), Y),
    ("laplace", (A, B), sr.crps_laplace(Y, A, B), Y),
    ("logistic", (A, B), sr.crps_logistic(Y, A, B), Y),
    ("gumbel", (A, B), sr.crps_gev(Y, np.zeros(N), A, B), Y),
    ("gamma", (B, 1 + B), sr.crps_gamma(Y, 1 + B, (1 + B) / B), Y),
    ("exponential", (B,), sr.crps_exponential(Y, 1 / B), Y),
    ("beta", (P, B), sr.crps_beta(P[::-1], P * B, (1 - P) * B), P[::-1]),
    ("poisson", (B,), sr.crps_poisson(np.floor(4 * Y), B), np.floor(4 * Y)),
    (
        "negative_binomial",
        (B, 1 + B),
        sr.crps_negbinom(np.floor(4 * Y), 1 + B, (1 + B) / (1 + 2 * B)),
        np.floor(4 * Y),
    ),
]


@pytest.mark.parametrize(("name", "theta", "expected", "y"), SCORES, ids=[case[0] for case in SCORES])
def test_crps_equals_scoringrules(name, theta, expected, y):
    found = get_family(name).crps(y, np.stack(theta, axis=1))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_crps_of_normal_mixtures_and_censored_normals_equals_scoringrules():
    weights = np.full((N, 2), 0.5)
    means, sds = np.stack([A, A + 2], 1), np.stack([B, B[::-1]], 1)
    theta = np.concatenate([weights, means, sds], axis=1)
    expected = sr.crps_mixnorm(Y, means, sds, w=weights)
    np.testing.assert_allclose(NormalMixture(2).crps(Y, theta), expected, rtol=1e-5)
    clipped = np.clip(Y, 0.0, 1.0)
    found = Censored(Normal(), 0.0, 1.0).crps(clipped, np.stack([A, B], 1))
    np.testing.assert_allclose(found, sr.crps_cnormal(clipped, A, B, 0.0, 1.0), rtol=1e-5, atol=1e-7)
    found = Truncated(Normal(), 0.0, 1.0).crps(clipped, np.stack([A, B], 1))
    np.testing.assert_allclose(found, sr.crps_tnormal(clipped, A, B, 0.0, 1.0), rtol=1e-5, atol=1e-7)


def test_truncated_normal_equals_scipy_far_in_the_tail():
    family = Truncated(Normal(), low=6.0)
    other = stats.truncnorm(6.0, np.inf)
    y, theta = np.array([6.01, 6.2, 7.0]), np.array([0.0, 1.0])
    np.testing.assert_allclose(family.log_pdf(y, theta), other.logpdf(y), rtol=1e-9)
    np.testing.assert_allclose(family.cdf(y, theta), other.cdf(y), rtol=1e-6)


def test_tweedie_density_is_the_poisson_sum_of_gammas():
    mu, phi, power = 1.3, 0.8, 1.4
    rate = mu ** (2 - power) / (phi * (2 - power))
    shape, scale = (2 - power) / (power - 1), phi * (power - 1) * mu ** (power - 1)
    jumps = np.arange(1, 80)
    y = np.array([0.01, 0.5, 1.3, 4.0, 11.0])
    terms = stats.poisson.pmf(jumps, rate) * stats.gamma.pdf(y[:, None], jumps * shape, scale=scale)
    family, theta = Tweedie(power), np.array([mu, phi])
    np.testing.assert_allclose(np.exp(family.log_pdf(y, theta)), terms.sum(axis=1), rtol=1e-10)
    assert float(np.exp(family.log_pdf(0.0, theta))) == pytest.approx(math.exp(-rate))
    masses = stats.poisson.pmf(jumps, rate) * stats.gamma.cdf(y[:, None], jumps * shape, scale=scale)
    np.testing.assert_allclose(family.cdf(y, theta), math.exp(-rate) + masses.sum(axis=1), rtol=1e-10)


def test_tweedie_series_meets_the_saddlepoint():
    family, power = Tweedie(1.5), 1.5
    for phi in (1.0e-4 * 1.01, 1.0e-4 * 0.99):  # on either side of the switch at mean 1
        y = np.array([0.99, 1.0, 1.01])
        saddle = (
            -0.5 * np.log(2 * np.pi * phi * y**power)
            - ((y ** (2 - power) - 1) / ((1 - power) * (2 - power)) - (y - 1) / (1 - power)) / phi
        )
        np.testing.assert_allclose(family.log_pdf(y, np.array([1.0, phi])), saddle, atol=2e-4)


@pytest.mark.parametrize("y", [1.9e8, 2.1e8, 1e12])
def test_tweedie_saddlepoint_far_above_the_mean(y):
    mu, phi, p = 2.0, 1e-4, 1.5  # from 1e8 times the mean on, powers of y / mu are avoided
    deviance = 2 * (
        y ** (2 - p) / ((1 - p) * (2 - p)) - y * mu ** (1 - p) / (1 - p) + mu ** (2 - p) / (2 - p)
    )
    expected = -0.5 * np.log(2 * np.pi * phi * y**p) - 0.5 * deviance / phi
    np.testing.assert_allclose(Tweedie(p).log_pdf(y, [mu, phi]), expected, rtol=1e-13)


@pytest.mark.parametrize("size", [1e-8, 1e-4, 1.0, 1e4, 1e8])
def test_c07_negative_binomial_is_finite_for_every_dispersion(size):
    y = np.array([0.0, 1.0, 7.0, 1000.0])
    theta = np.array([3.0, size])
    log_pmf = NegativeBinomial().log_pdf(y, theta)
    assert np.isfinite(log_pmf).all()
    if size == 1e8:
        np.testing.assert_allclose(log_pmf[:3], stats.poisson.logpmf(y[:3], 3.0), rtol=1e-6)


@pytest.mark.parametrize(("mu", "size"), [(0.01, 0.1), (1.0, 1.0), (5.0, 40.0), (300.0, 2.0), (2.0, 900.0)])
def test_negative_binomial_information_equals_its_sum(mu, size):
    y = np.arange(0, int(stats.nbinom.isf(1e-15, size, size / (size + mu))) + 10)
    pmf = stats.nbinom.pmf(y, size, size / (size + mu))
    slope = (
        special.digamma(y + size)
        - special.digamma(size)
        + np.log(size / (size + mu))
        + (mu - y) / (size + mu)
    )
    expected = size**2 * (pmf * slope**2).sum()
    raw = np.log([[mu, size]])
    found = NegativeBinomial().score_and_fisher(np.array([1.0]), raw)[1][0, 1]
    assert found == pytest.approx(expected, rel=2e-3)


def test_special_functions_equal_scipy():
    x = np.concatenate([np.logspace(-60, 60, 200), np.linspace(0.1, 20, 200)])
    digamma = np.array([own.digamma(value) for value in x])
    np.testing.assert_allclose(digamma, special.digamma(x), rtol=1e-12, atol=1e-14)
    trigamma = np.array([own.trigamma(value) for value in x])
    np.testing.assert_allclose(trigamma, special.polygamma(1, x), rtol=1e-13)
    # Just above the switches to the series the direct forms still have nearly all their digits.
    x = np.linspace(10.0, 30.0, 41)
    found = [own.trigamma_excess(value) for value in x]
    np.testing.assert_allclose(found, x * (x * special.polygamma(1, x) - 1), rtol=5e-13)
    found = [own.log_minus_digamma(value) for value in x]
    np.testing.assert_allclose(found, np.log(x) - special.digamma(x), rtol=5e-13)
    x = np.concatenate([np.linspace(-0.06, -0.01, 20), np.linspace(0.01, 0.06, 20)])
    found = [own.log1p_minus(value) for value in x]
    np.testing.assert_allclose(found, np.log1p(x) - x, rtol=1e-12)
    assert own.log1p_minus(1e-9) == pytest.approx(-5e-19, rel=1e-8)
    assert own.trigamma_excess(1e12) == pytest.approx(0.5, rel=1e-10)
    assert own.log_minus_digamma(1e12) == pytest.approx(5e-13, rel=1e-10)


def test_values_that_gamlss_documents():
    """dNO(0) = 0.3989, dGA(1; 1, 1) = e^-1, dPO(0; 1) = e^-1, and the log score of a standard TF."""
    assert float(np.exp(get_family("NO").log_pdf(0.0, [0.0, 1.0]))) == pytest.approx(0.3989423)
    assert float(np.exp(get_family("GA").log_pdf(1.0, [1.0, 1.0]))) == pytest.approx(math.exp(-1))
    assert float(np.exp(get_family("PO").log_pdf(0.0, [1.0]))) == pytest.approx(math.exp(-1))
    # GAMLSS: dNBI(mu=2, sigma=1) at 0 is 1 / (1 + mu sigma).
    assert float(np.exp(get_family("NBI").log_pdf(0.0, [2.0, 1.0]))) == pytest.approx(1 / 3)
    # dTF at its mode with 10 degrees of freedom.
    assert float(np.exp(StudentT().log_pdf(0.0, [0.0, 1.0, 10.0]))) == pytest.approx(0.3891084)


def test_wrappers_by_hand():
    inner = np.array([2.0, 0.3])
    zip_ = ZeroInflated(Poisson())
    assert float(np.exp(zip_.log_pdf(0.0, inner))) == pytest.approx(0.3 + 0.7 * math.exp(-2))
    assert float(np.exp(zip_.log_pdf(3.0, inner))) == pytest.approx(0.7 * stats.poisson.pmf(3, 2.0))
    zap = Hurdle(Poisson())
    assert float(np.exp(zap.log_pdf(3.0, inner))) == pytest.approx(
        0.7 * stats.poisson.pmf(3, 2.0) / (1 - math.exp(-2))
    )
    tobit = Censored(Gamma(), low=0.4, high=2.0)
    theta = np.array([1.0, 2.0])
    mean = integrate.quad(lambda y: min(max(y, 0.4), 2.0) * stats.gamma.pdf(y, 2.0, scale=0.5), 0, 40)[0]
    assert float(tobit.mean(theta)) == pytest.approx(mean, rel=1e-6)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: Censored(Poisson()),
        lambda: Censored(Normal(), 1.0, 0.0),
        lambda: Truncated(Normal(), 1.0, 1.0),
        lambda: ZeroInflated(Gamma()),
        lambda: Hurdle(Normal()),
        lambda: NormalMixture(1),
        lambda: Tweedie(2.5),
    ],
)
def test_bad_settings_are_refused(bad):
    with pytest.raises(ValueError, match="must be"):
        bad()


def test_information_of_mixtures_is_exact_where_their_parts_are_apart():
    w, sigma = np.array([0.2, 0.5, 0.3]), np.array([0.5, 1.0, 2.0])
    raw = np.concatenate([np.log(w), [-100.0, 0.0, 100.0], np.log(sigma)])[None, :]
    nodes, mass = np.polynomial.hermite_e.hermegauss(12)
    expected = np.zeros(9)
    for k in range(3):
        y = raw[0, 3 + k] + sigma[k] * nodes
        score = NormalMixture(3).score_and_fisher(y, np.tile(raw, (12, 1)))[0]
        expected += w[k] * (mass / mass.sum()) @ score**2
    np.testing.assert_allclose(NormalMixture(3).score_and_fisher(y[:1], raw)[1][0], expected, rtol=1e-9)
