"""Prediction rejection ratio."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from boostplugins._validation import check_target, check_weight


def prr(error: ArrayLike, uncertainty: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    r"""Prediction rejection ratio: how well an uncertainty ranks the errors.

    Rows are handed to an oracle, the most uncertain first; the area under the curve of remaining
    error against the share handed over is compared with random order (0) and with the order by
    error itself (1).

    .. math:: \frac{A_{random} - A_{uncertainty}}{A_{random} - A_{oracle}}

    Parameters
    ----------
    error : array-like of shape (n_samples,)
        Errors >= 0, such as squared errors, or 0 / 1 for classes.
    uncertainty : array-like of shape (n_samples,)
        Uncertainties; rows of equal uncertainty are handed over together, in random order.
    sample_weight : array-like of shape (n_samples,), optional
        Weights.

    Returns
    -------
    float
        At most 1, higher is better; NaN-free: 0 where all errors are equal.

    Raises
    ------
    ValueError
        For negative errors.

    Examples
    --------
    >>> from boostplugins.metrics import prr
    >>> prr([0.0, 1.0, 4.0], [0.1, 0.2, 0.3]), prr([0.0, 1.0, 4.0], [1.0, 1.0, 1.0])
    (1.0, 0.0)
    """
    error = check_target(error, "error")
    uncertainty = check_target(uncertainty, "uncertainty")
    if len(error) != len(uncertainty):
        raise ValueError(
            f"error and uncertainty must have as many rows, got {len(error)} and {len(uncertainty)}"
        )
    if (error < 0).any():
        raise ValueError(f"error must be >= 0, got {error.min():g}; square it or take its magnitude")
    weight = check_weight(sample_weight, len(error))
    weight = np.ones(len(error)) if weight is None else weight
    oracle = _gain(error, error, weight)
    return _gain(error, uncertainty, weight) / oracle if oracle > 0 else 0.0


def _gain(error: np.ndarray, by: np.ndarray, weight: np.ndarray) -> float:
    """Area between the random curve and the curve of an order, over the share handed over."""
    levels, group = np.unique(-by, return_inverse=True)
    mass = np.bincount(group, weight, len(levels))
    removed = np.bincount(group, weight * error, len(levels))
    if removed.sum() <= 0:
        return 0.0
    share = np.concatenate([[0.0], np.cumsum(mass)]) / mass.sum()
    taken = np.concatenate([[0.0], np.cumsum(removed)]) / removed.sum()
    area = 0.5 * ((taken[1:] + taken[:-1]) * np.diff(share)).sum() - 0.5
    return float(area) if abs(area) > 1e-14 else 0.0
