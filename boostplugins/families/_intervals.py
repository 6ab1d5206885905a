"""Responses that are pairs of limits: one element a row, so that they are cut and joined as numbers are."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from boostplugins._validation import check_target

INTERVAL = np.dtype([("lower", np.float64), ("upper", np.float64)])

_NO_LIMITS = "cmM"  # types of complex numbers, dates and spans of time
_EVENTS = ("event", "status")  # names under which 0 and 1 are flags, not limits


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
        Two columns, lower and upper limit, with these names where they have names; a structured array with
        fields "lower" and "upper", or one of event and time: whose first field is of type bool, or holds 0
        and 1 and is named "event" or "status"; or numbers.
    name : str, default="y"
        Name of the argument, for the message.

    Returns
    -------
    ndarray of shape (n_samples,), dtype `INTERVAL`
        Pairs.

    Raises
    ------
    ValueError
        For limits in the wrong order, without a finite one, or NaN; for other names than "lower" and "upper",
        whose meaning would be a guess, and for dates and complex numbers.
    """
    columns = [str(label) for label in getattr(y, "columns", ()) if not isinstance(label, (int, np.integer))]
    values = np.asarray(y)
    if len(columns) == 2 and sorted(columns) != ["lower", "upper"]:
        raise _unnamed(name, f"columns {columns}")
    if values.dtype.names is not None:
        pairs = _of_fields(values, name)
    elif values.ndim == 2 and values.shape[1] == 2:
        first, second = values.T[::-1] if columns == ["upper", "lower"] else values.T
        pairs = _pairs(_numbers(first, name), _numbers(second, name))
    else:
        if values.dtype.kind in _NO_LIMITS:
            raise _no_number(name, values)
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


def _unnamed(name: str, found: str) -> ValueError:
    return ValueError(
        f"{name} must name its two columns 'lower' and 'upper', got {found}; of times and events give "
        "np.column_stack([time, np.where(event, time, np.inf)]), or a structured array (event, time) whose "
        "event is of type bool, or 0 and 1 under the name 'event' or 'status'"
    )


def _of_fields(values: np.ndarray, name: str) -> np.ndarray:
    """Pairs from a structured array, (lower, upper) or (event, time)."""
    names = values.dtype.names
    assert names is not None
    if len(names) != 2 or values.ndim != 1:
        raise ValueError(f"{name} must be structured as (lower, upper) or (event, time), got {values.dtype}")
    if sorted(names) == ["lower", "upper"]:
        return _pairs(_numbers(values["lower"], name), _numbers(values["upper"], name))
    event = values[names[0]]
    whole = event.dtype.kind in "iu" and names[0].lower() in _EVENTS and np.isin(event, (0, 1)).all()
    if not (event.dtype.kind == "b" or whole):
        raise _unnamed(name, f"fields {values.dtype}")
    time = _numbers(values[names[1]], name)
    return _pairs(time, np.where(event.astype(bool), time, np.inf))


def _numbers(values: np.ndarray, name: str) -> np.ndarray:
    if values.dtype.kind in _NO_LIMITS:
        raise _no_number(name, values)
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        raise _no_number(name, values) from None


def _no_number(name: str, values: np.ndarray) -> ValueError:
    return ValueError(f"{name} must be numeric (real limits), got dtype {values.dtype}")


def _pairs(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    pairs = np.empty(np.shape(low), dtype=INTERVAL)
    pairs["lower"], pairs["upper"] = low, high
    return pairs
