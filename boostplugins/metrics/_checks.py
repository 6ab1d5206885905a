"""Argument checks that all metrics share."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from boostplugins._validation import check_target, check_weight
from boostplugins.predictive import Predictive


def rows(
    y: ArrayLike, dist: Predictive, sample_weight: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Check responses and weights against a predictive distribution.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Responses.
    dist : Predictive
        Predictions of the same rows.
    sample_weight : array-like of shape (n_samples,) or None
        Weights.

    Returns
    -------
    tuple of ndarray
        Both, as float64.
    """
    if not hasattr(dist, "log_pdf"):
        raise TypeError(f"dist must be a Predictive, got {type(dist).__name__}; see predict_dist")
    values = check_target(y)
    if len(values) != len(dist):
        raise ValueError(f"y and dist must have as many rows, got {len(values)} and {len(dist)}")
    return values, check_weight(sample_weight, len(values))


def mean(values: np.ndarray, weight: np.ndarray | None) -> float:
    """Weighted mean that refuses NaN and never multiplies 0 by infinity.

    Parameters
    ----------
    values : ndarray of shape (n_samples,)
        Scores.
    weight : ndarray of shape (n_samples,) or None
        Weights.

    Returns
    -------
    float
        Mean; inf where a row of positive weight scores inf.
    """
    if weight is not None:
        values, weight = values[weight > 0], weight[weight > 0]
    if np.isnan(values).any():
        raise ValueError(f"a score is NaN in {int(np.isnan(values).sum())} rows; check the predictions")
    return float(np.average(values, weights=weight))
