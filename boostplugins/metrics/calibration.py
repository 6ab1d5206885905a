"""Calibration of predicted quantiles: coverage, ECE, TCE and sharpness."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from boostplugins._validation import check_target, check_weight
from boostplugins.metrics import _checks
from boostplugins.metrics.interval_score import check_interval
from boostplugins.predictive import Predictive

_LEVELS = np.arange(1, 100) / 100.0
_TAILS = (0.05, 0.10, 0.15, 0.20)


def coverage(y: ArrayLike, interval: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Share of responses inside their intervals, ends included.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Responses.
    interval : array-like of shape (n_samples, 2)
        Lower and upper ends.
    sample_weight : array-like of shape (n_samples,), optional
        Weights.

    Returns
    -------
    float
        Share in [0, 1]; best at the nominal coverage.

    Examples
    --------
    >>> from boostplugins.metrics import coverage
    >>> coverage([0.0, 3.0], [[-1.0, 1.0], [0.0, 2.0]])
    0.5
    """
    y = check_target(y)
    ends = check_interval(interval, len(y))
    inside = (ends[:, 0] <= y) & (y <= ends[:, 1])
    return _checks.mean(inside.astype(np.float64), check_weight(sample_weight, len(y)))


def ece(y: ArrayLike, dist: Predictive, sample_weight: ArrayLike | None = None) -> float:
    r"""Expected calibration error of the 99 percentiles.

    .. math:: \frac{1}{99} \sum_{k=1}^{99} \left| \frac1n \sum_i 1\{y_i < q_i(\tau_k)\} - \tau_k \right|

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
        Error in [0, 1], lower is better (as in the USNRT paper, there multiplied by 100).

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins import Predictive
    >>> from boostplugins.metrics import ece
    >>> dist = Predictive("normal", np.tile([0.0, 1.0], (1000, 1)))
    >>> ece(np.random.default_rng(0).normal(size=1000), dist) < 0.03
    True
    """
    y, weight = _checks.rows(y, dist, sample_weight)
    # y < q(tau) just where F(y) < tau, and one cdf costs less than 99 quantiles.
    return percentile_error(dist.cdf(y), weight)


def percentile_error(u: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Mean distance of 99 levels from the shares of probabilities below them.

    Parameters
    ----------
    u : ndarray of shape (n_samples,)
        Predicted probability below each response.
    weight : ndarray of shape (n_samples,), optional
        Weights.

    Returns
    -------
    float
        Error in [0, 1].
    """
    below = [_checks.mean((u < tau).astype(np.float64), weight) for tau in _LEVELS]
    return float(np.abs(np.array(below) - _LEVELS).mean())


def tce(y: ArrayLike, dist: Predictive, sample_weight: ArrayLike | None = None) -> float:
    r"""Tail calibration error: how far central intervals are from their coverage.

    Mean over tails 0.05, 0.10, 0.15, 0.20 of the distance between the share of responses in
    :math:`(q(\tau), q(1 - \tau))` and :math:`1 - 2\tau`.

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
        Error in [0, 1], lower is better (as in the USNRT paper, there multiplied by 100).

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins import Predictive
    >>> from boostplugins.metrics import tce
    >>> dist = Predictive("normal", np.tile([0.0, 1.0], (4, 1)))
    >>> round(tce(np.zeros(4), dist), 6)
    0.25
    """
    y, weight = _checks.rows(y, dist, sample_weight)
    errors = []
    for tail in _TAILS:
        inside = (dist.ppf(tail) < y) & (y < dist.ppf(1.0 - tail))
        errors.append(abs(_checks.mean(inside.astype(np.float64), weight) - (1.0 - 2.0 * tail)))
    return float(np.mean(errors))


def sharpness(dist: Predictive, sample_weight: ArrayLike | None = None) -> float:
    r"""Mean width of central intervals, :math:`q(1 - \tau) - q(\tau)` over tau = 0.01 ... 0.49.

    Parameters
    ----------
    dist : Predictive
        Predictions.
    sample_weight : array-like of shape (n_samples,), optional
        Weights.

    Returns
    -------
    float
        Width in units of the response; lower is sharper, and better only where calibrated.

    Examples
    --------
    >>> from boostplugins import Predictive
    >>> from boostplugins.metrics import sharpness
    >>> round(sharpness(Predictive("normal", [[0.0, 1.0]])), 4)
    1.5682
    """
    weight = check_weight(sample_weight, len(dist))
    widths = [dist.ppf(1.0 - tail) - dist.ppf(tail) for tail in _LEVELS[:49]]
    return _checks.mean(np.mean(widths, axis=0), weight)
