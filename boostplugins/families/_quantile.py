"""Weighted quantiles of a sample."""

from __future__ import annotations

import numpy as np


def weighted_quantile(y: np.ndarray, weight: np.ndarray, q: float) -> float:
    """Quantile of weighted values, the middle of a tie.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Values.
    weight : ndarray of shape (n_samples,)
        Weights.
    q : float
        Probability.

    Returns
    -------
    float
        Quantile; whole weights count as repeated values.
    """
    order = np.argsort(y, kind="stable")
    order = order[weight[order] > 0]
    total = np.cumsum(weight[order])
    left = np.searchsorted(total, q * total[-1] * (1 - 1e-12), side="left")
    right = np.searchsorted(total, q * total[-1] * (1 + 1e-12), side="right")
    last = len(order) - 1
    return float(0.5 * (y[order[min(left, last)]] + y[order[min(right, last)]]))
