"""What held-out rows say about the errors of a pair of networks, which their gradients never saw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

CALIBRATIONS = (None, "scale", "coverage", "shape")
# Fewer held-out rows than this cannot tell a scale from chance.
LEAST_ROWS = 20
GROUPS = 20  # Normals that make up a shape
_LEVELS = ndtri(np.arange(1, 100) / 100.0)
# Widest and narrowest correction of a standard deviation, and the steps of its search.
_FACTORS = np.exp(np.linspace(np.log(1e-3), np.log(1e3), 691))
_POINTS = 10  # quantiles within a group
# Least width of the kernel, as a share of the spread of all: ties are no certainty.
_LEAST_WIDTH = 1e-3


@dataclass(frozen=True)
class Correction:
    """How errors differ from Normals of the predicted variance.

    Parameters
    ----------
    factor : float, default=1.0
        What multiplies variances.
    shape : ndarray of shape (2, n_groups), optional
        Means and standard deviations of equally likely Normals that the error divided by its
        predicted standard deviation follows; by default a standard Normal.
    """

    factor: float = 1.0
    shape: np.ndarray | None = None


def correct(kind: str | None, residual: np.ndarray, variance: np.ndarray) -> Correction:
    """Find the correction of a pair of networks.

    Parameters
    ----------
    kind : {None, "scale", "coverage", "shape"}
        Kind of calibration: none, a factor (see `variance_factor`) or a shape (see `error_shape`).
    residual, variance : ndarray of shape (n_samples,)
        Held-out residuals and predicted variances; fewer than 20 correct nothing.

    Returns
    -------
    Correction
        The correction.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.usnrt.calibration import correct
    >>> residual = np.random.default_rng(0).exponential(size=4000) - 1.0
    >>> bool(correct("shape", residual, np.ones(4000)).shape[0, 0] > -1.0)
    True
    """
    if len(residual) < LEAST_ROWS:
        return Correction()
    if kind == "shape":
        return Correction(shape=error_shape(residual, variance))
    return Correction(variance_factor(kind, residual, variance))


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


def error_shape(residual: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Describe standardised errors by equally likely Normals, one for each twentieth of them.

    Skewness, peaks and heavy tails are kept, as the quantile recalibration of Kuleshov, Fenner and
    Ermon (2018) keeps them, with a density as well: a kernel of half of Silverman's width smooths it,
    while the variance stays. A mean other than 0 moves the prediction: means trained by likelihood
    lean to the quiet side of skewed responses.

    Parameters
    ----------
    residual, variance : ndarray of shape (n_samples,)
        Held-out residuals and predicted variances.

    Returns
    -------
    ndarray of shape (2, 20)
        Means and standard deviations, in units of the predicted standard deviation.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.usnrt.calibration import error_shape
    >>> mean, sd = error_shape(np.random.default_rng(0).normal(size=4000), np.ones(4000))
    >>> bool(abs(mean.mean()) < 0.03), round(float(np.mean(sd**2 + mean**2)), 1)
    (True, 1.0)
    """
    standard = residual / np.sqrt(variance)
    at = (np.arange(GROUPS * _POINTS) + 0.5) / (GROUPS * _POINTS)
    groups = np.quantile(standard, at).reshape(GROUPS, _POINTS)
    # Quantiles miss what lies beyond the outermost of them: their groups are taken from the rows.
    mean, sd = groups.mean(axis=1), groups.std(axis=1)
    for group, rows in ((0, standard <= groups[0, -1]), (-1, standard >= groups[-1, 0])):
        mean[group], sd[group] = standard[rows].mean(), standard[rows].std()
    center, total = mean.mean(), float(np.mean(sd**2) + mean.var())
    middle = float(np.subtract(*np.quantile(standard, [0.75, 0.25]))) / 1.34
    kernel = 0.45 * min(np.sqrt(total), middle) * len(standard) ** -0.2
    kernel = max(kernel, _LEAST_WIDTH * max(np.sqrt(total), _LEAST_WIDTH))
    mean = (mean - center) * np.sqrt(max(1.0 - kernel**2 / total, 0.0) if total > 0 else 0.0)
    return np.stack([mean + center, np.sqrt(sd**2 + kernel**2)])
