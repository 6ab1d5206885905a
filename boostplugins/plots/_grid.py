"""Rows on a grid over one or two features, the others held at typical values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from boostplugins._validation import check_integer

_MOST_ROWS = 400


def feature_columns(X: Any, features: Sequence[Any]) -> tuple[list[int], list[str]]:
    """Find features by number or name.

    Parameters
    ----------
    X : array or DataFrame of shape (n_samples, n_features)
        Rows.
    features : sequence of int or str
        Numbers or names.

    Returns
    -------
    numbers : list of int
        Their columns.
    names : list of str
        Their names; x0, x1, ... for an array.

    Raises
    ------
    ValueError
        For unknown features.
    """
    names = [str(c) for c in X.columns] if hasattr(X, "columns") else [f"x{j}" for j in range(X.shape[1])]
    numbers = []
    for feature in features:
        if isinstance(feature, str) and feature in names:
            numbers.append(names.index(feature))
        elif isinstance(feature, (int, np.integer)) and 0 <= feature < len(names):
            numbers.append(int(feature))
        else:
            raise ValueError(f"features must be of {names[:20]} or their numbers, got {feature!r}")
    return numbers, [names[j] for j in numbers]


def values_of(X: Any, number: int) -> np.ndarray:
    """Read a numeric column.

    Parameters
    ----------
    X : array or DataFrame of shape (n_samples, n_features)
        Rows.
    number : int
        Column.

    Returns
    -------
    ndarray of shape (n_samples,)
        Its numbers.

    Raises
    ------
    ValueError
        For a column of categories.
    """
    column = X.iloc[:, number] if hasattr(X, "iloc") else X[:, number]
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"feature {number} must be numeric to span an axis of a picture") from None


def draw_rows(ax: Any, X: Any, numbers: Sequence[int]) -> None:
    """Draw rows as white dots, at most a few hundred of them, within the limits of the axes.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    X : array or DataFrame of shape (n_samples, n_features)
        Rows.
    numbers : sequence of two int
        Columns along the axes.
    """
    shown = np.unique(np.linspace(0, len(X) - 1, min(len(X), _MOST_ROWS)).round().astype(int))
    limits = ax.get_xlim(), ax.get_ylim()
    x, y = (values_of(X, j)[shown] for j in numbers)
    ax.scatter(x, y, s=8, c="white", edgecolors="black", linewidths=0.4, zorder=2)
    ax.set(xlim=limits[0], ylim=limits[1])


def grid_rows(
    X: Any, numbers: Sequence[int], n_grid: int, margin: float = 0.0, fixed: dict[Any, Any] | None = None
) -> tuple[list[np.ndarray], Any]:
    """Make rows on a grid.

    Parameters
    ----------
    X : array or DataFrame of shape (n_samples, n_features)
        Rows whose range the grid covers.
    numbers : sequence of int
        One or two columns that vary.
    n_grid : int
        Points along each.
    margin : float, default=0.0
        How far the grid reaches beyond the range on each side, as a share of it.
    fixed : dict, optional
        Values of other features by number or name; by default medians, and the most frequent category.

    Returns
    -------
    axes : list of ndarray of shape (n_grid,)
        Values of each column that varies.
    rows : DataFrame or ndarray of shape (n_grid ** len(numbers), n_features)
        Rows, the first column varying slowest.
    """
    n_grid = check_integer("n_grid", n_grid, 2)
    typical = _typical(X)
    for feature, value in (fixed or {}).items():
        typical[feature_columns(X, [feature])[0][0]] = value
    axes = []
    for number in numbers:
        column = values_of(X, number)
        low, high = np.nanmin(column), np.nanmax(column)
        room = margin * (high - low)
        axes.append(np.linspace(low - room, high + room, n_grid))
    mesh = [part.ravel() for part in np.meshgrid(*axes, indexing="ij")]
    n = len(mesh[0])
    columns = [mesh[list(numbers).index(j)] if j in numbers else [typical[j]] * n for j in range(X.shape[1])]
    if not hasattr(X, "columns"):
        return axes, np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)
    frame = pd.DataFrame(dict(zip(X.columns, columns)))
    for j, name in enumerate(X.columns):
        if j not in numbers:
            frame[name] = frame[name].astype(X.dtypes.iloc[j])
    return axes, frame


def _typical(X: Any) -> list[Any]:
    if not hasattr(X, "iloc"):
        return list(np.nanmedian(np.asarray(X, dtype=np.float64), axis=0))
    found = []
    for j in range(X.shape[1]):
        column = X.iloc[:, j]
        number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
        whole = pd.api.types.is_integer_dtype(column)
        found.append(column.median() if number and not whole else column.mode().iloc[0])
    return found
