"""Reliability of predicted probabilities of an event, and their calibration error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from boostplugins._validation import check_integer, check_target, check_weight


@dataclass(frozen=True)
class Reliability:
    """Reliability table: one entry a bin of predicted probability.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Bin edges from 0 to 1; the last bin contains 1.
    count : ndarray of shape (n_bins,)
        Rows in each bin; they sum to n.
    weight : ndarray of shape (n_bins,)
        Sum of their weights.
    predicted, observed : ndarray of shape (n_bins,)
        Mean predicted probability and observed frequency; NaN in empty bins.
    """

    edges: np.ndarray
    count: np.ndarray
    weight: np.ndarray
    predicted: np.ndarray
    observed: np.ndarray


def reliability(
    y: ArrayLike, proba: ArrayLike, n_bins: int = 10, sample_weight: ArrayLike | None = None
) -> Reliability:
    """Compare predicted probabilities with observed frequencies, bin by bin.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Events, 0 or 1.
    proba : array-like of shape (n_samples,)
        Predicted probabilities in [0, 1], both ends included.
    n_bins : int, default=10
        Bins of equal width.
    sample_weight : array-like of shape (n_samples,), optional
        Weights.

    Returns
    -------
    Reliability
        The table.

    Raises
    ------
    ValueError
        For events other than 0 and 1 or probabilities outside [0, 1].

    Examples
    --------
    >>> from boostplugins.metrics import reliability
    >>> reliability([0, 1, 1, 1], [0.0, 1.0, 1.0, 0.5], n_bins=2).count
    array([1, 3])
    """
    n_bins = check_integer("n_bins", n_bins, 1)
    y, proba = check_target(y), check_target(proba, "proba")
    if len(y) != len(proba):
        raise ValueError(f"y and proba must have as many rows, got {len(y)} and {len(proba)}")
    if not np.isin(y, (0.0, 1.0)).all():
        raise ValueError(f"y must hold 0 and 1, got {y[~np.isin(y, (0.0, 1.0))][0]:g}")
    if (proba < 0).any() or (proba > 1).any():
        raise ValueError(f"proba must be in [0, 1], got values in [{proba.min():g}, {proba.max():g}]")
    weight = check_weight(sample_weight, len(y))
    weight = np.ones(len(y)) if weight is None else weight
    edges = np.arange(n_bins + 1) / n_bins  # 3 / 10 is the float 0.3, three times 1 / 10 is not
    place = np.clip(np.searchsorted(edges, proba, side="right") - 1, 0, n_bins - 1)
    mass = np.bincount(place, weight, n_bins)
    held = np.where(mass > 0, mass, np.nan)
    return Reliability(
        edges,
        np.bincount(place, minlength=n_bins),
        mass,
        np.bincount(place, weight * proba, n_bins) / held,
        np.bincount(place, weight * y, n_bins) / held,
    )


def class_ece(
    y: ArrayLike, proba: ArrayLike, n_bins: int = 10, sample_weight: ArrayLike | None = None
) -> float:
    """Expected calibration error of predicted probabilities.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Events, 0 or 1 (for several classes: whether the predicted one was right).
    proba : array-like of shape (n_samples,)
        Predicted probabilities in [0, 1].
    n_bins : int, default=10
        Bins of equal width.
    sample_weight : array-like of shape (n_samples,), optional
        Weights.

    Returns
    -------
    float
        Mean distance of frequency and probability over bins, weighted by their rows.

    Examples
    --------
    >>> from boostplugins.metrics import class_ece
    >>> round(class_ece([0, 1, 1, 1], [0.0, 1.0, 1.0, 0.5], n_bins=2), 6)
    0.125
    """
    table = reliability(y, proba, n_bins, sample_weight)
    filled = table.weight > 0
    gap = np.abs(table.observed - table.predicted)[filled]
    return float(np.average(gap, weights=table.weight[filled]))
