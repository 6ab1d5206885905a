"""Losses: finite differences, starts, supports, kernels, discovery."""

import json
import pickle
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy.optimize import minimize

from boostplugins.losses import (
    Logistic,
    Loss,
    NormalLikelihood,
    Softmax,
    SquaredError,
    check_loss,
    get_loss,
    loss_from_dict,
    losses,
)


def _ready(kind):
    return Softmax(n_classes=3) if kind is Softmax else SquaredError(0.7) if kind is SquaredError else kind()


def _labels(loss, n, rng):
    return (
        rng.integers(0, max(loss.n_outputs, 2), n).astype(float)
        if loss.classification
        else rng.normal(size=n)
    )


ALL = [_ready(kind) for kind in losses().values()]


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
@pytest.mark.parametrize("level", [-3.0, 0.0, 3.0])
def test_a03_derivatives_equal_finite_differences(loss, level):
    rng = np.random.default_rng(0)
    y = _labels(loss, 20, rng)
    raw = level + 0.1 * rng.normal(size=(20, loss.n_outputs))
    if isinstance(loss, NormalLikelihood):
        raw[:, 1] /= 3.0
    check_loss(loss, y, raw, tolerance=1e-5)


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_start_is_the_best_constant(loss):
    rng = np.random.default_rng(1)
    y, weight = _labels(loss, 200, rng), rng.uniform(0.1, 3, 200)
    cost = lambda raw: np.dot(weight, loss.value(y, np.tile(raw, (200, 1))))  # noqa: E731
    start = loss.start(y, weight)
    best = minimize(cost, start + 0.3).fun
    assert cost(start) <= best + 1e-6 * abs(best)


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_b07_finite_far_out(loss):
    rng = np.random.default_rng(2)
    y = np.repeat(_labels(loss, 8, rng), 9)
    grid = np.tile([-700.0, -300.0, -50.0, -1.0, 0.0, 1.0, 50.0, 300.0, 700.0], 8)
    raw = np.tile(grid[:, None], (1, loss.n_outputs)) * np.linspace(1, 0.9, loss.n_outputs)
    if isinstance(loss, NormalLikelihood):
        raw[:, 1] = np.clip(raw[:, 1], -300, 300)
    for values in (loss.direction(y, raw), loss.hessian(y, raw), loss.noise_scale(raw)):
        assert np.isfinite(values).all()
    assert (loss.hessian(y, raw) > 0).all()


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_direction_is_the_preconditioned_negative_gradient(loss):
    rng = np.random.default_rng(3)
    y, raw = _labels(loss, 50, rng), 0.1 * rng.normal(size=(50, loss.n_outputs))
    np.testing.assert_allclose(
        loss.direction(y, raw), -loss.gradient(y, raw) * loss.noise_scale(raw) ** 2, atol=1e-12
    )


def test_a03_flipped_sign_is_named():
    @dataclass(frozen=True)
    class Flipped(Logistic):
        name: ClassVar[str] = "flipped"

        def gradient(self, y, raw):
            return -super().gradient(y, raw)

    with pytest.raises(ValueError, match="gradient of flipped has the wrong sign"):
        check_loss(Flipped(), np.array([0.0, 1.0]), np.array([[0.5], [0.5]]))


@pytest.mark.parametrize("shape", ["scalar", "vector", "matrix"])
def test_a08_wrong_hessian_shapes_are_named(shape):
    @dataclass(frozen=True)
    class Odd(Softmax):
        name: ClassVar[str] = "odd"

        def hessian(self, y, raw):
            full = {"scalar": np.ones(len(y)), "vector": np.ones((3,)), "matrix": np.ones((len(y), 3, 3))}
            return full[shape]

    y = np.arange(40) % 3.0
    with pytest.raises(ValueError, match=r"hessian of odd must have shape \(40, 3\), the diagonal a row"):
        check_loss(Odd(n_classes=3), y, np.zeros((40, 3)))


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_json_and_pickle_round_trips(loss):
    assert loss_from_dict(json.loads(json.dumps(loss.to_dict()))) == loss
    assert pickle.loads(pickle.dumps(loss)) == loss


@pytest.mark.parametrize("name", ["RMSE", "Logloss", "MultiClass", "RMSEWithUncertainty", "squared_error"])
def test_names_of_the_boosters_are_known(name):
    assert isinstance(get_loss(name), Loss)


def test_a04_class_or_instance():
    assert get_loss(Logistic) == get_loss(Logistic()) == Logistic()


def test_unknown_losses():
    with pytest.raises(ValueError, match="loss must be one of .*got 'MAE'"):
        get_loss("MAE")
    with pytest.raises(TypeError, match="loss must be a name or a Loss"):
        get_loss(3)
    with pytest.raises(ValueError, match="loss must be one of"):
        loss_from_dict({"name": "MAE"})


def test_labels_outside_the_support():
    with pytest.raises(ValueError, match=r"labels of the logistic loss must lie in \[0, 1\], got 2 in row 1"):
        Logistic().check_labels(np.array([0.0, 2.0]))
    with pytest.raises(ValueError, match=r"whole numbers in \[0, 2\], got 3 in row 0"):
        Softmax(3).check_labels(np.array([3.0, 2.0]))
    with pytest.raises(ValueError, match="noise_variance"):
        SquaredError(noise_variance=0.0)
