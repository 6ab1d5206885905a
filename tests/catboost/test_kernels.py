"""Compiled directions equal the losses' own formulas."""

import numpy as np
import pytest

from boostplugins.catboost.kernels import at_rows, in_order
from boostplugins.losses import Logistic, SquaredError


@pytest.mark.parametrize("loss", [SquaredError(0.49), Logistic()], ids=lambda loss: loss.name)
@pytest.mark.parametrize("stage", [0, 1])
def test_directions(loss, stage):
    rng = np.random.default_rng(4)
    n, first, size = 50, 7, 20
    table = rng.normal(size=(5, n))
    table[0] = rng.integers(0, 2, n)
    raw = rng.normal(size=size)
    labels = np.zeros((2, n), dtype=np.float32)
    rows = np.arange(first, first + size)
    label, gain, shift = table[:3, rows]
    expected = gain * loss.direction(label, (raw + shift)[:, None])[:, 0] + table[3 + stage, rows]
    out = np.empty((size, 2))
    bases = np.array([block.__array_interface__["data"][0] for block in labels])
    assert in_order(loss.kernel, raw, labels[stage, rows[0] : rows[-1] + 1], bases, table, out)
    np.testing.assert_allclose(out[:, 0], expected, atol=1e-12)
    again = np.empty((size, 2))
    at_rows(loss.kernel, raw, rows, stage, table, again)
    np.testing.assert_array_equal(out, again)


def test_a_block_that_lies_elsewhere_is_noticed():
    labels, other = np.zeros(30, dtype=np.float32), np.zeros(10, dtype=np.float32)
    bases = np.array([labels.__array_interface__["data"][0], -1])
    out = np.empty((10, 2))
    assert not in_order(0, np.zeros(10), other, bases, np.zeros((5, 30)), out)
    assert not in_order(0, np.zeros(10), labels[25:], bases, np.zeros((5, 20)), out)
