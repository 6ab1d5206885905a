"""Families far from their centre, at odd responses and weights: finite, ordered, or one clear error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.families.cases import FAMILIES, IDS, draws, raws
from tests.properties.strategies import bounded, raw_scores

each = pytest.mark.parametrize("family", FAMILIES, ids=IDS)
QUICK = [family for family in FAMILIES if family.name not in ("truncated", "censored", "tweedie")]


@each
@bounded(4)
@given(data=st.data())
def test_distributions_far_from_the_centre(family, data):
    raw = data.draw(raw_scores(family, n=4))
    theta = family.theta(raw)
    family.check_theta(theta)
    np.testing.assert_allclose(family.theta(family.raw(theta)), theta, rtol=1e-7)
    y = draws(family, theta, seed=data.draw(st.integers(0, 1000)))
    assert family.support.contains(y).all()
    log_pdf = family.log_pdf(y, theta)
    assert not np.isnan(log_pdf).any()
    assert (log_pdf > -np.inf).all()
    score, fisher = family.score_and_fisher(y, raw)
    assert np.isfinite(score).all()
    assert np.isfinite(fisher).all()
    assert (fisher > 0).all()
    below, above = family.cdf(y, theta), family.sf(y, theta)
    assert ((below >= 0) & (below <= 1)).all()
    np.testing.assert_allclose(below + above, 1.0, atol=1e-9)
    for log_share, share in ((family.log_cdf(y, theta), below), (family.log_sf(y, theta), above)):
        inside = share > 1e-12
        np.testing.assert_allclose(log_share[inside], np.log(share[inside]), rtol=1e-6, atol=1e-9)
    assert (family.cdf(y - 1e-3 * np.abs(y) - 1e-9, theta) <= below + 1e-12).all()
    low, mid, high = (family.ppf(q, theta) for q in (0.05, 0.5, 0.95))
    assert ((low <= mid) & (mid <= high)).all()
    some = slice(None) if family in QUICK else slice(1)
    crps = family.crps(y[some], theta[some])
    assert np.isfinite(crps).all()
    assert (crps >= 0).all()
    order = np.array(data.draw(st.permutations(range(len(y)))))
    np.testing.assert_array_equal(family.log_pdf(y[order], theta[order]), log_pdf[order])
    np.testing.assert_array_equal(family.ppf(0.5, theta[order]), mid[order])
    np.testing.assert_array_equal(family.score_and_fisher(y[order], raw[order])[0], score[order])


@pytest.mark.parametrize("family", QUICK, ids=repr)
@bounded(5)
@given(data=st.data())
def test_starts_of_odd_responses(family, data):
    n = data.draw(st.integers(1, 12))
    theta = np.tile(family.theta(raws(family, 1))[0], (n, 1))
    y = draws(family, theta, seed=data.draw(st.integers(0, 1000)))
    if data.draw(st.booleans()):
        y = np.full(n, y[0])
    weight = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), dtype=float)
    weight[0] = max(weight[0], 1.0)
    start = family.init(y, weight)
    assert start.shape == (family.n_params,)
    assert np.isfinite(start).all()
    family.check_theta(family.theta(start[None]))
    value = family.log_pdf(y, family.theta(start))
    assert np.isfinite(value[weight > 0]).all()
    # What was never seen counts half as much as the heaviest row; mixtures have several best ones.
    if family.name in ("bernoulli", "categorical", "normal_mixture") or np.ptp(y[weight > 0]) == 0:
        return
    repeated = family.init(np.repeat(y, weight.astype(int)))
    level = family.log_pdf(y, family.theta(repeated))
    # Flat likelihoods of few rows leave the parameters open, not their likelihood.
    used = weight > 0
    assert weight[used] @ value[used] == pytest.approx(weight[used] @ level[used], rel=1e-3, abs=1e-3)
