"""Predictions in blocks of rows: members of an ensemble times all rows are never held at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

_ROWS = 4096  # of a block


def in_blocks(function: Callable[..., Any], X: Any, *aligned: np.ndarray | None) -> Any:
    """Apply a function of rows to blocks of them, and join what it gives.

    Parameters
    ----------
    function : callable
        Called as ``function(rows, *values)``; gives an array, or a data class of arrays, with one
        entry a row that depends on that row alone.
    X : array-like of shape (n_samples, n_features)
        Rows. What is no array, list or table is taken whole.
    *aligned : ndarray of shape (n_samples, ...) or None
        Values of the rows; None is passed on.

    Returns
    -------
    object
        What the function would give for all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins._blocks import in_blocks
    >>> float(in_blocks(lambda rows: rows.sum(axis=1), np.ones((40_000, 2))).sum())
    80000.0
    """
    n = _length(X)
    if n is None or n <= _ROWS or any(values is not None and len(values) != n for values in aligned):
        return function(X, *aligned)  # which says so if lengths do not fit
    parts = []
    for start in range(0, n, _ROWS):
        rows = slice(start, min(start + _ROWS, n))
        values = (None if held is None else held[rows] for held in aligned)
        parts.append(function(X.iloc[rows] if hasattr(X, "iloc") else X[rows], *values))
    if is_dataclass(parts[0]):
        names = [field.name for field in fields(parts[0])]
        joined = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
        return type(parts[0])(*joined)  # type: ignore[operator, misc]
    return np.concatenate(parts)


def _length(X: Any) -> int | None:
    if isinstance(X, list) or (isinstance(X, np.ndarray) and X.ndim == 2):
        return len(X)
    known = type(X).__module__.partition(".")[0] in ("pandas", "polars")
    return len(X) if known and getattr(X, "ndim", 2) == 2 and hasattr(X, "columns") else None
