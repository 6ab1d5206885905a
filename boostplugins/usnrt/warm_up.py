"""Compiling the kernels ahead of the first fit."""

from __future__ import annotations

import numpy as np

from boostplugins._validation import check_option
from boostplugins.usnrt.network import Training
from boostplugins.usnrt.pair import PairPlan, Sample, train_pair
from boostplugins.usnrt.splits import best_split


def warm_up(dtype: str = "float32") -> None:
    """Compile the networks and the scan of splits, so that no later fit pays for it.

    Compiled code is kept on disk where the package's folder, or numba's cache folder, can be
    written; an upgrade of the package or of numba makes it cold again.

    Parameters
    ----------
    dtype : {"float32", "float64"}, default="float32"
        Arithmetic of the networks.

    Examples
    --------
    >>> from boostplugins.usnrt.warm_up import warm_up
    >>> warm_up()
    """
    check_option("dtype", dtype, ("float32", "float64"))
    X = np.arange(16.0).reshape(8, 2)
    X[:, 1] = X[:, 0] % 4 // 2
    sample = Sample(*(part.astype(dtype) for part in (X, X[:, 0], np.ones(8))))
    rng = np.random.default_rng(0)
    train_pair(PairPlan((2,)), sample, np.arange(6), np.arange(6, 8), Training(1), rng)
    best_split(X, [0, 2], X[:, 0], 2)
