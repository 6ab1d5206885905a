"""One factor for the variances of a pair of networks, from rows that their gradients never saw."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

CALIBRATIONS = (None, "scale", "coverage")
# Fewer held-out rows than this cannot tell a scale from chance.
LEAST_ROWS = 20
_LEVELS = ndtri(np.arange(1, 100) / 100.0)
# Widest and narrowest correction of a standard deviation, and the steps of its search.
_FACTORS = np.exp(np.linspace(np.log(1e-3), np.log(1e3), 691))


def variance_factor(kind: str | None, residual: np.ndarray, variance: np.ndarray) -> float:
    """Find the factor by which to multiply variances.

    Parameters
    ----------
    kind : {None, "scale", "coverage"}
        None: 1. "scale": the mean of squared residual / variance, which maximises the Gaussian
        likelihood. "coverage": the factor with the least error of the 99 percentiles (ECE), for
        residuals with heavier tails than the Normal's.
    residual, variance : ndarray of shape (n_samples,)
        Held-out residuals and predicted variances; fewer than 20 give 1.

    Returns
    -------
    float
        Factor in [1e-6, 1e6].

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.usnrt.calibration import variance_factor
    >>> residual = 2 * np.random.default_rng(0).normal(size=4000)
    >>> [round(variance_factor(kind, residual, np.ones(4000))) for kind in ("scale", "coverage")]
    [4, 4]
    """
    if kind is None or len(residual) < LEAST_ROWS:
        return 1.0
    standard = np.sort(residual / np.sqrt(variance))
    if kind == "scale":
        return float(np.clip(np.mean(standard**2), 1e-6, 1e6))
    below = np.searchsorted(standard, _FACTORS[:, None] * _LEVELS) / len(standard)
    error = np.abs(below - np.arange(1, 100) / 100.0).mean(axis=1)
    # Among equals (no row near zero tells narrow factors apart) the one nearest to 1.
    best = np.flatnonzero(error <= error.min() + 1e-12)
    return float(_FACTORS[best[np.argmin(np.abs(np.log(_FACTORS[best])))]] ** 2)
