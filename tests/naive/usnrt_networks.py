"""Slow, obvious networks in numpy: forward, loss, gradient by hand, Adam, one row of layers at a time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np


def unpack(params, sizes):
    """Weights and biases of each layer."""
    layers, at = [], 0
    for below, above in pairwise(sizes):
        weights = params[at : at + below * above].reshape(below, above)
        at += below * above
        layers.append((weights, params[at : at + above]))
        at += above
    return layers


def outputs(params, sizes, X, activation, output, floor=0.0):
    """Activations of every layer, the output last."""
    values = [X]
    layers = unpack(params, sizes)
    for number, (weights, bias) in enumerate(layers):
        z = values[-1] @ weights + bias
        if number < len(layers) - 1:
            values.append(np.maximum(z, 0) if activation == "relu" else np.tanh(z))
        elif output == "softplus":
            values.append(np.logaddexp(0, z) + floor)
        else:
            values.append(z)
    return values


def loss(params, sizes, X, target, weight, activation, output, kind, floor=0.0):
    """Mean weighted loss."""
    value = outputs(params, sizes, X, activation, output, floor)[-1][:, 0]
    each = (value - target) ** 2 if kind == "squared" else np.log(value) + target / value
    return np.mean(weight * each)


def gradient(params, sizes, X, target, weight, activation, output, kind, floor=0.0, tilt=0.0):
    """Back-propagation, written out."""
    values = outputs(params, sizes, X, activation, output, floor)
    value = values[-1][:, 0]
    slope = 2 * (value - target) if kind == "squared" else (1 / value - target / value**2) * value**tilt
    if output == "softplus":
        slope = slope * (1 - np.exp(-(value - floor)))
    slope = (slope * weight / len(X))[:, None]
    layers = unpack(params, sizes)
    parts = []
    for number in range(len(layers) - 1, -1, -1):
        below = values[number]
        parts.append(np.concatenate([(below.T @ slope).ravel(), slope.sum(axis=0)]))
        if number:
            slope = slope @ layers[number][0].T
            slope = slope * (below > 0 if activation == "relu" else 1 - below**2)
    return np.concatenate(parts[::-1])


def adam(params, gradients, rate=0.01, beta1=0.9, beta2=0.999, epsilon=1e-8):
    """Adam's path through gradients given as a function of (params, step)."""
    first, second = np.zeros_like(params), np.zeros_like(params)
    params = params.copy()

    for step, each in enumerate(gradients, 1):
        g = each(params)
        first = beta1 * first + (1 - beta1) * g
        second = beta2 * second + (1 - beta2) * g**2
        corrected = first / (1 - beta1**step), second / (1 - beta2**step)
        params = params - rate * corrected[0] / (np.sqrt(corrected[1]) + epsilon)
    return params
