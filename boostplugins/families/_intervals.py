"""Responses that are pairs of limits: one element a row, so that they are cut and joined as numbers are."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from boostplugins._validation import check_target

INTERVAL = np.dtype([("lower", np.float64), ("upper", np.float64)])


def as_intervals(y: ArrayLike) -> np.ndarray:
    """Pairs as they are, numbers as observed responses.

    Parameters
    ----------
    y : ndarray of any shape
        Pairs of type `INTERVAL`, or numbers.

    Returns
    -------
    ndarray of the same shape, dtype `INTERVAL`
        Pairs.
    """
    values = np.asarray(y)
    if values.dtype == INTERVAL:
        return values
    return _pairs(values, values)


def read_intervals(y: ArrayLike, name: str = "y") -> np.ndarray:
    """Check responses with limits.

    Parameters
    ----------
    y : array-like of shape (n_samples, 2) or (n_samples,)
        Two columns, lower and upper limit; a structured array with fields "lower" and "upper", or one
        whose first field is a flag of the event and whose second the time; or numbers.
    name : str, default="y"
        Name of the argument, for the message.

    Returns
    -------
    ndarray of shape (n_samples,), dtype `INTERVAL`
        Pairs.

    Raises
    ------
    ValueError
        For limits in the wrong order, without a finite one, or NaN.
    """
    values = np.asarray(y)
    names = values.dtype.names
    if names is not None:
        if len(names) != 2 or values.ndim != 1:
            raise ValueError(
                f"{name} must be structured as (lower, upper) or (event, time), got {values.dtype}"
            )
        first, second = values[names[0]], np.asarray(values[names[1]], dtype=np.float64)
        if first.dtype.kind == "b":
            pairs = _pairs(second, np.where(first, second, np.inf))
        else:
            pairs = _pairs(np.asarray(first, dtype=np.float64), second)
    elif values.ndim == 2 and values.shape[1] == 2:
        try:
            pairs = _pairs(*values.astype(np.float64).T)
        except (TypeError, ValueError):
            raise ValueError(f"{name} must be numeric, got dtype {values.dtype}") from None
    else:
        return as_intervals(check_target(y, name))
    if not len(pairs):
        raise ValueError(f"{name} must have at least one row, got 0")
    low, high = pairs["lower"], pairs["upper"]
    good = (low <= high) & (np.isfinite(low) | np.isfinite(high)) & (low < np.inf) & (high > -np.inf)
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        raise ValueError(
            f"{name} must hold lower <= upper, one of them finite and neither NaN, in each row, got "
            f"{low[row]:g} and {high[row]:g} in row {row} ({int((~good).sum())} rows in all); right-censored "
            "rows are (time, inf), observed ones (time, time)"
        )
    return pairs


def _pairs(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    pairs = np.empty(np.shape(low), dtype=INTERVAL)
    pairs["lower"], pairs["upper"] = low, high
    return pairs
