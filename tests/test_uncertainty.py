"""Uncertainty: definitions by hand, exact zeros, conservation."""

import numpy as np
import pytest

from boostplugins.uncertainty import Uncertainty


def test_d07_classification_by_direct_calculation():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), size=(5, 10))
    p[0] = 1 / 3
    p[1] = np.eye(3)[np.arange(10) % 3]
    u = Uncertainty.from_probabilities(p)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.nansum(p * np.log(p), axis=2)
    mean = p.mean(axis=1)
    total = -(mean * np.log(mean)).sum(axis=1)
    np.testing.assert_allclose(u.total, total, atol=1e-12)
    np.testing.assert_allclose(u.data, entropy.mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(u.knowledge, total - entropy.mean(axis=1), atol=1e-12)
    assert u.knowledge[0] == 0.0
    assert u.total[0] == pytest.approx(np.log(3), abs=1e-12)
    assert u.data[1] == 0.0


def test_regression_is_the_law_of_total_variance():
    rng = np.random.default_rng(1)
    mean, var = rng.normal(size=(50, 7)), rng.uniform(0.1, 2, size=(50, 7))
    u = Uncertainty.from_moments(mean, var)
    np.testing.assert_allclose(u.knowledge, mean.var(axis=1), atol=1e-12)
    np.testing.assert_allclose(u.data, var.mean(axis=1), atol=1e-12)
    np.testing.assert_array_equal(u.total, u.knowledge + u.data)


def test_agreeing_members_give_an_exact_zero():
    same = np.repeat(np.random.default_rng(2).normal(size=(20, 1)) * 1e6, 9, axis=1)
    assert (Uncertainty.from_moments(same, 1.0).knowledge == 0).all()
    p = np.repeat(np.random.default_rng(3).dirichlet(np.ones(4), size=(20, 1)), 7, axis=1)
    assert (Uncertainty.from_probabilities(p).knowledge == 0).all()


def test_weights_of_members_are_repeated_members():
    p = np.random.default_rng(6).dirichlet(np.ones(3), size=(20, 3))
    weighted = Uncertainty.from_probabilities(p, [0.5, 0.25, 0.25])
    repeated = Uncertainty.from_probabilities(p[:, [0, 0, 1, 2]])
    np.testing.assert_allclose(weighted.knowledge, repeated.knowledge, rtol=1e-12)
    np.testing.assert_allclose(weighted.data, repeated.data, rtol=1e-12)
    same = np.repeat(p[:, :1], 2, axis=1)
    assert (Uncertainty.from_probabilities(same, [0.3, 0.7]).knowledge == 0).all()


def test_never_negative_for_nearly_equal_members():
    p = np.random.default_rng(4).dirichlet(np.ones(3), size=(1000, 1)) * np.ones((1, 5, 1))
    p += 1e-12 * np.random.default_rng(5).normal(size=p.shape)
    u = Uncertainty.from_probabilities(np.abs(p))
    assert (u.knowledge >= 0).all()


@pytest.mark.parametrize(
    "maker",
    [
        lambda: Uncertainty.from_moments(np.zeros(3), 1.0),
        lambda: Uncertainty.from_probabilities(np.zeros((2, 2))),
    ],
)
def test_wrong_shapes(maker):
    with pytest.raises(ValueError, match="must have shape"):
        maker()


def test_repr_is_one_short_line():
    u = Uncertainty.from_moments(np.tile([[1.0, 3.0]], (5000, 1)), 0.5)
    assert repr(u) == "Uncertainty(n_samples=5000, means: knowledge=1, data=0.5, total=1.5)"
    assert repr(Uncertainty(*[np.empty(0)] * 3)) == "Uncertainty(shape=(0,))"
    assert repr(Uncertainty(1.0, 2.0, 3.0)) == "Uncertainty(shape=())"
