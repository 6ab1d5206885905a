"""Compiled chain gradients: loss, schedule, mask, weights and noise in one pass over the rows."""

from __future__ import annotations

import math

import numpy as np

from boostplugins._jit import njit

# Numbers of the compiled losses (`Loss.kernel`).
SQUARED_ERROR, LOGISTIC, SOFTMAX, NORMAL = 0, 1, 2, 3


@njit(error_model="numpy")
def one_output(kernel, sigma, raw, y, weight, gain, kept, offset, noise, size, out):  # type: ignore[no-untyped-def]
    """Write d = gain * w * mask * direction + sqrt(w) * size * sigma * zeta, and -w, for one raw score.

    Empty arrays stand for weights of 1, no mask, no offset, no noise. Squared error: direction
    y - F, noise of the size sigma; logistic: y - p, noise of unit size.
    """
    for i in range(len(y)):
        w = np.float64(weight[i]) if len(weight) else 1.0
        score = raw[i] + (offset[i] if len(offset) else 0.0)
        if kernel == SQUARED_ERROR:
            direction = np.float64(y[i]) - score
        else:
            direction = np.float64(y[i]) - 1.0 / (1.0 + math.exp(-score))
        d = gain * w * direction
        if len(kept) and not kept[i]:
            d = 0.0
        if len(noise):
            d += (math.sqrt(w) if len(weight) else 1.0) * size * sigma * noise[i]
        out[i, 0] = d
        out[i, 1] = -w
