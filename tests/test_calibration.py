"""Recalibration: factors, conformal maps, and distributions that include them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import stats

from boostplugins.calibration import Recalibrated, Recalibrator
from boostplugins.metrics import coverage, pit
from boostplugins.predictive import Predictive

N = 2000


def overconfident(family="normal", seed=0):
    """Predictions that are too narrow, and responses."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=N)
    if family == "normal":
        return mean + rng.normal(size=N), Predictive("normal", np.stack([mean, np.full(N, 0.5)], axis=1))
    if family == "poisson":  # counts more spread than a Poisson
        rate = np.exp(1 + 0.3 * mean)
        return rng.poisson(rate * rng.gamma(2.0, 0.5, N)).astype(float), Predictive("poisson", rate[:, None])
    size = np.exp(0.3 * mean)
    return rng.gamma(2.0, size / 2.0), Predictive("gamma", np.stack([size, np.full(N, 8.0)], axis=1))


def test_j04_the_factor_is_found_and_intervals_cover():
    y, dist = overconfident()
    fitted = Recalibrator("scale").fit(y, dist)
    assert 1.9 <= fitted.factor_ <= 2.1
    y_new, dist_new = overconfident(seed=1)
    right = fitted.apply(dist_new)
    assert coverage(y_new, right.interval(0.9)) == pytest.approx(0.9, abs=0.02)
    assert right.std() == pytest.approx(np.full(N, 0.5 * fitted.factor_))
    assert Recalibrator("scale").fit(y_new, right).factor_ == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("method", ["scale", "conformal"])
@pytest.mark.parametrize("family", ["normal", "gamma", "poisson"])
def test_corrected_distributions_are_calibrated_and_consistent(family, method):
    y, dist = overconfident(family)
    y_new, dist_new = overconfident(family, seed=1)
    right = Recalibrator(method).fit(y, dist).apply(dist_new)
    # Intervals of counts hold more than their level; spread probabilities do not.
    before, after = (np.mean(np.abs(pit(y_new, d) - 0.5) < 0.4) for d in (dist_new, right))
    assert before < 0.76
    assert after == pytest.approx(0.8, abs=0.035)
    assert right.log_pdf(y_new).mean() > dist_new.log_pdf(y_new).mean()
    assert np.isfinite(right.log_pdf(y_new)).all()
    part = right[:20]
    grid = np.array([part.ppf(q) for q in np.linspace(0.02, 0.98, 25)])
    assert (np.diff(grid, axis=0) >= 0).all()
    x = part.ppf(0.3)
    assert (part.cdf(x) >= 0.3 - 1e-9).all()
    np.testing.assert_allclose(part.sf(x), 1.0 - part.cdf(x), atol=1e-12)
    draws = part.sample(4000, random_state=0)
    assert np.abs(draws.mean(axis=1) - part.mean()).max() < 0.15 * part.std().max() + 0.02
    u = part.uncertainty()
    np.testing.assert_allclose(u.total, part.var())
    assert (pickle.loads(pickle.dumps(part)).ppf(0.2) == part.ppf(0.2)).all()


@pytest.mark.parametrize("rule", [[1.5], [[0.0, 0.1, 0.6, 1.0], [0.0, 0.2, 0.5, 1.0]]])
def test_survival_of_corrected_distributions_is_exact_far_out(rule):
    """A normal twice: as it is, and turned over, where the upper tail is the lower one."""
    y = np.array([-1.0, 0.5, 2.0, 12.0])
    rule = np.array(rule)
    turned = rule if rule.ndim == 1 else 1.0 - rule[:, ::-1]
    one, other = (
        Recalibrated(Predictive("normal", np.tile([0.0, 1.0], (4, 1))), each) for each in (rule, turned)
    )
    np.testing.assert_allclose(one.sf(y), other.cdf(-y), rtol=1e-9)
    np.testing.assert_allclose(one.sf(y) + one.cdf(y), 1.0)
    assert one.sf(y)[3] > 0


def test_crps_and_density_of_corrected_distributions():
    y, dist = overconfident("gamma")
    part = Recalibrated(dist[:5], np.array([1.7]))
    points = np.linspace(0, 60, 100_001)
    for i in range(5):
        one = part[i]
        f = part[np.full(len(points), i)].cdf(points)
        crps = np.trapezoid((f - (points >= y[i])) ** 2, points)
        assert one.crps(y[i : i + 1])[0] == pytest.approx(crps, rel=2e-3)
        slope = (one.cdf(y[i] + 1e-5)[0] - one.cdf(y[i] - 1e-5)[0]) / 2e-5
        assert np.exp(one.log_pdf(y[i : i + 1])[0]) == pytest.approx(slope, rel=1e-5)


def test_conformal_coverage_holds_for_few_rows():
    """Mean coverage over many calibrations is at least nominal, within five standard errors."""
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(300):
        y = rng.standard_t(3, 60)
        dist = Predictive("normal", np.tile([0.0, 0.4], (60, 1)))
        right = Recalibrator("conformal").fit(y, dist).apply(dist[:1])
        low, high = right.interval(0.8)[0]
        inside.append(stats.t.cdf(high, 3) - stats.t.cdf(low, 3))
    assert np.mean(inside) >= 0.8 - 5 * np.std(inside) / np.sqrt(300)
    assert np.mean(inside) <= 0.86


@pytest.mark.parametrize("method", ["scale", "conformal"])
def test_j04_five_rows_warn_and_do_not_crash(method):
    y, dist = overconfident()
    with pytest.warns(UserWarning, match="recalibration on 5 rows is rough"):
        fitted = Recalibrator(method).fit(y[:5], dist[:5])
    right = fitted.apply(dist)
    assert np.isfinite(right.interval(0.5)).all()
    assert not np.isnan(right.interval(0.99)).any()


def test_weights_and_descriptions():
    y, dist = overconfident()
    weight = np.random.default_rng(0).integers(0, 3, N).astype(float)
    again = np.repeat(np.arange(N), weight.astype(int))
    one = Recalibrator("scale").fit(y, dist, weight)
    assert one.factor_ == pytest.approx(Recalibrator("scale").fit(y[again], dist[again]).factor_, rel=1e-4)
    for method in ("scale", "conformal"):
        fitted = Recalibrator(method).fit(y, dist)
        twin = Recalibrator.from_dict(fitted.to_dict())
        assert (twin.apply(dist).ppf(0.1) == fitted.apply(dist).ppf(0.1)).all()
    with pytest.raises(ValueError, match="not fitted"):
        Recalibrator().apply(dist)
    with pytest.raises(ValueError, match="method must be one of"):
        Recalibrator("magic").fit(y, dist)
    assert stats.kstest(pit(y, one.apply(dist)), "uniform").pvalue > 1e-4


def test_another_method_replaces_the_correction_of_the_first():
    y, dist = overconfident()
    fitted = Recalibrator("scale").fit(y, dist)
    fitted.method = "conformal"
    with pytest.raises(ValueError, match="not fitted"):
        fitted.apply(dist)
    again = fitted.fit(y, dist).apply(dist)
    assert (again.ppf(0.05) == Recalibrator("conformal").fit(y, dist).apply(dist).ppf(0.05)).all()
    assert set(fitted.to_dict()) == {"method", "map"}


def test_classes_have_no_order_to_recalibrate():
    with pytest.raises(ValueError, match="dist must have responses in an order"):
        Recalibrator().fit(np.zeros(50), Predictive("bernoulli", np.full((50, 1), 0.3)))
