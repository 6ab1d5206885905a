"""Fisher information without a closed form, tabulated once and interpolated in compiled loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from boostplugins._jit import njit

_STEP = 0.25
_MU_LOW, _MU_HIGH = -14.0, 23.0
_SIZE_LOW, _SIZE_HIGH = -18.5, 19.0
# Size from which the leading term (mu / (mu + k))^2 / 2 replaces the integral, which cancels.
_LARGE_SIZE = 3e3
_PHI_LOW, _PHI_HIGH = -12.0, 12.0


@lru_cache(maxsize=1)
def negative_binomial_table() -> tuple[np.ndarray, np.ndarray, float]:
    r"""Log Fisher information of the log size of a negative binomial.

    .. math:: I_k = \int_0^\infty \frac{t e^{-k t}}{1 - e^{-t}}
              \left[1 - \left(1 + \tfrac{\mu}{k} (1 - e^{-t})\right)^{-k}\right]
              - e^{-k t} (1 - e^{-\mu t})\, dt

    Returns
    -------
    table : ndarray of shape (n_mu, n_size)
        Logarithms.
    corner : ndarray of shape (2,)
        Log mean and log size of the first entry.
    step : float
        Step of both.
    """
    log_mu = np.arange(_MU_LOW, _MU_HIGH + _STEP, _STEP)
    log_size = np.arange(_SIZE_LOW, _SIZE_HIGH + _STEP, _STEP)
    s = np.arange(-36.0, 27.0, 0.125)
    t = np.exp(s)
    one = -np.expm1(-t)
    mu = np.exp(log_mu)[:, None]
    table = np.empty((len(log_mu), len(log_size)))
    with np.errstate(over="ignore", under="ignore"):
        for j, k in enumerate(np.exp(log_size)):
            if k > _LARGE_SIZE:
                table[:, j] = np.log(0.5 * (mu[:, 0] / (mu[:, 0] + k)) ** 2)
                continue
            inside = t / one * -np.expm1(-k * np.log1p(mu / k * one)) + np.expm1(-mu * t)
            information = k * k * (np.exp(-k * t) * t * inside).sum(axis=1) * 0.125
            table[:, j] = np.log(np.maximum(information, 1e-100))
    return table, np.array([_MU_LOW, _SIZE_LOW]), _STEP


@njit
def _cubic(a, b, c, d, f):  # type: ignore[no-untyped-def]
    """Catmull-Rom spline between b and c."""
    return b + 0.5 * f * (c - a + f * (2.0 * a - 5.0 * b + 4.0 * c - d + f * (3.0 * (b - c) + d - a)))


@njit
def interpolate(table, corner, step, x, y):  # type: ignore[no-untyped-def]
    """Bicubic interpolation; below the first x the logarithm falls by 2 per unit of x."""
    below = min(x - (corner[0] + step), 0.0)
    u = (x - below - corner[0]) / step
    v = (y - corner[1]) / step
    i = min(max(int(u), 1), table.shape[0] - 3)
    j = min(max(int(v), 1), table.shape[1] - 3)
    f, g = min(max(u - i, 0.0), 1.0), min(max(v - j, 0.0), 1.0)
    a = _cubic(table[i - 1, j - 1], table[i - 1, j], table[i - 1, j + 1], table[i - 1, j + 2], g)
    b = _cubic(table[i, j - 1], table[i, j], table[i, j + 1], table[i, j + 2], g)
    c = _cubic(table[i + 1, j - 1], table[i + 1, j], table[i + 1, j + 1], table[i + 1, j + 2], g)
    d = _cubic(table[i + 2, j - 1], table[i + 2, j], table[i + 2, j + 1], table[i + 2, j + 2], g)
    return _cubic(a, b, c, d, f) + 2.0 * below


@lru_cache(maxsize=8)
def tweedie_table(power: float, derivative: Callable[..., None]) -> tuple[np.ndarray, float, float]:
    """Log Fisher information of the log dispersion of a Tweedie distribution of mean 1.

    Parameters
    ----------
    power : float
        Variance power in (1, 2).
    derivative : callable
        ``derivative(y, phi, power, out)`` fills `out[:, 0]` with log densities at mean 1 and
        `out[:, 1]` with their derivatives in the log dispersion.

    Returns
    -------
    table : ndarray
        Logarithms on a grid of log dispersion.
    first, step : float
        The grid.
    """
    log_phi = np.arange(_PHI_LOW, _PHI_HIGH + _STEP, _STEP)
    table = np.empty(len(log_phi))
    for j, phi in enumerate(np.exp(log_phi)):
        rate = 1.0 / (phi * (2.0 - power))
        sd = math.sqrt(phi)
        # Log responses from far below one jump to far above all jumps.
        jump = phi * (power - 1.0)
        shape = (2.0 - power) / (power - 1.0)
        low = math.log(jump) - 40.0 / min(shape, 1.0) if rate < 60.0 else math.log(max(1.0 - 9.0 * sd, 1e-3))
        high = math.log(1.0 + 12.0 * sd + 45.0 * jump)
        x, width = np.linspace(low, high, 3001, retstep=True)
        out = np.empty((len(x), 2))
        derivative(np.exp(x), phi, power, out)
        density = np.exp(out[:, 0] + x)
        table[j] = math.log(math.exp(-rate) * rate**2 + (density * out[:, 1] ** 2).sum() * width)
    return table, _PHI_LOW, _STEP


@njit
def interpolate_line(table, first, step, x):  # type: ignore[no-untyped-def]
    """Cubic interpolation on a line, constant beyond its ends."""
    u = min(max((x - first) / step, 1.0), len(table) - 2.0)
    i = min(int(u), len(table) - 3)
    return _cubic(table[i - 1], table[i], table[i + 1], table[i + 2], u - i)
