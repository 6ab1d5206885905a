"""Compiled directions of a block of rows.

Everything about a row that does not depend on its raw score stands in one table, made for all rows
once an iteration: a call from CatBoost then costs little more than the call itself.
"""

from __future__ import annotations

import math

from boostplugins._jit import njit
from boostplugins.losses.kernels import SQUARED_ERROR

# Rows of the table: label, gain (schedule, weight, mask), shift of the raw score (random function),
# and the noise of the two passes, of full size.
LABEL, GAIN, SHIFT, STRUCTURE_NOISE, LEAF_NOISE = 0, 1, 2, 3, 4
TABLE_ROWS = 5
_FLOAT32 = 4  # bytes


@njit(error_model="numpy")
def in_order(kernel, raw, targets, bases, table, out):  # type: ignore[no-untyped-def]
    """Directions of a block whose address within CatBoost's array of labels tells its rows.

    False where the block lies in neither pass's array.
    """
    address = targets.ctypes.data
    for stage in range(2):
        first = (address - bases[stage]) // _FLOAT32
        if bases[stage] >= 0 and 0 <= first <= table.shape[1] - len(raw):
            for i in range(len(raw)):
                out[i, 0] = direction(kernel, raw[i], table, first + i, stage)
                out[i, 1] = -1.0
            return True
    return False


@njit(error_model="numpy")
def at_rows(kernel, raw, rows, stage, table, out):  # type: ignore[no-untyped-def]
    """Directions of given rows in one pass."""
    for i in range(len(raw)):
        out[i, 0] = direction(kernel, raw[i], table, rows[i], stage)
        out[i, 1] = -1.0


@njit(error_model="numpy", inline="always")
def direction(kernel, raw, table, row, stage):  # type: ignore[no-untyped-def]
    """Gain times (y - F) or (y - p), plus noise."""
    score = raw + table[SHIFT, row]
    expected = score if kernel == SQUARED_ERROR else 1.0 / (1.0 + math.exp(-score))
    return table[GAIN, row] * (table[LABEL, row] - expected) + table[STRUCTURE_NOISE + stage, row]
