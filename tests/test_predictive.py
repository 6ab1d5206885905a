"""Predictive distributions: single, mixtures, classes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scoringrules as sr
from scipy import stats

from boostplugins.calibration import Recalibrated
from boostplugins.families import (
    Categorical,
    Censored,
    Hurdle,
    IntervalCensored,
    Normal,
    NormalMixture,
    Truncated,
    Weibull,
)
from boostplugins.metrics import crps_ensemble
from boostplugins.predictive import Predictive

N, M = 30, 4
RNG = np.random.default_rng(0)
THETA = np.stack([RNG.normal(size=(N, M)) * 2, np.exp(RNG.normal(size=(N, M)) * 0.5)], axis=-1)
Y = RNG.normal(size=N) * 2
WEIGHTS = np.array([0.5, 0.0, 0.2, 0.3])


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_mixtures_of_normals_equal_the_normal_mixture_family(weights):
    mixture = Predictive("normal", THETA, weights)
    w = np.full(M, 1 / M) if weights is None else weights
    flat = np.concatenate([np.broadcast_to(w, (N, M)), THETA[..., 0], THETA[..., 1]], axis=1)
    twin = Predictive(NormalMixture(M), flat)
    np.testing.assert_allclose(mixture.mean(), twin.mean())
    np.testing.assert_allclose(mixture.var(), twin.var())
    np.testing.assert_allclose(mixture.log_pdf(Y), twin.log_pdf(Y))
    np.testing.assert_allclose(mixture.cdf(Y), twin.cdf(Y))
    np.testing.assert_allclose(mixture.crps(Y), twin.crps(Y), rtol=1e-5)
    expected = sr.crps_mixnorm(Y, THETA[..., 0], THETA[..., 1], w=np.broadcast_to(w, (N, M)))
    np.testing.assert_allclose(mixture.crps(Y), expected)
    for q in (1e-9, 0.05, 0.5, 0.999):
        np.testing.assert_allclose(mixture.cdf(mixture.ppf(q)), q, rtol=1e-9)


@pytest.mark.parametrize(
    ("family", "theta"),
    [
        ("gamma", np.exp(RNG.normal(size=(N, M, 2)) * 0.5)),
        ("student_t", np.concatenate([THETA, 4 + RNG.random((N, M, 1))], axis=-1)),
        ("poisson", np.exp(1 + RNG.normal(size=(N, M, 1)) * 0.5)),
        ("negative_binomial", np.exp(1 + RNG.normal(size=(N, M, 2)) * 0.5)),
    ],
)
def test_other_mixtures_are_consistent(family, theta):
    mixture = Predictive(family, theta)
    y = mixture.sample(1, random_state=3)[:, 0]
    sample = mixture.sample(4000, random_state=1)
    drawn = [crps_ensemble(y[i], sample[i], estimator="fair") for i in range(N)]
    np.testing.assert_allclose(mixture.crps(y), drawn, rtol=0.15, atol=0.02)
    for q in (0.01, 0.5, 0.9):
        x = mixture.ppf(q)
        if mixture.family.discrete:
            assert (mixture.cdf(x) >= q - 1e-12).all()
            assert (mixture.cdf(x - 1) < q).all()
        else:
            np.testing.assert_allclose(mixture.cdf(x), q, rtol=1e-9)
    u = mixture.uncertainty()
    np.testing.assert_allclose(u.total, mixture.var())
    assert (u.knowledge > 0).all()


def test_members_that_agree_are_one_distribution():
    single = Predictive("normal", THETA[:, 0])
    mixture = Predictive("normal", np.repeat(THETA[:, :1], M, axis=1))
    for name in ("mean", "var", "std"):
        np.testing.assert_allclose(getattr(single, name)(), getattr(mixture, name)())
    np.testing.assert_allclose(mixture.ppf(0.3), single.ppf(0.3))
    np.testing.assert_allclose(mixture.crps(Y), single.crps(Y))
    assert (mixture.uncertainty().knowledge == 0).all()
    assert (single.uncertainty().knowledge == 0).all()


def test_rows_pickles_and_samples():
    mixture = Predictive("normal", THETA, WEIGHTS)
    assert len(mixture) == N
    for rows, count in ((3, 1), (-1, 1), (slice(2, 9), 7), (np.array([4, 4, 0]), 3), (np.arange(N) < 5, 5)):
        part = mixture[rows]
        assert len(part) == count
        assert (part.mean() == mixture.mean()[rows]).all()
    with pytest.raises(IndexError, match="out of range"):
        mixture[N]
    again = pickle.loads(pickle.dumps(mixture))
    assert (again.ppf(0.4) == mixture.ppf(0.4)).all()
    draws = mixture.sample(20_000, random_state=0)
    assert (draws == mixture.sample(20_000, random_state=0)).all()
    # Five standard errors over 30 rows: a false alarm once in 50 000 runs.
    assert (np.abs(draws.mean(axis=1) - mixture.mean()) < 5 * mixture.std() / np.sqrt(20_000)).all()
    assert mixture.interval(0.5).shape == (N, 2)
    assert mixture.sample(0, random_state=0).shape == (N, 0)


@pytest.mark.parametrize(
    ("family", "theta"),
    [("normal", THETA), ("poisson", THETA[..., 1:]), (Categorical(2), np.full((N, M, 2), 0.5))],
)
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_mixtures_of_no_rows_have_no_answers(family, theta, weights):
    none = Predictive(family, theta, weights)[np.zeros(N, dtype=bool)]
    answers = [none.mean(), none.var(), none.std(), none.uncertainty().total, none.ppf(0.5)]
    answers += [none.cdf(np.empty(0)), none.log_pdf(np.empty(0)), none.crps(np.empty(0))]
    assert all(answer.shape == (0,) for answer in answers)
    assert none.interval(0.9).shape == (0, 2)


def test_members_of_weight_0_do_not_count_be_they_infinite():
    """The first member's variance is infinite."""
    theta = np.array([[[0.0, 1.0, 1.5], [2.0, 1.0, 5.0], [3.0, 1.0, 5.0]]])
    mixture = Predictive("student_t", theta, [0.0, 1.0, 3.0])
    rest = Predictive("student_t", theta[:, 1:], [1.0, 3.0])
    for one, other in (
        (mixture.mean(), rest.mean()),
        (mixture.var(), rest.var()),
        (mixture.uncertainty().knowledge, rest.uncertainty().knowledge),
        (mixture.crps(1.0), rest.crps(1.0)),
        (mixture.ppf(0.3), rest.ppf(0.3)),
    ):
        assert np.isfinite(one).all()
        np.testing.assert_allclose(one, other)


def test_classes_have_entropies():
    proba = np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]]])
    bernoulli = Predictive("bernoulli", proba[..., 1:])
    categorical = Predictive(Categorical(2), proba)
    for dist in (bernoulli, categorical):
        np.testing.assert_allclose(dist.probabilities(), [[0.5, 0.5], [0.5, 0.5]])
        u = dist.uncertainty()
        np.testing.assert_allclose(u.total, np.log(2))
        assert u.knowledge[0] > 0.3
        assert u.knowledge[1] == 0.0
    weighted = Predictive("bernoulli", proba[..., 1:], [1.0, 0.0]).uncertainty()
    np.testing.assert_allclose(weighted.knowledge, 0.0, atol=1e-15)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: Predictive("normal", np.zeros((3, 3))), "must have shape"),
        (lambda: Predictive("normal", np.zeros(2)), "must have shape"),
        (lambda: Predictive("normal", [[np.nan, 1.0]]), "mu of family normal must be finite"),
        (lambda: Predictive("normal", [[0.0, -1.0]]), "sigma of family normal must be finite and > 0"),
        (lambda: Predictive("normal", THETA, [1.0]), "weights must have shape"),
        (lambda: Predictive("normal", THETA, [-1.0, 1, 1, 1]), "weights must be finite and >= 0"),
        (lambda: Predictive("normal", THETA).ppf(1.5), r"q must be in \[0, 1\]"),
        (lambda: Predictive("normal", THETA).interval(95), r"coverage must be in \(0, 1\)"),
        (lambda: Predictive("normal", THETA).log_pdf(np.zeros(3)), "y must be a number or have shape"),
    ],
)
def test_misuse_is_refused(call, match):
    with pytest.raises(ValueError, match=match):
        call()


@pytest.mark.parametrize("q", [[0.1, 0.5, 0.9], np.full((N, 1), 0.5), []])
def test_probabilities_are_one_or_one_a_row(q):
    dist = Predictive("gamma", np.exp(THETA[:, 0]))
    for one in (dist, Recalibrated(dist, np.array([1.5]))):
        with pytest.raises(ValueError, match=r"q must be a number or have shape \(30,\)"):
            one.ppf(q)


def test_probabilities_need_classes():
    with pytest.raises(TypeError, match="has no classes"):
        Predictive("normal", THETA).probabilities()


@pytest.mark.parametrize(
    ("family", "theta"),
    [("normal", THETA), ("poisson", np.exp(THETA[..., :1])), (Censored(Normal(), 0.0, 30.0), THETA)],
)
def test_survival_is_the_rest_of_the_distribution_and_exact_far_out(family, theta):
    y = np.round(np.abs(Y)) + 1.0
    for dist in (Predictive(family, theta, WEIGHTS), Predictive(family, theta[:, 0])):
        np.testing.assert_allclose(dist.sf(y) + dist.cdf(y), 1.0, atol=1e-12)
    if theta is THETA:
        far = Predictive(family, np.tile([0.0, 1.0], (3, 1))).sf(20.0)
        np.testing.assert_allclose(far, stats.norm.sf(20.0), rtol=1e-9)


def test_survival_of_a_censored_response_ends_at_its_limits():
    dist = Predictive(Censored(Normal(), 0.0, 30.0), [[1.0, 2.0]])
    assert [float(dist.sf(limit)[0]) for limit in (-0.1, 30.0, 31.0)] == [1.0, 0.0, 0.0]
    assert 0.0 < dist.sf(29.9)[0] < 1e-40


@pytest.mark.parametrize("wrapper", [Censored, Truncated, Hurdle])
def test_limits_of_each_row_are_no_base_of_another_wrapper(wrapper):
    with pytest.raises(ValueError, match=f"base of {wrapper.__name__}"):
        wrapper(IntervalCensored(Weibull()))
