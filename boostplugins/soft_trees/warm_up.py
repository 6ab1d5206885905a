"""Compiling the kernels of soft trees ahead of the first fit."""

from __future__ import annotations

import numpy as np

from boostplugins.soft_trees.kernels import best_step, differentiate, evaluate


def warm_up() -> None:
    """Compile the passes over soft trees, so that no later fit pays for it.

    Compiled code is kept on disk where the package's folder, or numba's cache folder, can be
    written; an upgrade of the package or of numba makes it cold again.

    Examples
    --------
    >>> from boostplugins.soft_trees.warm_up import warm_up
    >>> warm_up()
    """
    gates, node = np.zeros((2, 1)), np.zeros(1, dtype=np.int64)
    beta, rows = np.zeros(3), np.zeros(2)
    evaluate(gates, node, beta, rows)
    differentiate(gates, node, beta, rows, np.zeros((2, 1)), np.zeros(3))
    best_step(rows, rows, rows, rows, rows, 0.0)
