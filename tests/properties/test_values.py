"""Schedules, masks, uncertainty, predictive distributions and metrics hold their laws for any input."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from boostplugins import BernoulliMask, Constant, CosineCycle, Predictive, Uncertainty
from boostplugins.metrics import coverage, crps, crps_ensemble, interval_score, nll, ood_auc, pit, prr
from boostplugins.schedules import schedule_from_dict
from tests.properties.strategies import bounded, floats, weights


@st.composite
def cycles(draw):
    top = draw(floats(1e-3, 1e3))
    return CosineCycle(
        length=draw(st.integers(1, 400)),
        max_scale=top,
        min_scale=top * draw(floats(1e-6, 1.0)),
        exploration=draw(floats(0.0, 1.0)),
    )


@bounded(60)
@given(cycles(), st.integers(0, 3000), st.integers(1, 30))
def test_cycles(schedule, t, members):
    assert schedule.min_scale <= schedule.scale(t) <= schedule.max_scale
    assert schedule.scale(t) == schedule.scale(t + schedule.length)
    if (t + 1) % schedule.length:
        assert schedule.scale(t + 1) <= schedule.scale(t)
        assert schedule.exploring(t) >= schedule.exploring(t + 1)
        assert schedule.cycle(t + 1) == schedule.cycle(t)
    else:
        assert schedule.cycle(t + 1) == schedule.cycle(t) + 1
    ends = schedule.member_ends(t)
    assert (ends % schedule.length == 0).all()
    assert len(ends) == t // schedule.length
    assert (schedule.member_ends(t, members) == ends[-members:]).all()
    assert len(schedule.member_ends(t, members)) == min(members, len(ends))
    assert schedule_from_dict(json.loads(json.dumps(schedule.to_dict()))) == schedule


@bounded(60)
@given(st.integers(1, 3000), st.integers(1, 60))
def test_members_without_cycles(n, members):
    ends = Constant().member_ends(n, members)
    assert 1 <= len(ends) <= members
    assert ends[-1] == n
    assert (np.diff(ends) > 0).all()
    assert ends[0] > n // 2
    assert len(set(np.diff(ends))) <= 1


@bounded(60)
@given(floats(1e-4, 1.0), st.integers(0, 2**40), st.integers(0, 10**6), st.integers(1, 300), st.data())
def test_masks(keep, seed, cycle, n, data):
    mask = BernoulliMask(keep, seed)
    rows = mask.rows(cycle, n)
    if keep == 1.0:
        assert rows is None
        return
    assert rows.dtype == bool
    assert rows.shape == (n,)
    assert rows.any()
    cut = data.draw(st.integers(1, n))
    part = mask.rows(cycle, n - cut, first_row=cut) if cut < n else rows[:0]
    if rows[:cut].any() and rows[cut:].any():  # a part without a row keeps its nearest
        np.testing.assert_array_equal(np.concatenate([mask.rows(cycle, cut), part]), rows)
    more = BernoulliMask(min(2 * keep, 1.0), seed).rows(cycle, n)
    assert more is None or (more >= rows).all()


@bounded(60)
@given(st.data())
def test_moments_of_any_members(data):
    n, m = data.draw(array_shapes(min_dims=2, max_dims=2, max_side=8))
    mean = data.draw(arrays(np.float64, (n, m), elements=floats(-1e9, 1e9)))
    var = data.draw(arrays(np.float64, (n, m), elements=floats(0.0, 1e9)))
    u = Uncertainty.from_moments(mean, var)
    assert (u.knowledge >= 0).all()
    assert (u.data >= 0).all()
    np.testing.assert_array_equal(u.knowledge + u.data, u.total)
    np.testing.assert_allclose(u.knowledge, mean.var(axis=1), rtol=1e-6, atol=1e-12 + 1e-14 * (mean**2).max())
    shuffled = data.draw(st.permutations(range(m)))
    other = Uncertainty.from_moments(mean[:, shuffled], var[:, shuffled])
    np.testing.assert_allclose(other.total, u.total, rtol=1e-6, atol=1e-12 + 1e-14 * (mean**2).max())
    counts = data.draw(arrays(np.int64, m, elements=st.integers(0, 3)))
    counts[0] += 1
    weighted = Uncertainty.from_moments(mean, var, weights=counts / counts.sum())
    repeated = Uncertainty.from_moments(np.repeat(mean, counts, axis=1), np.repeat(var, counts, axis=1))
    atol = 1e-9 + 1e-14 * (mean**2).max()
    np.testing.assert_allclose(weighted.knowledge, repeated.knowledge, rtol=1e-6, atol=atol)
    np.testing.assert_allclose(weighted.data, repeated.data, rtol=1e-9, atol=1e-9)


@bounded(60)
@given(st.data())
def test_probabilities_of_any_members(data):
    n, m, k = data.draw(array_shapes(min_dims=3, max_dims=3, max_side=6))
    scores = data.draw(arrays(np.float64, (n, m, k), elements=floats(0.0, 1.0)))
    scores[scores.sum(axis=2) == 0] = 1.0
    proba = scores / scores.sum(axis=2, keepdims=True)
    u = Uncertainty.from_probabilities(proba)
    for part in (u.knowledge, u.data, u.total):
        assert (part >= 0).all()
        assert (part <= np.log(k) + 1e-9).all()
    np.testing.assert_array_equal(u.knowledge + u.data, u.total)
    mean = proba.mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        total = -np.where(mean > 0, mean * np.log(mean), 0.0).sum(axis=1)
    np.testing.assert_allclose(u.total, total, atol=1e-9)
    alike = Uncertainty.from_probabilities(np.repeat(proba[:, :1], m, axis=1))
    np.testing.assert_array_equal(alike.knowledge, 0.0)


@st.composite
def mixtures(draw):
    n, m = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    scale = 10.0 ** draw(st.integers(-6, 6))
    mu = draw(arrays(np.float64, (n, m), elements=floats(-5, 5))) * scale
    sigma = draw(arrays(np.float64, (n, m), elements=floats(0.05, 5))) * scale
    return Predictive("normal", np.stack([mu, sigma], axis=2)), scale


@bounded(40)
@given(mixtures(), st.data())
def test_mixtures(pair, data):
    dist, scale = pair
    u = dist.uncertainty()
    np.testing.assert_allclose(u.knowledge + u.data, dist.var(), rtol=1e-9)
    levels = np.array([0.001, 0.05, 0.3, 0.5, 0.9, 0.999])
    q = np.column_stack([dist.ppf(level) for level in levels])
    assert (np.diff(q, axis=1) > 0).all()
    np.testing.assert_allclose(np.column_stack([dist.cdf(x) for x in q.T]), [levels] * len(dist), atol=1e-7)
    y = data.draw(arrays(np.float64, len(dist), elements=floats(-9, 9))) * scale
    assert np.isfinite(dist.log_pdf(y)).all()
    score = dist.crps(y)
    assert (score >= 0).all()
    # Mean distance less half that of two draws; of 400 draws, known to some 0.07 standard deviations.
    draws = dist.sample(400, random_state=0)
    spread = np.abs(draws - draws[:, ::-1]).mean(axis=1)
    expected = np.abs(draws - y[:, None]).mean(axis=1) - 0.5 * spread
    np.testing.assert_array_less(np.abs(score - expected), 0.4 * dist.std())
    order = data.draw(st.permutations(range(len(dist))))
    np.testing.assert_array_equal(dist[np.array(order)].ppf(0.3), dist.ppf(0.3)[order])
    np.testing.assert_array_equal(dist[np.array(order)].crps(y[order]), score[order])
    twice = Predictive("normal", np.concatenate([dist.theta, dist.theta], axis=1))
    np.testing.assert_allclose(twice.crps(y), score, rtol=1e-7, atol=1e-9 * scale)
    np.testing.assert_allclose(twice.interval(0.9), dist.interval(0.9), rtol=1e-7, atol=1e-7 * scale)


@bounded(40)
@given(st.data())
def test_metrics_of_weights_are_those_of_repeated_rows(data):
    n = data.draw(st.integers(2, 12))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    scale = 10.0 ** data.draw(st.integers(-6, 6))
    theta = np.column_stack([rng.normal(size=n), rng.uniform(0.1, 2, n)]) * scale
    y = rng.normal(size=n) * scale
    weight = data.draw(weights(n))
    unit = 10.0 ** np.floor(np.log10(weight.max()))
    rows = np.repeat(np.arange(n), np.round(weight / unit).astype(int))
    dist = Predictive("normal", theta)
    again = dist[rows]
    interval = dist.interval(0.8)
    for metric in (nll, crps):
        found, expected = metric(y, dist, sample_weight=weight), metric(y[rows], again)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    for metric in (interval_score, coverage):
        found, expected = metric(y, interval, sample_weight=weight), metric(y[rows], interval[rows])
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    values = pit(y, dist)
    assert ((values >= 0) & (values <= 1)).all()


@bounded(40)
@given(st.data())
def test_ranking_metrics(data):
    n = data.draw(st.integers(2, 20))
    inside = data.draw(arrays(np.float64, n, elements=floats(0, 10)))
    outside = data.draw(arrays(np.float64, n, elements=floats(0, 10)))
    value = ood_auc(inside, outside)
    assert 0.0 <= value <= 1.0
    assert ood_auc(outside, inside) == pytest.approx(1.0 - value)
    assert ood_auc(inside * 8.0, outside * 8.0) == value
    errors = np.abs(inside) + 0.1 * np.arange(n)
    if np.ptp(errors) > 0:
        assert prr(errors, errors) == pytest.approx(1.0)
        assert prr(errors, outside) <= 1.0 + 1e-9


@bounded(40)
@given(st.data())
def test_crps_of_samples(data):
    n, m = data.draw(st.integers(1, 6)), data.draw(st.integers(2, 8))
    draws = data.draw(arrays(np.float64, (n, m), elements=floats(-1e6, 1e6)))
    y = data.draw(arrays(np.float64, n, elements=floats(-1e6, 1e6)))
    plain = crps_ensemble(y, draws, estimator="plain")
    fair = crps_ensemble(y, draws, estimator="fair")
    assert (np.asarray(fair) <= np.asarray(plain) + 1e-6).all()
    assert (np.asarray(plain) >= -1e-6).all()
    shuffled = crps_ensemble(y, draws[:, ::-1], estimator="plain")
    np.testing.assert_allclose(shuffled, plain, rtol=1e-9, atol=1e-6)
