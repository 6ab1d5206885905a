"""Area under the ROC curve of out-of-distribution detection."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from boostplugins._validation import check_target, check_weight


def ood_auc(
    inside: ArrayLike,
    outside: ArrayLike,
    inside_weight: ArrayLike | None = None,
    outside_weight: ArrayLike | None = None,
) -> float:
    """Probability that a foreign row is more uncertain than a familiar one.

    Parameters
    ----------
    inside : array-like of shape (n_inside,)
        Uncertainties of rows like the training data.
    outside : array-like of shape (n_outside,)
        Uncertainties of foreign rows.
    inside_weight, outside_weight : array-like, optional
        Weights of the rows.

    Returns
    -------
    float
        Area in [0, 1], higher is better; 0.5 is chance. Ties count half.

    Examples
    --------
    >>> from boostplugins.metrics import ood_auc
    >>> ood_auc([0.1, 0.2], [0.2, 0.9])
    0.875
    """
    low, high = check_target(inside, "inside"), check_target(outside, "outside")
    low_weight = check_weight(inside_weight, len(low), "inside_weight")
    high_weight = check_weight(outside_weight, len(high), "outside_weight")
    low_weight = np.ones(len(low)) if low_weight is None else low_weight
    high_weight = np.ones(len(high)) if high_weight is None else high_weight
    levels, group = np.unique(np.concatenate([low, high]), return_inverse=True)
    below = np.bincount(group[: len(low)], low_weight, len(levels)) / low_weight.sum()
    above = np.bincount(group[len(low) :], high_weight, len(levels)) / high_weight.sum()
    return float(np.clip(above @ (np.cumsum(below) - 0.5 * below), 0.0, 1.0))
