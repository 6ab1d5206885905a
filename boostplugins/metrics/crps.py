"""Continuous ranked probability score, of distributions and of ensembles of draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from boostplugins._validation import check_option, check_target, check_weight
from boostplugins.metrics import _checks
from boostplugins.predictive import Predictive


def crps(y: ArrayLike, dist: Predictive, sample_weight: ArrayLike | None = None) -> float:
    """Average the CRPS of observed responses.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Responses.
    dist : Predictive
        Predictions.
    sample_weight : array-like of shape (n_samples,), optional
        Weights.

    Returns
    -------
    float
        Score in units of the response, lower is better; the absolute error of a point forecast.

    Examples
    --------
    >>> from boostplugins import Predictive
    >>> from boostplugins.metrics import crps
    >>> round(crps([0.0], Predictive("normal", [[0.0, 1.0]])), 4)
    0.2337
    """
    y, weight = _checks.rows(y, dist, sample_weight)
    return _checks.mean(dist.crps(y), weight)


def crps_ensemble(
    y: ArrayLike,
    members: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    estimator: str = "plain",
    nan: str = "raise",
) -> float:
    r"""Average the CRPS of ensembles of draws.

    .. math:: \frac1m \sum_i |x_i - y| - \frac{1}{2 d} \sum_{i,j} |x_i - x_j|

    Parameters
    ----------
    y : array-like of shape (n_samples,) or float
        Responses.
    members : array-like of shape (n_samples, n_members)
        Draws.
    sample_weight : array-like of shape (n_samples,), optional
        Weights.
    estimator : {"plain", "fair"}, default="plain"
        "plain" scores the ensemble as the distribution it is, d = m**2; "fair" scores the
        distribution that the members were drawn from, d = m (m - 1), and needs two members.
    nan : {"raise", "skip"}, default="raise"
        What to do with missing members.

    Returns
    -------
    float
        Score in units of the response, lower is better.

    Raises
    ------
    ValueError
        For missing members, unless skipped; for rows with too few members.

    Examples
    --------
    >>> from boostplugins.metrics import crps_ensemble
    >>> crps_ensemble([0.0], [[1.0, 3.0]]), crps_ensemble([0.0], [[1.0, 3.0]], estimator="fair")
    (1.5, 1.0)
    """
    check_option("estimator", estimator, ("plain", "fair"))
    check_option("nan", nan, ("raise", "skip"))
    draws = np.atleast_2d(np.asarray(members, dtype=np.float64))
    if draws.ndim != 2:
        raise ValueError(f"members must have shape (n_samples, n_members), got {draws.shape}")
    y = check_target(np.atleast_1d(np.asarray(y)))
    if len(y) != len(draws):
        raise ValueError(f"y and members must have as many rows, got {len(y)} and {len(draws)}")
    missing = np.isnan(draws)
    if missing.any() and nan == "raise":
        raise ValueError(
            f"members must not be NaN, got {int(missing.sum())}; pass nan='skip' to leave them out"
        )
    count = (~missing).sum(axis=1)
    least = 2 if estimator == "fair" else 1
    if (count < least).any():
        raise ValueError(
            f"estimator={estimator!r} needs at least {least} members a row, got {int(count.min())}"
        )
    ordered = np.sort(draws, axis=1)  # missing ones last
    rank = np.arange(draws.shape[1])
    # sum_{i,j} |x_i - x_j| = 2 sum_i (2 i - m + 1) x_(i), centred on the median to keep the digits.
    centre = np.take_along_axis(ordered, (count // 2)[:, None], axis=1)
    pairs = 2.0 * np.where(
        rank < count[:, None], (2 * rank - count[:, None] + 1) * (ordered - centre), 0.0
    ).sum(axis=1)
    near = np.where(missing, 0.0, np.abs(draws - y[:, None])).sum(axis=1) / count
    divisor = count * (count - 1.0) if estimator == "fair" else count**2.0
    return _checks.mean(near - 0.5 * pairs / divisor, check_weight(sample_weight, len(y)))
