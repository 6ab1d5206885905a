"""Compiled directions of a block of rows.

Everything about a row that does not depend on its raw score stands in one table. What an iteration
adds to it is made for a group of rows when the first of them is asked for: no thread of CatBoost's
waits, spinning, for a table of all rows, and the kernel runs while it holds the interpreter, so that
no two threads make the same group.
"""

from __future__ import annotations

import math

import numpy as np

from boostplugins._jit import njit
from boostplugins.losses.kernels import SQUARED_ERROR
from boostplugins.noise import GROUP, fill

# Rows of the table: label, weight where the mask keeps the row and 0 elsewhere, random function,
# weight and its root; and the noise of the two passes, of full size, with the pull to the start.
LABEL, GAIN, OFFSET, WEIGHT, ROOT, STRUCTURE_NOISE, LEAF_NOISE = range(7)
TABLE_ROWS = 7
# Numbers of an iteration: gradient scale, common shift of the raw scores, pull to the start, sizes of
# the noise of the two passes, and the factors of what the two passes are told.
ALPHA, SHIFT, PULL, STRUCTURE_SIZE, LEAF_SIZE, STRUCTURE_FACTOR = range(6)
_FLOAT32 = 4  # bytes
MOVED = (
    "CatBoost moved the training rows, so that masks and noise would miss them; train on "
    "loss.pool(X, y, cat_features=..., sample_weight=...)"
)


@njit(error_model="numpy", nogil=False)
def in_order(kernel, bases, place, numbers, table, made, raw, targets, weights):  # type: ignore[no-untyped-def]
    """Directions of a block whose address within CatBoost's array of labels tells its rows.

    `place` holds the seed and the iteration, `bases` the addresses of the passes' arrays of labels,
    `made` the iteration that each group's noise of each pass stands at. The weights are known.
    """
    address = targets.ctypes.data
    for stage in range(2):
        first = (address - bases[stage]) // _FLOAT32
        if bases[stage] >= 0 and 0 <= first <= table.shape[1] - len(raw):
            end = first + len(raw)
            make_groups(first // GROUP, -(-end // GROUP), stage, place, numbers, table, made)
            out = np.empty((len(raw), 2))
            block = table[:, first:end]
            directions(kernel, numbers, raw, block[LABEL], block[GAIN], block[OFFSET], out)
            add(block[STRUCTURE_NOISE + stage], numbers[STRUCTURE_FACTOR + stage], out)
            return out
    raise RuntimeError(MOVED)


@njit(error_model="numpy")
def make_groups(start, stop, stage, place, numbers, table, made):  # type: ignore[no-untyped-def]
    """Make the noise of groups of rows for one pass, where it does not stand yet."""
    zeta = np.zeros(GROUP)
    for group in range(start, stop):
        if made[stage, group] != np.int64(place[1]):
            rows = table[:, group * GROUP : (group + 1) * GROUP]
            weight, root, noise = rows[WEIGHT], rows[ROOT], rows[STRUCTURE_NOISE + stage]
            size, pull = numbers[STRUCTURE_SIZE + stage], numbers[PULL]
            if size > 0.0:
                counter = (np.uint64(stage) << np.uint64(16), place[1])
                key = (place[0] & np.uint64(0xFFFFFFFF), place[0] >> np.uint64(32))
                fill(zeta, np.uint64(group), counter, key, True)
            for i in range(len(noise)):
                noise[i] = zeta[i] * size * root[i] + weight[i] * pull
            made[stage, group] = np.int64(place[1])


@njit(error_model="numpy")
def at_rows(kernel, numbers, raw, rows, stage, table, out):  # type: ignore[no-untyped-def]
    """Directions of given rows in one pass."""
    directions(kernel, numbers, raw, table[LABEL][rows], table[GAIN][rows], table[OFFSET][rows], out)
    add(table[STRUCTURE_NOISE + stage][rows], numbers[STRUCTURE_FACTOR + stage], out)


@njit(error_model="numpy")
def directions(kernel, numbers, raw, label, gain, offset, out):  # type: ignore[no-untyped-def]
    """Gain times (y - F) or (y - p); second derivatives of -1."""
    alpha, shift = numbers[ALPHA], numbers[SHIFT]
    if kernel == SQUARED_ERROR:
        for i in range(len(raw)):
            out[i, 0] = alpha * gain[i] * (label[i] - (raw[i] + shift + offset[i]))
            out[i, 1] = -1.0
    else:
        for i in range(len(raw)):
            score = raw[i] + shift + offset[i]
            out[i, 0] = alpha * gain[i] * (label[i] - 1.0 / (1.0 + math.exp(-score)))
            out[i, 1] = -1.0


@njit(error_model="numpy")
def add(noise, factor, out):  # type: ignore[no-untyped-def]
    """Add the noise of a block to its directions; both in the unit of the pass."""
    for i in range(len(noise)):
        out[i, 0] = (out[i, 0] + noise[i]) * factor
