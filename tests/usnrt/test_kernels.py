"""Kernels of the networks against finite differences and a plain numpy twin."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from numba.core.runtime import rtsys

from boostplugins.usnrt import kernels
from boostplugins.usnrt.kernels import Adam, Rows, State
from boostplugins.usnrt.network import NetworkSpec
from tests.naive import usnrt_networks as naive

MEAN = NetworkSpec((7, 5))
VARIANCE = NetworkSpec((6, 4), "tanh", "softplus", "variance", floor=1e-8)
TANH_MEAN = NetworkSpec((5,), "tanh")
DEEP = NetworkSpec((4, 6, 3), "relu", "softplus", "variance", floor=1e-3)
SPECS = [MEAN, VARIANCE, TANH_MEAN, DEEP]


def make(spec, n=37, d=3, batch=16, dtype=np.float64):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d)).astype(dtype)
    target = rng.normal(size=n).astype(dtype)
    if spec.loss == "variance":
        target = target**2
    rows = Rows(X, target, rng.uniform(0.5, 2, size=n).astype(dtype))
    params = spec.start(d, rng, dtype)
    params += (0.1 * rng.normal(size=len(params))).astype(dtype)  # biases too
    layout = spec.layout(d)
    work = batch * int(layout.sizes.sum())
    zeros = [np.zeros(size, dtype=dtype) for size in (len(params),) * 3 + (work,) * 2]
    return layout, State(params, *zeros), rows


def describe(spec):
    return {"activation": spec.activation, "output": spec.output, "kind": spec.loss, "floor": spec.floor}


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_gradient_equals_finite_differences_and_the_twin(spec):
    layout, state, rows = make(spec, batch=37)
    picked = np.arange(37)
    kernels.gradient(layout, state, rows, picked, 0, -1)
    sizes = layout.sizes

    def loss(params):
        return naive.loss(params, sizes, *rows, **describe(spec))

    numeric = np.empty_like(state.params)
    for i in range(len(numeric)):
        step = np.zeros_like(numeric)
        step[i] = 1e-6
        numeric[i] = (loss(state.params + step) - loss(state.params - step)) / 2e-6
    np.testing.assert_allclose(state.grad, numeric, atol=2e-8, rtol=2e-6)
    twin = naive.gradient(state.params, sizes, *rows, **describe(spec))
    np.testing.assert_allclose(state.grad, twin, atol=1e-13, rtol=1e-11)


@pytest.mark.parametrize("tilt", [0.5, 1.0])
def test_beta_multiplies_the_slope_by_a_power_of_the_variance(tilt):
    spec = NetworkSpec((6, 4), "tanh", "softplus", "variance", floor=1e-8, tilt=tilt)
    layout, state, rows = make(spec, batch=37)
    kernels.gradient(layout, state, rows, np.arange(37), 0, -1)
    twin = naive.gradient(state.params, layout.sizes, *rows, **describe(spec), tilt=tilt)
    np.testing.assert_allclose(state.grad, twin, atol=1e-13, rtol=1e-11)


@pytest.mark.parametrize("spec", [MEAN, VARIANCE], ids=str)
def test_adam_over_epochs_equals_the_twin(spec):
    layout, state, rows = make(spec, batch=16)
    start = state.params.copy()
    rng = np.random.default_rng(2)
    taken, batches = 0, []
    for _ in range(5):
        order = rng.permutation(37)
        taken = kernels.train_epoch(layout, state, rows, order, 16, Adam(0.01, 0.9, 0.999, 1e-8, taken), 0)
        batches += [order[at : at + 16] for at in range(0, 37, 16)]
    assert taken == len(batches) == 15

    def slope(picked):
        part = rows.X[picked], rows.target[picked], rows.weight[picked]
        return lambda params: naive.gradient(params, layout.sizes, *part, **describe(spec))

    twin = naive.adam(start, [slope(picked) for picked in batches])
    assert np.abs(twin - start).max() > 0.05
    np.testing.assert_allclose(state.params, twin, atol=1e-10, rtol=0)


def test_tanh_is_exact_to_rounding():
    x = np.concatenate(
        [np.linspace(-25, 25, 10001), [0.0, -0.0, 1e-12, -1e-300, 400.0, -1e308, np.inf, -np.inf]]
    )
    values = x.copy()
    kernels.tanh_in_place(values)
    np.testing.assert_allclose(values, np.tanh(x), rtol=5e-15, atol=0)
    missing = np.array([np.nan])
    kernels.tanh_in_place(missing)
    assert np.isnan(missing[0])


def test_softplus_survives_extreme_outputs():
    spec = NetworkSpec((1,), "relu", "softplus", "variance", floor=1e-8)
    for bias, expected in [(800.0, 800.0), (-800.0, 1e-8)]:
        layout, state, rows = make(spec, n=4, d=1, batch=4)
        state.params[:] = [0, 0, 0, bias]
        kernels.gradient(layout, state, rows, np.arange(4), 0, -1)
        assert np.isfinite(state.grad).all()
        assert state.work[-4:] == pytest.approx(expected)


def test_dropout_keeps_the_stated_share_and_the_mean():
    values = np.ones(40_000)
    kernels.dropout_in_place(values, 0.7, 3, 5, 1)
    # False alarm below 1e-6: five standard errors of a binomial share.
    assert abs((values > 0).mean() - 0.7) < 5 * np.sqrt(0.7 * 0.3 / 40_000)
    assert set(np.unique(values)) == {0.0, 1 / 0.7}
    again, other = np.ones(40_000), np.ones(40_000)
    kernels.dropout_in_place(again, 0.7, 3, 5, 1)
    kernels.dropout_in_place(other, 0.7, 3, 6, 1)
    assert (again == values).all()
    assert 0.3 < (other == values).mean() < 0.7


def test_dropped_units_get_no_gradient():
    spec = NetworkSpec((8,), keep=0.5)
    layout, state, rows = make(spec, n=1, batch=1)
    state.params[: 3 * 8] = np.abs(state.params[: 3 * 8])
    rows.X[:] = np.abs(rows.X)
    kernels.gradient(layout, state, rows, np.arange(1), 1, 0)
    hidden = state.work[3:11]
    incoming = np.abs(state.grad[: 3 * 8].reshape(3, 8)).sum(axis=0)
    assert 0 < (hidden == 0).sum() < 8
    np.testing.assert_array_equal(incoming == 0, hidden == 0)


def test_float32_follows_float64():
    paths = []
    for dtype in (np.float32, np.float64):
        layout, state, rows = make(MEAN, dtype=dtype)
        kernels.train_epoch(layout, state, rows, np.arange(37), 16, Adam(0.01, 0.9, 0.999, 1e-8, 0), 0)
        paths.append(state.params)
    np.testing.assert_allclose(paths[0], paths[1], atol=2e-5)


@pytest.mark.parametrize("spec", [*SPECS, NetworkSpec((8, 4), keep=0.8)], ids=str)
def test_an_epoch_allocates_nothing_a_batch(spec):
    memory = pytest.importorskip("numba.core.runtime._nrt_python")
    if numba.config.DISABLE_JIT or not hasattr(memory, "memsys_enable_stats"):
        # Plain Python allocates at every step: only compiled code has the property.
        pytest.skip("numba's runtime counts allocations, and it is off or of another version here")
    memory.memsys_enable_stats()
    layout, state, rows = make(spec, batch=4)
    counts = []
    for n in (4, 36):  # the first also compiles
        before = rtsys.get_allocation_stats().alloc
        kernels.train_epoch(layout, state, rows, np.arange(n), 4, Adam(0.01, 0.9, 0.999, 1e-8, 0), 0)
        counts.append(rtsys.get_allocation_stats().alloc - before)
    assert counts[0] >= counts[1] > 0  # what remains is the call's own handles of its arguments
    again = rtsys.get_allocation_stats().alloc
    kernels.train_epoch(layout, state, rows, np.arange(4), 4, Adam(0.01, 0.9, 0.999, 1e-8, 0), 0)
    assert rtsys.get_allocation_stats().alloc - again == counts[1]
