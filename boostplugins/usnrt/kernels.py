"""Compiled passes of small fully connected networks: forward, backward, Adam, one epoch.

A network is flat vectors and small integers, so that one epoch is one compiled call without
allocation: ``params`` holds, layer by layer, the weights (n_in, n_out) row by row and then the
biases; ``work`` and ``delta`` hold a block of activations and their derivatives, layer by layer.

Matrix products go to BLAS through `numpy.dot`, three times as fast at these sizes as loops that
the compiler vectorises.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from boostplugins._jit import njit

SQUARED, GAUSSIAN_VARIANCE = 0, 1  # losses
RELU, TANH = 0, 1  # hidden activations
LINEAR, SOFTPLUS = 0, 1  # outputs


class Layout(NamedTuple):
    """What a network computes.

    Attributes
    ----------
    sizes : ndarray of int64
        Units of each layer, inputs first, one output last.
    hidden : int
        RELU or TANH.
    output : int
        LINEAR or SOFTPLUS.
    floor : float
        Added to a softplus output, so that a variance stays away from zero.
    keep : float
        Chance that a hidden unit stays in training; 1 means no dropout.
    loss : int
        SQUARED, or GAUSSIAN_VARIANCE: the output is a variance, the target a squared residual.
    tilt : float
        Power of the variance by which its gradients are multiplied (beta-NLL); 0 is plain likelihood.
    """

    sizes: np.ndarray
    hidden: int
    output: int
    floor: float
    keep: float
    loss: int
    tilt: float


class State(NamedTuple):
    """What training changes: parameters, gradient, Adam's two moments, and two work vectors."""

    params: np.ndarray
    grad: np.ndarray
    first: np.ndarray
    second: np.ndarray
    work: np.ndarray
    delta: np.ndarray


class Rows(NamedTuple):
    """Training rows: features (n, d), targets (n,), weights (n,)."""

    X: np.ndarray
    target: np.ndarray
    weight: np.ndarray


class Adam(NamedTuple):
    """Adam's constants and the number of steps taken before this epoch."""

    rate: float
    beta1: float
    beta2: float
    epsilon: float
    taken: int


@njit(fastmath={"contract"}, error_model="numpy")
def tanh_in_place(values):  # type: ignore[no-untyped-def]
    """Replace values by tanh: e / (e + 2) with e = expm1(2 |x|), then the sign.

    With t = |x| / 32, expm1(t) is a Taylor series and expm1(2 t) = e (e + 2) doubles it six times:
    no branches, so that the compiler vectorises what it would otherwise call a function for.
    """
    kind = values.dtype.type
    one, two, limit, part = kind(1), kind(2), kind(20), kind(1.0 / 32.0)
    c2, c3, c4, c5, c6, c7 = kind(1 / 2), kind(1 / 3), kind(1 / 4), kind(1 / 5), kind(1 / 6), kind(1 / 7)
    c8, c9, c10, c11, c12, c13 = (
        kind(1 / 8),
        kind(1 / 9),
        kind(1 / 10),
        kind(1 / 11),
        kind(1 / 12),
        kind(1 / 13),
    )
    double = values.itemsize == 8
    for i in range(values.size):
        x = values[i]
        # tanh(20) is 1 in float64; the cut keeps the doublings finite. NaN passes through.
        t = (limit if abs(x) > limit else abs(x)) * part
        e = one
        if double:
            e = one + t * c10 * (one + t * c11 * (one + t * c12 * (one + t * c13)))
        e = one + t * c6 * (one + t * c7 * (one + t * c8 * (one + t * c9 * e)))
        e = t * (one + t * c2 * (one + t * c3 * (one + t * c4 * (one + t * c5 * e))))
        for _ in range(6):
            e = e * (e + two)
        value = e / (e + two)
        values[i] = -value if x < 0 else value


@njit(error_model="numpy")
def dropout_in_place(values, keep, seed, step, layer):  # type: ignore[no-untyped-def]
    """Zero values with chance 1 - keep and scale the rest; a hash of the counters decides."""
    scale = values.dtype.type(1.0 / keep)
    limit = np.uint64(keep * 9007199254740992.0)  # keep * 2**53
    base = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(step) * np.uint64(0xD1B54A32D192ED03)
    base += np.uint64(layer) << np.uint64(56)
    for i in range(values.size):
        z = base + np.uint64(i) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
        values[i] = values[i] * scale if (z >> np.uint64(11)) < limit else values.dtype.type(0)


@njit(fastmath={"contract"}, error_model="numpy")
def forward(layout, params, work, m, seed, step):  # type: ignore[no-untyped-def]
    """Fill `work` from its inputs (the first m rows); step < 0 means no dropout.

    Returns the place of the m outputs in `work`.
    """
    sizes = layout.sizes
    at, place = 0, 0
    block = work.size // sizes.sum()
    last = len(sizes) - 2
    for layer in range(last + 1):
        n_in, n_out = sizes[layer], sizes[layer + 1]
        below = work[place : place + m * n_in].reshape(m, n_in)
        place += block * n_in
        flat = work[place : place + m * n_out]
        above = flat.reshape(m, n_out)
        np.dot(below, params[at : at + n_in * n_out].reshape(n_in, n_out), above)
        at += n_in * n_out
        bias = params[at : at + n_out]
        at += n_out
        ramp = layer < last and layout.hidden == RELU
        for i in range(m):
            for j in range(n_out):
                z = above[i, j] + bias[j]
                above[i, j] = flat.dtype.type(0) if ramp and z < 0 else z
        if layer < last:
            if layout.hidden == TANH:
                tanh_in_place(flat)
            if layout.keep < 1.0 and step >= 0:
                dropout_in_place(flat, layout.keep, seed, step, layer)
    if layout.output == SOFTPLUS:
        for i in range(place, place + m):
            z = work[i]
            work[i] = max(z, work.dtype.type(0)) + np.log1p(np.exp(-abs(z))) + work.dtype.type(layout.floor)
    return place


@njit(error_model="numpy")
def output_slope(layout, value, target, weight):  # type: ignore[no-untyped-def]
    """Derivative of one row's loss to the output before its softplus."""
    if layout.loss == SQUARED:
        slope = 2.0 * (value - target) * weight
    else:
        slope = (1.0 - target / value) / value * weight
        if layout.tilt != 0.0:
            slope *= value**layout.tilt
    if layout.output == SOFTPLUS:
        slope *= -np.expm1(layout.floor - value)  # sigmoid(z) = 1 - exp(-softplus(z))
    return slope


@njit(error_model="numpy")
def row_loss(layout, value, target):  # type: ignore[no-untyped-def]
    """Loss of one row: squared error, or log v + r^2 / v."""
    if layout.loss == SQUARED:
        return (value - target) * (value - target)
    return np.log(value) + target / value


@njit(fastmath={"contract"}, error_model="numpy")
def backward(layout, state, m):  # type: ignore[no-untyped-def]
    """Fill `grad` from the output slopes in the last part of `delta` and the activations in `work`."""
    sizes = layout.sizes
    block = state.work.size // sizes.sum()
    top = len(sizes) - 1
    at, place = state.params.size, state.work.size
    place -= block * sizes[top]
    scale = state.work.dtype.type(1.0 / layout.keep)
    for layer in range(top, 0, -1):
        n_in, n_out = sizes[layer - 1], sizes[layer]
        above = state.delta[place : place + m * n_out].reshape(m, n_out)
        place -= block * n_in
        flat = state.work[place : place + m * n_in]
        below = flat.reshape(m, n_in)
        at -= n_out
        bias = state.grad[at : at + n_out]
        bias[:] = 0
        for i in range(m):
            for j in range(n_out):
                bias[j] += above[i, j]
        at -= n_in * n_out
        np.dot(below.T, above, state.grad[at : at + n_in * n_out].reshape(n_in, n_out))
        if layer > 1:
            slope = state.delta[place : place + m * n_in]
            weights = state.params[at : at + n_in * n_out].reshape(n_in, n_out)
            np.dot(above, weights.T, slope.reshape(m, n_in))
            if layout.hidden == RELU:  # a dropped unit is 0 as well, so its slope goes too
                for i in range(m * n_in):
                    slope[i] = slope[i] * scale if flat[i] > 0 else state.work.dtype.type(0)
            else:
                for i in range(m * n_in):
                    slope[i] *= 1 - flat[i] * flat[i]


@njit(fastmath={"contract"}, error_model="numpy")
def adam_step(state, adam, step):  # type: ignore[no-untyped-def]
    """Move the parameters by one Adam step; step counts from 1 (Kingma and Ba, 2015, algorithm 1)."""
    kind = state.params.dtype.type
    b1, b2 = kind(adam.beta1), kind(adam.beta2)
    c1, c2 = kind(1.0 - adam.beta1), kind(1.0 - adam.beta2)
    rate = kind(adam.rate / (1.0 - adam.beta1**step))
    root = kind(1.0 / np.sqrt(1.0 - adam.beta2**step))
    epsilon = kind(adam.epsilon)
    params, first, second, grad = state.params, state.first, state.second, state.grad
    for i in range(params.size):
        g = grad[i]
        a = b1 * first[i] + c1 * g
        b = b2 * second[i] + c2 * g * g
        first[i] = a
        second[i] = b
        params[i] -= rate * a / (np.sqrt(b) * root + epsilon)


@njit(error_model="numpy")
def gradient(layout, state, rows, picked, seed, step):  # type: ignore[no-untyped-def]
    """Gradient of the mean loss of the picked rows, into `state.grad`."""
    m, d = len(picked), rows.X.shape[1]
    for i in range(m):
        row = rows.X[picked[i]]
        for j in range(d):
            state.work[i * d + j] = row[j]
    place = forward(layout, state.params, state.work, m, seed, step)
    for i in range(m):
        r = picked[i]
        slope = output_slope(layout, state.work[place + i], rows.target[r], rows.weight[r])
        state.delta[place + i] = slope / m
    backward(layout, state, m)


@njit(error_model="numpy")
def train_epoch(layout, state, rows, order, batch_size, adam, seed):  # type: ignore[no-untyped-def]
    """Pass once over the rows in the given order, one Adam step a mini-batch; return the steps."""
    step = adam.taken
    for start in range(0, len(order), batch_size):
        gradient(layout, state, rows, order[start : start + batch_size], seed, step)
        step += 1
        adam_step(state, adam, step)
    return step


@njit(error_model="numpy")
def predict_into(layout, params, work, X, out):  # type: ignore[no-untyped-def]
    """Outputs of all rows of X, a full block at a time, so that a row's value has one computation."""
    n, d = X.shape
    block = work.size // layout.sizes.sum()
    for start in range(0, n, block):
        m = min(block, n - start)
        for i in range(m):
            for j in range(d):
                work[i * d + j] = X[start + i, j]
        work[m * d : block * d] = 0  # idle rows of the last block
        place = forward(layout, params, work, block, 0, -1)
        out[start : start + m] = work[place : place + m]


@njit(error_model="numpy")
def mean_loss(layout, out, rows):  # type: ignore[no-untyped-def]
    """Weighted mean loss of outputs already computed, in float64."""
    total, weight = 0.0, 0.0
    for i in range(len(out)):
        value, target = np.float64(out[i]), np.float64(rows.target[i])
        total += rows.weight[i] * row_loss(layout, value, target)
        weight += rows.weight[i]
    return total / weight
