"""Single steps against exact answers: marginal likelihoods, gamma, sigma^2, latent normals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import invgamma, kstest, multivariate_normal, norm, truncnorm

from boostplugins.hbart.chains import advance, collect, start_run
from boostplugins.hbart.diagnostics import effective_sample_size
from boostplugins.hbart.latent import normal_above
from boostplugins.hbart.priors import Hyperparameters, guess_sigma, sigma_scale
from boostplugins.hbart.scores import leaf_score
from tests.hbart.problems import make_problem, plain


def test_mean_leaf_score_is_the_dense_gaussian(rng):
    prior = Hyperparameters(n_trees=4).mean_prior()
    sigma2, differences = 0.3, []
    for n in (1, 3, 7):
        r, w = rng.standard_normal(n), rng.random(n) + 0.1
        dense = np.diag(sigma2 / w) + prior.leaf_var[0]
        exact = multivariate_normal(np.zeros(n), dense).logpdf(r)
        alone = norm(0, np.sqrt(sigma2 / w)).logpdf(r).sum()
        score = plain(leaf_score)((w * r).sum(), w.sum(), n, prior, 1 / sigma2)
        differences.append(exact - alone - score)
    np.testing.assert_allclose(differences, 0, atol=1e-10)


def test_variance_leaf_score_is_the_integral(rng):
    prior = Hyperparameters(n_variance_trees=4).variance_prior()
    e = rng.standard_normal(6)

    def integrand(s2):
        likelihood = norm(0, math.sqrt(s2)).logpdf(e).sum()
        return np.exp(likelihood + invgamma(prior.shape, scale=prior.rate).logpdf(s2))

    exact = math.log(quad(integrand, 1e-3, 200, limit=400)[0])
    score = plain(leaf_score)((e**2).sum(), 0.0, 6, prior, 1.0) - 3 * math.log(2 * math.pi)
    assert score == pytest.approx(exact, abs=1e-6)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def gamma_chain(n, slope, n_steps, gamma_var=1000.0, **how):
    """Gamma given fixed residuals: trees of all but no leaf variance, sigma^2 held by its prior."""
    rng = np.random.default_rng(5)
    z = rng.standard_normal(n)
    z = ((z - z.mean()) / z.std())[:, None]
    e = np.exp(0.5 * slope * z[:, 0]) * rng.standard_normal(n)
    problem = make_problem(n=n)._replace(target=e, z=z, lam=1.0, sigma2=1.0)
    hyper = Hyperparameters(n_trees=1, half_range=1e-9, nu=1e12, gamma_var=gamma_var, min_leaf=n, **how)
    run = start_run(problem, hyper, np.random.default_rng(1))
    advance(run, n_steps, keep=True)
    return run, collect([run]).gamma[:, 0], z[:, 0], e


def exact_moments(z, e, gamma_var=1000.0):
    """Mean and standard deviation of gamma given fixed residuals, by a fine grid."""
    grid = np.linspace(-10, 10, 40001)
    log_p = -0.5 * grid * z.sum() - 0.5 * grid**2 / gamma_var
    for z_i, e_i in zip(z, e):
        log_p -= 0.5 * e_i**2 * np.exp(-grid * z_i)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = p @ grid
    return mean, np.sqrt(p @ (grid - mean) ** 2)


@pytest.mark.parametrize("how", [{}, {"gamerman": True}, {"slices": True}], ids=["mode", "gamerman", "slice"])
def test_gamma_follows_its_conditional(how):
    # Mean within 5 and sd within 5 standard errors of about 8000 effective draws: false alarm < 1e-5.
    run, gamma, z, e = gamma_chain(60, 0.6, 10_000, **how)
    mean, sd = exact_moments(z, e)
    assert gamma.mean() == pytest.approx(mean, abs=5 * sd / np.sqrt(6000))
    assert gamma.std() == pytest.approx(sd, rel=5 / np.sqrt(2 * 6000))
    accepted = run.chain.linear.tally[1] / run.chain.linear.tally[0]
    assert 0.8 < accepted <= 1.0


def gamerman_spread(z, e, as_printed, n_steps=8000):
    """Standard deviation of gamma under Gamerman's proposal, its ratio right or as eq. 16 ends up."""
    rng = np.random.default_rng(0)
    info = 0.5 * z @ z + 1e-3

    def look(g):
        ratio = e**2 * np.exp(-g * z)
        return -0.5 * (g * z.sum() + ratio.sum() + 1e-3 * g**2), g + (0.5 * z @ (ratio - 1) - 1e-3 * g) / info

    gamma, draws = 7.0, []
    here, step = look(gamma)
    for noise, u in zip(rng.standard_normal(n_steps), rng.random(n_steps)):
        proposal = step + noise / math.sqrt(info)
        there, back = look(proposal)
        jump = 0.5 * info * (gamma - proposal + step - back) * (gamma + proposal - step - back)
        if math.log(u) < there - here + (jump if as_printed else -jump):
            gamma, here, step = proposal, there, back
        draws.append(gamma)
    return np.std(draws)


def test_the_printed_ratio_gives_intervals_that_are_too_short():
    """Eq. 12's errors held fixed, n = 250: the posterior's sd is about .3, eq. 16 as printed gives .18."""
    x = np.linspace(0, 1, 250)
    e = np.exp(3.5 * (x - 0.5)) * np.random.default_rng(2).standard_normal(250)
    _, exact = exact_moments(x - 0.5, e)
    # About 4000 effective draws: the estimate's standard error is 1 %.
    assert gamerman_spread(x - 0.5, e, as_printed=False) == pytest.approx(exact, rel=0.06)
    assert gamerman_spread(x - 0.5, e, as_printed=True) == pytest.approx(0.58 * exact, rel=0.1)


@pytest.mark.parametrize("slices", [False, True])
def test_gamma_under_an_informative_prior(slices):
    _, gamma, z, e = gamma_chain(20, 1.0, 10_000, gamma_var=0.05, slices=slices)
    mean, sd = exact_moments(z, e, 0.05)
    assert gamma.mean() == pytest.approx(mean, abs=5 * sd / np.sqrt(6000))
    assert gamma.std() == pytest.approx(sd, rel=5 / np.sqrt(2 * 6000))


def test_gamma_leaves_zero_under_strong_heteroskedasticity_where_gamerman_sticks():
    for slices in (False, True):
        run, gamma, _, _ = gamma_chain(1000, 4.0, 300, slices=slices)
        assert gamma[50:].mean() == pytest.approx(4.0, abs=0.3)
        assert run.chain.linear.tally[1] > 200
    stuck, gamma, _, _ = gamma_chain(1000, 4.0, 300, gamerman=True)
    assert stuck.chain.linear.tally[1] == 0
    assert (gamma == 0).all()


def test_slices_move_where_proposals_of_many_covariates_are_refused():
    rng = np.random.default_rng(3)
    z = rng.standard_normal((150, 60))
    problem = make_problem(n=150)._replace(target=rng.standard_normal(150), z=z, lam=1.0, sigma2=1.0)
    moved = []
    for slices in (False, True):
        hyper = Hyperparameters(n_trees=1, half_range=1e-9, nu=1e12, min_leaf=150, slices=slices)
        run = start_run(problem, hyper, np.random.default_rng(1))
        advance(run, 100, keep=True)
        moved.append(int(run.chain.linear.tally[1]))
    assert moved[0] < 10
    assert moved[1] == 100


def test_slices_and_proposals_of_several_covariates_agree():
    # Two chains of at least 3000 effective draws: 5 standard errors of a difference, false alarm < 1e-4.
    rng = np.random.default_rng(4)
    z = rng.standard_normal((25, 3)) @ np.array([[1.0, 0.8, 0.0], [0.0, 0.6, 0.0], [0.0, 0.0, 1.0]])
    problem = make_problem(n=25)._replace(target=rng.standard_normal(25), z=z, lam=1.0, sigma2=1.0)
    found = []
    for slices in (False, True):
        hyper = Hyperparameters(
            n_trees=1, half_range=1e-9, nu=1e12, min_leaf=25, gamma_var=1.0, slices=slices
        )
        run = start_run(problem, hyper, np.random.default_rng(1))
        advance(run, 12_000, keep=True)
        found.append(collect([run]).gamma)
        assert effective_sample_size(found[-1][None]).min() > 3000
    (mean, other), (spread, wide) = ([f(gamma, axis=0) for gamma in found] for f in (np.mean, np.std))
    np.testing.assert_allclose(other - mean, 0.0, atol=5 * spread.max() * np.sqrt(2 / 3000))
    np.testing.assert_allclose(wide, spread, rtol=5 / np.sqrt(3000))
    np.testing.assert_allclose(*(np.corrcoef(gamma.T) for gamma in found), atol=5 * np.sqrt(2 / 3000))


def test_sigma_scale_of_a_prior_of_next_to_no_weight_is_positive():
    assert sigma_scale(2.0, 1e-9, 0.9) > 0


def test_sigma_given_known_residuals():
    # One KS test at p < 1e-4.
    problem = make_problem(n=30, lam=0.4)
    hyper = Hyperparameters(n_trees=1, half_range=1e-9, nu=3.0, min_leaf=30)
    run = start_run(problem, hyper, np.random.default_rng(0))
    advance(run, 3000, keep=True)
    shape, rate = 0.5 * (3 + 30), 0.5 * (3 * 0.4 + (problem.target**2).sum())
    assert kstest(collect([run]).sigma2, invgamma(shape, scale=rate).cdf).pvalue > 1e-4


@pytest.mark.parametrize("bound", [-3.0, 0.0, 0.7, 6.0, 30.0])
def test_truncated_normal(bound, rng):
    # Five KS tests at p < 1e-4.
    draws = np.array([plain(normal_above)(rng, bound) for _ in range(3000)])
    assert draws.min() > bound
    assert kstest(draws, truncnorm(bound, np.inf).cdf).pvalue > 1e-4


def test_sigma_guess_is_the_residual_standard_deviation(rng):
    X, e = rng.standard_normal((4000, 3)), rng.standard_normal(4000)
    y = 5.0 * X[:, 0] + 2.0 * e
    ones = np.ones(4000)
    assert guess_sigma(X, y, ones, geometric=False) == pytest.approx(2.0, rel=0.05)
    assert guess_sigma(X, y, ones, geometric=True) == pytest.approx(2.0, rel=0.05)
    noisy = 5.0 * X[:, 0] + np.exp(1.5 * X[:, 1]) * e
    # The regression's own error keeps small residuals from being as small as their noise.
    assert 1.0 < guess_sigma(X, noisy, ones, geometric=True) < 1.4
    assert guess_sigma(X, noisy, ones, geometric=False) > 5.0


@pytest.mark.parametrize("kind", ["wide", "collinear"])
def test_sigma_guess_falls_back_to_the_response(kind, rng):
    y = rng.standard_normal(20)
    X = rng.standard_normal((20, 19)) if kind == "wide" else np.outer(y, [1.0, 2.0])
    assert guess_sigma(X, y, np.ones(20), geometric=False) == pytest.approx(y.std(ddof=1))


def test_sigma_guess_of_a_noise_free_response_is_positive(rng):
    X = rng.standard_normal((50, 1))
    assert 0 < guess_sigma(X, 2 * X[:, 0], np.ones(50), geometric=True) < 1e-2
    assert guess_sigma(X, np.ones(50), np.ones(50), geometric=False) > 0


def test_sigma_scale_puts_q_below_the_guess():
    draws = 3.0 * sigma_scale(2.0, 3.0, 0.9) / np.random.default_rng(0).chisquare(3.0, 200_000)
    assert (np.sqrt(draws) < 2.0).mean() == pytest.approx(0.9, abs=0.005)
