"""Special functions for compiled loops: log-gamma, digamma, trigamma, normal tail."""

from __future__ import annotations

import math

from boostplugins._jit import njit

# Argument above which the asymptotic series below are good to the last digits.
_LARGE = 10.0


@njit
def digamma(x):  # type: ignore[no-untyped-def]
    """Derivative of log-gamma for x > 0: recurrence up to 10, then the asymptotic series."""
    shift = 0.0
    while x < _LARGE:
        shift -= 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    series = r * (
        1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (1 / 132 - r * (691 / 32760 - r / 12)))))
    )
    return shift + math.log(x) - 0.5 / x - series


@njit
def trigamma(x):  # type: ignore[no-untyped-def]
    """Second derivative of log-gamma for x > 0: recurrence up to 10, then the asymptotic series."""
    shift = 0.0
    while x < _LARGE:
        shift += 1.0 / (x * x)
        x += 1.0
    r = 1.0 / (x * x)
    series = 1 / 6 - r * (1 / 30 - r * (1 / 42 - r * (1 / 30 - r * (5 / 66 - r * (691 / 2730 - r * 7 / 6)))))
    return shift + 1.0 / x + 0.5 * r + r / x * series


@njit
def trigamma_excess(x):  # type: ignore[no-untyped-def]
    """x (x trigamma(x) - 1), without the cancellation of large x; runs from 1 at 0 to 1/2."""
    if x < _LARGE:
        return x * (x * trigamma(x) - 1.0)
    r = 1.0 / (x * x)
    series = 1 / 6 - r * (1 / 30 - r * (1 / 42 - r * (1 / 30 - r * (5 / 66 - r * (691 / 2730 - r * 7 / 6)))))
    return 0.5 + series / x


@njit
def log_minus_digamma(x):  # type: ignore[no-untyped-def]
    """log(x) - digamma(x) > 0, without the cancellation of large x."""
    if x < _LARGE:
        return math.log(x) - digamma(x)
    r = 1.0 / (x * x)
    series = r * (
        1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (1 / 132 - r * (691 / 32760 - r / 12)))))
    )
    return 0.5 / x + series


@njit
def log1p_minus(x):  # type: ignore[no-untyped-def]
    """log(1 + x) - x for x > -1, without the cancellation of small x."""
    if abs(x) > 0.05:
        return math.log1p(x) - x
    # 2 artanh(s) - x with s = x / (2 + x): the first terms cancel exactly.
    s = x / (2.0 + x)
    q = s * s
    return -s * x + 2.0 * s * q * (1 / 3 + q * (1 / 5 + q * (1 / 7 + q * (1 / 9 + q / 11))))


@njit
def expit(x):  # type: ignore[no-untyped-def]
    """Logistic function."""
    if x >= 0:
        return 1.0 / (1.0 + math.exp(-x))
    e = math.exp(x)
    return e / (1.0 + e)
