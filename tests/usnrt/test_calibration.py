"""Calibration by held-out rows: factors and shapes of errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from boostplugins.estimators.hnn import HNNRegressor
from boostplugins.estimators.usnrt import USNRTRegressor
from boostplugins.families.normal_mixture import NormalMixture
from boostplugins.metrics import ece, nll
from boostplugins.predictive import Predictive
from boostplugins.usnrt.calibration import (
    CALIBRATIONS,
    GROUPS,
    LEAST_ROWS,
    Correction,
    correct,
    error_shape,
    variance_factor,
)

QUICK = {"max_epochs": 40, "patience": 8, "learning_rate_drops": 0}


def test_calibration_repairs_a_wrong_scale():
    rng = np.random.default_rng(6)
    residual, variance = 3.0 * rng.normal(size=5000), np.ones(5000)
    for kind in ("scale", "coverage"):
        assert variance_factor(kind, residual, variance) == pytest.approx(9.0, rel=0.1)
        assert variance_factor(kind, residual[:19], variance[:19]) == 1.0
    assert variance_factor(None, residual, variance) == 1.0
    heavy = rng.standard_t(2.1, size=5000)
    assert variance_factor("coverage", heavy, variance) < 0.5 * variance_factor("scale", heavy, variance)
    assert variance_factor("coverage", np.zeros(50), np.ones(50)) == pytest.approx(1.0)


def shaped(shape, n):
    mean, sd = shape
    theta = np.concatenate([np.full(GROUPS, 1.0 / GROUPS), mean, sd])
    return Predictive(NormalMixture(GROUPS), np.tile(theta, (n, 1)))


ERRORS = {
    "normal": stats.norm(),
    "skewed": stats.expon(loc=-1.0),
    "heavy": stats.t(2.5),
    "uniform": stats.uniform(-np.sqrt(3), 2 * np.sqrt(3)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_shape_follows_any_distribution_of_errors(name):
    error = ERRORS[name]
    rng = np.random.default_rng(7)
    held, fresh = error.rvs(2000, random_state=rng), error.rvs(4000, random_state=rng)
    variance = np.full(2000, 4.0)
    dist = shaped(error_shape(2.0 * held, variance), 4000)
    # Kolmogorov: two samples of these sizes are 0.036 apart at 5 %, an ECE below half of that.
    assert ece(fresh, dist) < 0.03
    truth, plain = (
        -error.logpdf(fresh).mean(),
        nll(fresh, Predictive("normal", np.tile([0.0, 1.0], (4000, 1)))),
    )
    assert nll(fresh, dist) < truth + 0.15
    if name != "normal":
        assert nll(fresh, dist) < plain
    assert dist.var()[0] == pytest.approx(held.var(), rel=0.03)


def test_shape_has_the_mean_of_the_errors():
    residual = np.random.default_rng(8).exponential(size=500)
    assert error_shape(residual, np.ones(500))[0].mean() == pytest.approx(residual.mean(), rel=0.02)


@pytest.mark.parametrize("residual", [np.zeros(50), np.full(50, 3.0), np.r_[np.zeros(49), 1e6]])
def test_shape_of_ties_is_finite_and_has_width(residual):
    shape = error_shape(residual, np.ones(50))
    assert np.isfinite(shape).all()
    assert (shape[1] > 0).all()


@pytest.mark.parametrize("kind", CALIBRATIONS)
def test_too_few_rows_correct_nothing(kind):
    assert correct(kind, np.full(LEAST_ROWS - 1, 9.0), np.ones(LEAST_ROWS - 1)) == Correction()


def skewed(n=3000, seed=0, jump=0.5):
    """Errors that are exponential, with a scale that jumps."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 2))
    return X, X[:, 1] + (rng.exponential(size=n) - 1.0) * np.where(X[:, 0] < jump, 0.1, 1.0)


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize(
    "model",
    [USNRTRegressor(min_samples_leaf=700, **QUICK), HNNRegressor(hidden=(12, 6), **QUICK)],
    ids=lambda model: type(model).__name__,
)
def test_shape_calibrates_skewed_errors(model, members, tmp_path):
    X, y = skewed()
    X_new, y_new = skewed(seed=1)
    model.set_params(n_members=members)
    plain = model.set_params(calibration=None).fit(X, y).predict_dist(X_new)
    dist = model.set_params(calibration="shape").fit(X, y).predict_dist(X_new)
    assert ece(y_new, dist) < 0.5 * ece(y_new, plain)
    assert nll(y_new, dist) < nll(y_new, plain)
    np.testing.assert_array_equal(model.predict(X_new), dist.mean())
    if members == 1:  # a shape is no disagreement
        assert (dist.uncertainty().knowledge == 0).all()
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(type(model).load(tmp_path / "model").predict_dist(X_new).theta, dist.theta)


def test_shape_falls_back_to_normals_in_leaves_with_few_held_out_rows():
    X, y = skewed(300, jump=0.25)
    model = USNRTRegressor(min_samples_leaf=60, calibration="shape", validation_fraction=0.13, **QUICK)
    model.fit(X, y)
    held = [pair.correction.shape is not None for pair in model.members_[0].pairs]
    assert sorted(held) == [False, True]
    dist = model.predict_dist(X)
    assert np.isfinite(dist.crps(y)).all()
    plain = model.set_params(calibration=None).fit(X, y).predict_dist(X)
    leaf = model.apply(X)[:, 0]
    bare = np.isin(leaf, model.members_[0].tree.leaves[~np.array(held)])
    np.testing.assert_allclose(dist.ppf(0.9)[bare], plain.ppf(0.9)[bare], rtol=1e-6)


def test_no_shape_is_narrower_than_the_floor():
    X, _ = skewed(600)
    y = np.where(X[:, 0] < 0.5, 0.0, X[:, 1])  # constant in a leaf: predicted exactly
    model = USNRTRegressor(min_samples_leaf=250, variance_floor=1e-4, **QUICK).fit(X, y)
    sigma = model.predict_dist(X).theta[:, -GROUPS:]
    assert sigma.min() >= 0.01 * y.std() * (1 - 1e-12)
    assert model.log_score(X, y + 1e-3) > -10.0
