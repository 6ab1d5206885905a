"""What a chain takes from all rows, gathered before the machines train on their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from boostplugins._validation import check_target, check_weight
from boostplugins.losses import SquaredError

if TYPE_CHECKING:
    from boostplugins.lightgbm.chain import CyclicalSGLB


def settle(chain: CyclicalSGLB, y: Any, sample_weight: Any = None) -> CyclicalSGLB:
    """Fix a chain's start value and loss.

    Parameters
    ----------
    chain : CyclicalSGLB
        The chain.
    y : dask collection or array-like of shape (n_samples,)
        Responses of all rows.
    sample_weight : dask collection or array-like of shape (n_samples,), optional
        Weights.

    Returns
    -------
    CyclicalSGLB
        A chain that needs no rows but its own machine's.

    Raises
    ------
    ValueError
        For a squared error without a noise variance.
    """
    if isinstance(chain.loss, SquaredError) and chain.loss.noise_variance is None:
        raise ValueError(
            "noise_variance must be given on several machines, which could not agree on an estimate; use "
            "SquaredError(noise_variance=...)"
        )
    labels = check_target(_gather(y))
    weight = check_weight(None if sample_weight is None else _gather(sample_weight), len(labels))
    chain.loss.check_labels(labels)
    settled = object.__new__(type(chain))
    vars(settled).update(vars(chain))
    settled.loss = chain.loss.ready(labels, weight)
    settled.start = tuple(float(value) for value in settled.loss.start(labels, weight))
    return settled


def _gather(column: Any) -> np.ndarray:
    if hasattr(column, "compute"):
        column = column.compute()
    return np.asarray(column)
