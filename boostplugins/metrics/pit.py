"""Probability integral transform."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from boostplugins.metrics import _checks
from boostplugins.predictive import Predictive


def pit(y: ArrayLike, dist: Predictive, random_state: int | np.random.Generator | None = 0) -> np.ndarray:
    """Predicted probability of a response at most the observed one.

    Uniform on (0, 1) where the predictions are right. A point mass at the response is spread
    evenly at random over its step, so that this holds for counts and censored responses too.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Responses.
    dist : Predictive
        Predictions.
    random_state : int, Generator or None, default=0
        Seed of that randomisation.

    Returns
    -------
    ndarray of shape (n_samples,)
        Values in [0, 1].

    Examples
    --------
    >>> from boostplugins import Predictive
    >>> from boostplugins.metrics import pit
    >>> pit([0.0], Predictive("normal", [[0.0, 1.0]]))
    array([0.5])
    """
    y, _ = _checks.rows(y, dist, None)
    upper = dist.cdf(y)
    lower = dist.cdf(np.nextafter(y, -np.inf)) if not dist.family.discrete else dist.cdf(y - 1.0)
    jump = upper - lower
    # Steps of rounding size are no mass; leaving them alone keeps continuous families exact.
    mass = jump > 1e-9
    if not mass.any():
        return upper
    u = np.random.default_rng(random_state).random(len(y))
    return np.clip(np.where(mass, lower + u * jump, upper), 0.0, 1.0)
