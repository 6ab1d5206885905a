"""Negative log score."""

from __future__ import annotations

from numpy.typing import ArrayLike

from boostplugins.metrics import _checks
from boostplugins.predictive import Predictive


def nll(y: ArrayLike, dist: Predictive, sample_weight: ArrayLike | None = None) -> float:
    """Average the negative log density (or probability) of observed responses.

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
        Nats a row with all constants, lower is better; inf where a response was impossible.

    Examples
    --------
    >>> from boostplugins import Predictive
    >>> from boostplugins.metrics import nll
    >>> round(nll([0.0], Predictive("normal", [[0.0, 1.0]])), 4)
    0.9189
    """
    y, weight = _checks.rows(y, dist, sample_weight)
    return _checks.mean(-dist.log_pdf(y), weight)
