"""Scores and moments of mixtures, recalibrated ones and wide counts, against direct sums and integrals."""

from __future__ import annotations

import numpy as np
import pytest

from boostplugins import Predictive
from boostplugins.calibration import Recalibrated

SCALE = np.array([1.2])
KNOTS = np.array([[0.0, 0.07, 0.12, 0.5, 0.85, 0.97, 1.0], [0.0, 0.05, 0.1, 0.5, 0.9, 0.95, 1.0]])


def gammas(n=4, members=3):
    theta = np.exp(0.2 * np.random.default_rng(0).normal(size=(n, members, 2)) + [1.0, 0.5])
    return Predictive("gamma", theta), np.random.default_rng(1).gamma(2.0, 1.5, n)


def counts(mean, n=6, members=3):
    theta = np.exp(0.2 * np.random.default_rng(2).normal(size=(n, members, 2)) + [np.log(mean), 0.0])
    return Predictive("negative_binomial", theta), np.random.default_rng(3).poisson(mean, n).astype(float)


@pytest.mark.parametrize("rule", [SCALE, KNOTS], ids=["scale", "conformal"])
def test_recalibrated_mixtures_of_continuous_members(rule):
    base, y = gammas()
    dist = Recalibrated(base, rule)
    x = np.concatenate([np.geomspace(1e-12, 1e-3, 4000), np.linspace(1e-3, 150.0, 400_001)[1:]])
    middle, width = 0.5 * (x[1:] + x[:-1]), np.diff(x)
    for i in range(len(y)):
        f = np.mean([base.family.cdf(middle, member) for member in base.theta[i]], axis=0)
        f = dist._forward(f)
        mean = (width * (1.0 - f)).sum()
        second = (width * 2.0 * middle * (1.0 - f)).sum()
        assert dist.mean()[i] == pytest.approx(mean, rel=1e-6)
        assert dist.var()[i] == pytest.approx(second - mean**2, rel=1e-5)
        assert dist.crps(y)[i] == pytest.approx((width * (f - (middle >= y[i])) ** 2).sum(), rel=1e-3)


@pytest.mark.parametrize("mean", [3.0, 300.0])
@pytest.mark.parametrize("recalibrated", [False, True])
def test_mixtures_of_counts(mean, recalibrated):
    base, y = counts(mean)
    dist = Recalibrated(base, SCALE) if recalibrated else base
    k = np.arange(0.0, 60.0 * mean)
    for i in range(len(y)):
        f = base.family.cdf(k[:, None], base.theta[i]).mean(axis=1)
        f = dist._forward(f) if recalibrated else f
        p = np.diff(f, prepend=0.0)
        assert dist.crps(y)[i] == pytest.approx(((f - (k >= y[i])) ** 2).sum(), rel=2e-5)
        assert dist.mean()[i] == pytest.approx((p * k).sum(), rel=1e-5)
        assert dist.var()[i] == pytest.approx((p * (k - (p * k).sum()) ** 2).sum(), rel=1e-4)


def test_a_factor_of_one_changes_nothing():
    for dist, y in (gammas(), counts(20.0)):
        same = Recalibrated(dist, np.array([1.0]))
        np.testing.assert_allclose(same.crps(y), dist.crps(y), rtol=1e-5)
        np.testing.assert_allclose(same.mean(), dist.mean(), rtol=1e-5)
        np.testing.assert_allclose(same.var(), dist.var(), rtol=1e-4)


def test_infinite_moments_and_atoms():
    heavy = Recalibrated(Predictive("student_t", np.tile([[0.5, 1.0, 1.2]], (3, 1))), np.array([1.0]))
    assert (heavy.crps(np.zeros(3)) > 0).all()
    zeros = Predictive("ZAGA", np.tile([[[2.0, 1.5, 0.3], [3.0, 1.0, 0.2]]], (3, 1, 1)))
    y = np.array([0.0, 1.0, 5.0])
    np.testing.assert_allclose(Recalibrated(zeros, np.array([1.0])).crps(y), zeros.crps(y), rtol=1e-6)
    np.testing.assert_allclose(Recalibrated(zeros, np.array([1.0])).mean(), zeros.mean(), rtol=1e-6)
