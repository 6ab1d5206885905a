"""Interval score."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from boostplugins._validation import check_real, check_target, check_weight
from boostplugins.metrics import _checks


def interval_score(
    y: ArrayLike, interval: ArrayLike, coverage: float = 0.9, sample_weight: ArrayLike | None = None
) -> float:
    r"""Average the interval score: width, and a penalty for responses outside.

    .. math:: (u - l) + \tfrac{2}{\alpha} (l - y)_+ + \tfrac{2}{\alpha} (y - u)_+,
              \quad \alpha = 1 - \text{coverage}

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Responses.
    interval : array-like of shape (n_samples, 2)
        Lower and upper ends.
    coverage : float, default=0.9
        Nominal coverage of the intervals, in (0, 1).
    sample_weight : array-like of shape (n_samples,), optional
        Weights.

    Returns
    -------
    float
        Score in units of the response, lower is better (Gneiting and Raftery, 2007, eq. 43).

    Examples
    --------
    >>> from boostplugins.metrics import interval_score
    >>> round(interval_score([0.0, 3.0], [[-1.0, 1.0], [0.0, 2.0]], coverage=0.9), 6)
    12.0
    """
    alpha = 1.0 - check_real("coverage", coverage, 0.0, 1.0, closed="neither")
    y = check_target(y)
    ends = check_interval(interval, len(y))
    low, high = ends[:, 0], ends[:, 1]
    outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return _checks.mean(high - low + 2.0 / alpha * outside, check_weight(sample_weight, len(y)))


def check_interval(interval: ArrayLike, n: int) -> np.ndarray:
    """Check intervals.

    Parameters
    ----------
    interval : array-like of shape (n_samples, 2)
        Lower and upper ends.
    n : int
        Number of rows.

    Returns
    -------
    ndarray of shape (n_samples, 2)
        The same, as float64.
    """
    ends = np.asarray(interval, dtype=np.float64)
    if ends.shape != (n, 2):
        raise ValueError(f"interval must have shape ({n}, 2), lower and upper end, got {ends.shape}")
    wrong = ~(ends[:, 0] <= ends[:, 1])
    if wrong.any():
        raise ValueError(
            f"interval must have lower <= upper, got {ends[wrong][0].tolist()} "
            f"({int(wrong.sum())} rows in all)"
        )
    return ends
