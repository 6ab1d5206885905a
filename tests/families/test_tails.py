"""Far tails: log probabilities below what floats hold, and distributions beyond them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import betaln, gammaln

from boostplugins.families import (
    Beta,
    Gamma,
    Gumbel,
    Hurdle,
    InverseGaussian,
    Laplace,
    Logistic,
    LogNormal,
    Normal,
    NormalMixture,
    Poisson,
    StudentT,
    Truncated,
    Tweedie,
    Weibull,
)
from boostplugins.families._tails import log_tail


@pytest.mark.parametrize(
    ("family", "theta", "y"),
    [
        (Normal(), [0.0, 1.0], [38.0, 1e3, 1e5]),
        (Normal(), [5.0, 1e-3], [6.0, 1e2]),
        (Logistic(), [0.0, 2.0], [700.0, 1e5]),
        (Weibull(), [1.0, 0.5], [1e6, 1e9]),
        (Weibull(), [2.0, 3.0], [40.0, 200.0]),
        (LogNormal(), [0.0, 1.0], [1e20, 1e200]),
        (InverseGaussian(), [1.0, 2.0], [1e3, 1e5]),
    ],
)
def test_tails_by_quadrature_are_those_in_closed_form(family, theta, y):
    y, theta = np.array(y), np.tile(theta, (len(y), 1))
    np.testing.assert_allclose(log_tail(family, y, theta, True), family.log_sf(y, theta), rtol=1e-10)


def test_lower_tails_by_quadrature_are_those_in_closed_form():
    y = np.array([-38.0, -1e4])
    theta = np.tile([0.0, 1.0], (2, 1))
    np.testing.assert_allclose(log_tail(Normal(), y, theta, False), Normal().log_cdf(y, theta), rtol=1e-10)
    y = np.array([1e-3, 1e-5])
    inverse, ones = InverseGaussian(), np.ones((2, 2))
    np.testing.assert_allclose(log_tail(inverse, y, ones, False), inverse.log_cdf(y, ones), rtol=1e-10)


def test_tails_that_underflow_have_logarithms():
    """Series that converge at once: gamma of whole shape, small arguments, and powers."""
    for k, y in ((1, 800.0), (3, 900.0), (2, 1e5)):
        x = k * y
        exact = -x + np.logaddexp.reduce([j * math.log(x) - gammaln(j + 1) for j in range(k)])
        assert Gamma().log_sf(y, [1.0, k]) == pytest.approx(exact, rel=1e-11)
    for k, y in ((300.0, 0.05), (20.0, 1e-17), (5000.0, 0.5)):
        x = k * y
        terms = np.cumsum([0.0, *(math.log(x / (k + n)) for n in range(1, 3000))])
        exact = k * math.log(x) - x - gammaln(k + 1) + np.logaddexp.reduce(terms)
        assert Gamma().log_cdf(y, [1.0, k]) == pytest.approx(exact, rel=1e-11)
    a, y = 500.0, 1e-3
    terms = np.cumsum([0.0, *(math.log((2 * a + n) / (a + 1 + n) * y) for n in range(200))])
    exact = a * math.log(y) + a * math.log1p(-y) - math.log(a) - betaln(a, a) + np.logaddexp.reduce(terms)
    assert Beta().log_cdf(y, [0.5, 2 * a]) == pytest.approx(exact, rel=1e-11)
    assert Beta().log_sf(1.0 - y, [0.5, 2 * a]) == pytest.approx(exact, rel=1e-11)
    # Student's t with two degrees of freedom: 1 - F = 1 / (2 t^2) far out.
    assert StudentT().log_sf(1e200, [0.0, 1.0, 2.0]) == pytest.approx(
        -math.log(2) - 400 * math.log(10), rel=1e-12
    )
    assert Laplace().log_sf(1e4, [0.0, 1.0]) == pytest.approx(-math.log(2) - 1e4, rel=1e-11)
    assert Gumbel().log_sf(1e4, [0.0, 1.0]) == pytest.approx(-1e4, rel=1e-11)
    assert Weibull().log_cdf(1e-100, [1.0, 5.0]) == pytest.approx(-500 * math.log(10), rel=1e-11)
    mixture = NormalMixture(n_components=2)
    assert mixture.log_sf(50.0, [0.5, 0.5, 0.0, 0.0, 1.0, 1.0]) == pytest.approx(
        float(Normal().log_sf(50.0, [0.0, 1.0])), rel=1e-12
    )


@pytest.mark.parametrize("z", [5.0, 50.0, 1e4])
def test_truncated_far_out_is_an_exponential(z):
    """Beyond z the normal tail falls like exp(-z t - t^2 / 2): its quantiles and its score by hand."""
    family, theta, raw = Truncated(Normal(), low=0.0), np.array([[-z, 1.0]]), np.array([[-z, 0.0]])
    t = np.array([0.2, 1.0, 3.0]) / z
    tail = np.array([float(Normal().log_sf(z + x, [0.0, 1.0]) - Normal().log_sf(z, [0.0, 1.0])) for x in t])
    np.testing.assert_allclose(family.sf(t, theta), np.exp(tail), rtol=1e-6)
    np.testing.assert_allclose(family.cdf(t, theta), -np.expm1(tail), rtol=1e-6)
    np.testing.assert_allclose(family.ppf(-np.expm1(tail), theta), t, rtol=1e-5)
    hazard = math.exp(float(Normal().log_pdf(z, [0.0, 1.0]) - Normal().log_sf(z, [0.0, 1.0])))
    score, fisher = family.score_and_fisher(t, np.tile(raw, (3, 1)))
    np.testing.assert_allclose(score[:, 0], t + z - hazard, atol=1e-7 * z)
    # Variance of the tail; its closed form cancels far out, where it is that of an exponential.
    variance = 1.0 - hazard * (hazard - z) if z < 100 else 1.0 / z**2
    np.testing.assert_allclose(fisher[:, 0], variance, rtol=0.02)


def test_narrowly_truncated_families_are_uniform():
    family = Truncated(Normal(), low=-0.5, high=2.0)
    theta = np.array([[3.0, 1e60], [0.0, 1e10]])
    np.testing.assert_allclose(family.log_pdf(1.0, theta), -np.log(2.5), rtol=1e-9)
    np.testing.assert_allclose(family.cdf(1.0, theta), 0.6, rtol=1e-9)
    np.testing.assert_allclose(family.ppf(0.6, theta), 1.0, rtol=1e-9)
    np.testing.assert_allclose(family.crps(1.0, theta), 1.5**3 / 3 / 2.5**2 + 1 / 3 / 2.5**2, rtol=1e-6)
    score, fisher = family.score_and_fisher(np.array([1.0, 1.0]), family.raw(theta))
    np.testing.assert_allclose(score, 0.0, atol=1e-9)
    assert (fisher > 0).all()


def test_crps_of_a_log_normal_whose_mean_overflows():
    """Where the mean is beyond floats the terms with it are not: the limit of large sigma by hand."""
    sigma = 40.0  # mean e^800; CRPS is dominated by 2 m Phi(-sigma / sqrt 2) = e^400 erfcx(20)
    found = float(LogNormal().crps(1.0, [0.0, sigma]))
    assert found == pytest.approx(math.exp(400.0) / (20.0 * math.sqrt(math.pi)) * (1 - 1 / 800), rel=1e-4)
    assert LogNormal().crps(1.0, [0.0, math.exp(4.0)]) == np.finfo(float).max  # e^745: no float
    small = LogNormal().crps(np.array([0.5, 1.0, 3.0, -1.0]), [0.0, 0.5])
    from boostplugins.families._crps import numeric_crps

    np.testing.assert_allclose(
        small[:3], numeric_crps(LogNormal(), np.array([0.5, 1.0, 3.0]), [0.0, 0.5]), rtol=1e-6
    )


@pytest.mark.parametrize("family", [Normal(), StudentT(), Laplace(), Logistic(), Gumbel()], ids=repr)
def test_crps_of_far_responses_is_their_distance(family):
    theta = family.theta(np.array([[0.0, -700.0, np.log(5.0)]])[:, : family.n_params])
    for y in (1e300, -1e300):
        np.testing.assert_allclose(family.crps(y, theta), 1e300, rtol=1e-12)


def test_scores_that_overflow_keep_their_sign():
    largest = np.finfo(float).max
    score, _ = Normal().score_and_fisher(np.array([1e300, -1e300]), np.array([[0.0, -150.0]] * 2))
    np.testing.assert_array_equal(score, [[largest, largest], [-largest, largest]])
    assert Normal().log_pdf(1e300, [0.0, 1e-60]) == -1e300
    # Students bound the pull of an outlier: (nu + 1) / (y - mu), nu, and the log term.
    score, _ = StudentT().score_and_fisher(np.array([1e300]), np.array([[0.0, -150.0, np.log(5.0)]]))
    np.testing.assert_allclose(score[0, :2], [6e-300, 5.0], rtol=1e-9)
    # Of a mixture the nearest part has an outlier to itself.
    score, _ = NormalMixture(n_components=2).score_and_fisher(
        np.array([1e300]), np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]])
    )
    np.testing.assert_array_equal(np.isfinite(score), True)
    assert score[0, 1] > 0 > score[0, 0]
    assert score[0, 2] == score[0, 4] == 0


def test_counts_that_are_hardly_ever_above_zero():
    family = Hurdle(Poisson())
    theta = np.array([[1e-20, 0.3]])
    np.testing.assert_array_equal(family.ppf(0.9999, theta), 1.0)
    np.testing.assert_allclose(family.cdf(1.0, theta), 1.0)
    np.testing.assert_allclose(family.crps(1.0, theta), 0.09, rtol=1e-9)


def test_probabilities_of_many_jumps_add_up():
    family = Tweedie(power=1.5)
    theta = np.array([[1.0, 1e-9], [1.0, 1e-15], [1e10, 1e-15]])
    sd = np.sqrt(family.var(theta))
    for z, share in ((-1.0, 0.158655), (0.0, 0.5), (1.0, 0.841345)):
        np.testing.assert_allclose(family.cdf(family.mean(theta) + z * sd, theta), share, atol=2e-3)
