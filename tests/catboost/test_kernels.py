"""Compiled directions equal the losses' own formulas."""

import numpy as np
import pytest

from boostplugins.catboost import kernels
from boostplugins.losses import Logistic, SquaredError
from boostplugins.noise import GROUP, normals

N, FIRST, SIZE = 2 * GROUP + 50, GROUP - 7, 90  # a block in two groups of rows
PLACE = np.array([2**40 + 5, 3], dtype=np.uint64)
ALPHA, COMMON, PULL, SIZES = 1.7, 0.2, 0.05, (0.4, 1.3)
FACTORS = (8.0, 1.0)
NUMBERS = np.array([ALPHA, COMMON, PULL, *SIZES, *FACTORS])


@pytest.fixture
def table():
    rng = np.random.default_rng(4)
    table = np.zeros((kernels.TABLE_ROWS, N))
    table[kernels.LABEL] = rng.integers(0, 2, N)
    table[kernels.WEIGHT] = rng.uniform(0.5, 2.0, N)
    table[kernels.ROOT] = np.sqrt(table[kernels.WEIGHT])
    table[kernels.GAIN] = table[kernels.WEIGHT] * rng.integers(0, 2, N)
    table[kernels.OFFSET] = rng.normal(size=N)
    return table


@pytest.mark.parametrize("loss", [SquaredError(0.49), Logistic()], ids=lambda loss: loss.name)
@pytest.mark.parametrize("stage", [0, 1])
def test_directions(loss, stage, table):
    raw = np.random.default_rng(5).normal(size=SIZE)
    rows = np.arange(FIRST, FIRST + SIZE)
    label, gain, offset, weight, root = table[:5, rows]
    noise = SIZES[stage] * root * normals(2**40 + 5, 3, stage, N)[rows] + weight * PULL
    step = loss.direction(label, (raw + COMMON + offset)[:, None])[:, 0]
    expected = (ALPHA * gain * step + noise) * FACTORS[stage]

    labels = np.zeros((2, N), dtype=np.float32)
    bases = np.array([block.__array_interface__["data"][0] for block in labels])
    made = np.full((2, 3), -1)
    block = labels[stage, rows[0] : rows[-1] + 1]
    out = kernels.in_order(loss.kernel, bases, PLACE, NUMBERS, table, made, raw, block, None)
    np.testing.assert_allclose(out[:, 0], expected, atol=1e-11)
    np.testing.assert_array_equal(out[:, 1], -1.0)
    assert made[stage].tolist() == [3, 3, -1]  # the last group was not asked for
    again = np.empty((SIZE, 2))
    kernels.at_rows(loss.kernel, NUMBERS, raw, rows, stage, table, again)
    np.testing.assert_array_equal(out, again)


def test_a_block_that_lies_elsewhere_is_noticed(table):
    labels, other = np.zeros(30, dtype=np.float32), np.zeros(10, dtype=np.float32)
    bases = np.array([labels.__array_interface__["data"][0], -1])
    made = np.full((2, 1), -1)
    for block, n in ((other, 30), (labels[25:], 20)):
        few = np.ascontiguousarray(table[:, :n])
        with pytest.raises(RuntimeError, match=r"moved the training rows.*loss\.pool"):
            kernels.in_order(0, bases, PLACE, NUMBERS, few, made, np.zeros(len(block)), block, None)
