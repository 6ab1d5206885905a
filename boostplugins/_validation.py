"""Argument checks that name the parameter, the rule, the value found and the remedy."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def check_integer(name: str, value: Any, minimum: int, remedy: str = "") -> int:
    """Check an integer argument.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    value : object
        Value found.
    minimum : int
        Least value allowed.
    remedy : str, default=""
        What to do instead, appended to the message.

    Returns
    -------
    int
        The value.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer >= {minimum}, got {value!r}{_then(remedy)}")
    if value < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value!r}{_then(remedy)}")
    return int(value)


def check_real(
    name: str, value: Any, low: float, high: float = math.inf, closed: str = "both", remedy: str = ""
) -> float:
    """Check a finite real argument.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    value : object
        Value found.
    low, high : float
        Limits of the allowed range.
    closed : {"both", "left", "right", "neither"}, default="both"
        Which limits are allowed themselves.
    remedy : str, default=""
        What to do instead, appended to the message.

    Returns
    -------
    float
        The value.
    """
    left = "[" if closed in ("both", "left") else "("
    right = "]" if closed in ("both", "right") and math.isfinite(high) else ")"
    rule = f"{name} must be a finite number in {left}{low:g}, {high:g}{right}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{rule}, got {value!r}{_then(remedy)}")
    try:
        value = float(value)
    except OverflowError:  # an integer of more than 308 digits
        value = math.inf if value > 0 else -math.inf
    above = value >= low if left == "[" else value > low
    below = value <= high if right == "]" else value < high
    if not (math.isfinite(value) and above and below):
        raise ValueError(f"{rule}, got {value!r}{_then(remedy)}")
    return value


def check_option(name: str, value: Any, options: tuple[Any, ...]) -> Any:
    """Check that an argument is one of its options.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    value : object
        Value found.
    options : tuple
        Values allowed.

    Returns
    -------
    object
        The value.
    """
    if not any(value is option or (type(value) is type(option) and value == option) for option in options):
        raise ValueError(f"{name} must be one of {options}, got {value!r}")
    return value


def check_methods(name: str, value: Any, methods: tuple[str, ...]) -> None:
    """Check that an argument is an object with certain methods, and not its class.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    value : object
        Value found.
    methods : tuple of str
        Names of the methods.
    """
    if isinstance(value, type) or not all(hasattr(value, method) for method in methods):
        raise TypeError(f"{name} must be an instance with the methods {methods}, got {value!r}")


def check_jobs(value: Any) -> None:
    """Check a number of parallel jobs.

    Parameters
    ----------
    value : object
        Value of ``n_jobs``.
    """
    if value is None:
        return
    rule = "n_jobs must be None or a non-zero integer (-1 takes all cores)"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise TypeError(f"{rule}, got {value!r}")
    if value == 0:
        raise ValueError(f"{rule}, got 0; use 1 for one job")


def check_target(y: ArrayLike, name: str = "y") -> np.ndarray:
    """Check a numeric target and make it a vector.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or (n_samples, 1)
        Responses.
    name : str, default="y"
        Name of the argument, for the message.

    Returns
    -------
    ndarray of shape (n_samples,)
        Finite float64 responses.
    """
    values = np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{name} must have shape (n_samples,), got {values.shape}")
    refuse_times(name, values)
    if values.dtype.kind not in "biuf":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{name} must be numeric, got dtype {np.asarray(y).dtype}") from None
    values = values.astype(np.float64)
    _refuse_non_finite(name, values)
    if not len(values):
        raise ValueError(f"{name} must have at least one row, got 0")
    return values


def refuse_times(name: str, values: np.ndarray) -> None:
    """Refuse dates, durations and complex numbers, which numpy would make numbers of in silence.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    values : ndarray
        Values found.
    """
    if values.dtype.kind in "mM":
        raise ValueError(
            f"{name} must hold numbers or labels, got {values.dtype}; turn times into numbers of one unit, "
            "such as days since a date"
        )
    if values.dtype.kind == "c":
        raise ValueError(
            f"{name} must be real, got {values.dtype}. Complex data not supported: "
            "pass real and imaginary part apart"
        )


def check_weight(weight: ArrayLike | None, n: int, name: str = "sample_weight") -> np.ndarray | None:
    """Check sample weights.

    Parameters
    ----------
    weight : array-like of shape (n_samples,) or None
        Weights, non-negative with a positive sum.
    n : int
        Number of samples.
    name : str, default="sample_weight"
        Name of the argument, for the message.

    Returns
    -------
    ndarray of shape (n_samples,) or None
        Float64 weights; None for None.
    """
    if weight is None:
        return None
    values = np.asarray(weight, dtype=np.float64)
    if values.ndim == 0:
        values = np.full(n, float(values))
    if values.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), one weight a row, got {values.shape}")
    _refuse_non_finite(name, values)
    if (values < 0).any():
        raise ValueError(f"{name} must be >= 0, got {values.min():g} as the least; drop rows by weight 0")
    with np.errstate(over="ignore"):
        total = values.sum()
    if not np.isfinite(total):
        raise ValueError(f"{name} must have a finite sum, got infinity; divide by the largest weight")
    if not total > 0:
        raise ValueError(f"{name} must have a positive sum, got all zeros; pass None for equal weights")
    return values


def _refuse_non_finite(name: str, values: np.ndarray) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"{name} must be finite, got {values[row]} in row {row} "
            f"({int(bad.sum())} rows in all; NaN or infinity): drop or fill them"
        )


def _then(remedy: str) -> str:
    return f"; {remedy}" if remedy else ""
