"""The likelihood of any family as a chain's loss."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from boostplugins.losses import FamilyLikelihood, NormalLikelihood, check_loss, loss_from_dict
from tests.families.cases import FAMILIES, IDS, draws, raws

each = pytest.mark.parametrize("family", FAMILIES, ids=IDS)


def test_of_a_normal_it_is_the_normal_likelihood():
    """Value, gradient, start and uncertainty are equal; log sigma's preconditioner is 1/2, not 1."""
    rng = np.random.default_rng(0)
    y, raw = rng.normal(size=50), 0.3 * rng.normal(size=(50, 2))
    ours, twin = FamilyLikelihood("normal"), NormalLikelihood()
    np.testing.assert_allclose(ours.value(y, raw), twin.value(y, raw), rtol=1e-12)
    np.testing.assert_allclose(ours.gradient(y, raw), twin.gradient(y, raw), rtol=1e-12)
    np.testing.assert_allclose(ours.hessian(y, raw), twin.hessian(y, raw), rtol=1e-12)
    np.testing.assert_allclose(ours.start(y), twin.start(y), rtol=1e-12)
    np.testing.assert_allclose(ours.direction(y, raw) * [1, 2], twin.direction(y, raw), atol=1e-12)
    np.testing.assert_allclose(ours.noise_scale(raw) * [1, 2**0.5], twin.noise_scale(raw), rtol=1e-12)
    members = np.stack([raw, raw + 0.1], axis=1)
    np.testing.assert_allclose(ours.uncertainty(members).knowledge, twin.uncertainty(members).knowledge)
    np.testing.assert_allclose(ours.uncertainty(members).data, twin.uncertainty(members).data)
    np.testing.assert_allclose(ours.response(raw), twin.response(raw))


@each
def test_direction_and_noise_are_preconditioned_by_the_inverse_information(family):
    loss = FamilyLikelihood(family)
    raw = raws(family, 30)
    y = draws(family, family.theta(raw))
    check_loss(loss, y, raw, tolerance=1e-4 if family.name != "laplace" else 1.0)
    direction, noise = loss.direction_and_noise(y, raw)
    np.testing.assert_allclose(direction, -loss.gradient(y, raw) * noise**2, rtol=1e-12)
    np.testing.assert_array_equal(direction, loss.direction(y, raw))
    np.testing.assert_array_equal(noise, loss.noise_scale(raw))  # found without the responses


@each
def test_limits_stand_about_the_start_and_descriptions_are_complete(family):
    y = draws(family, np.tile(family.theta(raws(family, 1)), (200, 1)))
    loss = FamilyLikelihood(family).ready(y)
    low, high = np.array(loss.limits).T
    start = loss.start(y)
    assert (low <= start).all()
    assert (start <= high).all()
    assert np.isfinite(loss.direction(y[:2], np.array([low, high]))).all()
    far = np.array([low - 50.0, high + 50.0])
    np.testing.assert_array_equal(loss.theta(far), loss.theta(np.array([low, high])))
    assert loss.ready(y) == loss
    described = json.loads(json.dumps(loss.to_dict(), allow_nan=family.name in ("censored", "truncated")))
    assert loss_from_dict(described) == loss == pickle.loads(pickle.dumps(loss))


def test_bad_limits_and_labels_are_refused():
    with pytest.raises(ValueError, match="limits must be 2 pairs of increasing numbers for family gamma"):
        FamilyLikelihood("gamma", limits=((0.0, 1.0),))
    with pytest.raises(ValueError, match="limits must be 1 pairs"):
        FamilyLikelihood("poisson", limits=((1.0, 0.0),))
    with pytest.raises(ValueError, match="label must hold .* for family gamma, got 0"):
        FamilyLikelihood("gamma").check_labels(np.array([1.0, 0.0]))


@pytest.mark.parametrize("booster", ["lightgbm", "catboost"])
def test_sglb_regressor_takes_a_family(booster):
    from boostplugins import SGLBRegressor

    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (200, 2))
    y = rng.gamma(3.0, np.exp(X[:, 0]))
    model = SGLBRegressor(FamilyLikelihood("gamma"), booster=booster, n_estimators=30, n_jobs=1).fit(X, y)
    dist = model.predict_dist(X)
    assert (dist.family.name, dist.n_members) == ("gamma", 10)
    np.testing.assert_allclose(dist.mean(), model.predict(X))
    if booster == "catboost":
        model.set_params(early_stopping_rounds=20, validation_fraction=0.2)
        with pytest.raises(ValueError, match="early_stopping_rounds must be None for a family on CatBoost"):
            model.fit(X, y)
