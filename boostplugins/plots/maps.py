"""Knowledge, data and total uncertainty over two features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from boostplugins._validation import check_option
from boostplugins.plots._axes import SHADES, import_pyplot, new_axes
from boostplugins.plots._grid import draw_rows, feature_columns, grid_rows

_PARTS = ("knowledge", "data", "total")


def uncertainty_map(
    model: Any,
    X: Any,
    features: Sequence[Any] = (0, 1),
    part: str = "knowledge",
    *,
    n_grid: int = 50,
    margin: float = 0.25,
    fixed: dict[Any, Any] | None = None,
    show_rows: bool = True,
    ax: Any = None,
) -> Any:
    """Draw one part of the uncertainty over two features.

    Parameters
    ----------
    model : estimator
        Fitted, with ``predict_uncertainty``.
    X : array or DataFrame of shape (n_samples, n_features)
        Rows, such as those of training: they span the map and are drawn as dots.
    features : sequence of int or str, default=(0, 1)
        The two features.
    part : {"knowledge", "data", "total"}, default="knowledge"
        What to draw: a standard deviation in units of the target (regression) or nats (classes).
    n_grid : int, default=50
        Points along each feature.
    margin : float, default=0.25
        How far the map reaches beyond the rows, as a share of their range.
    fixed : dict, optional
        Values of other features; by default medians, and the most frequent category.
    show_rows : bool, default=True
        Whether to draw the rows.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The axes; brighter is more uncertain.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins import SGLBClassifier, plots
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = SGLBClassifier(n_estimators=20, depth=2, booster="lightgbm", n_jobs=1).fit(X, X[:, 0] > 0)
    >>> ax = plots.uncertainty_map(model, X, n_grid=5)
    >>> ax.get_xlabel(), ax.get_title()
    ('x0', 'knowledge uncertainty')
    """
    check_option("part", part, _PARTS)
    X = X if hasattr(X, "columns") else np.asarray(X)
    axes, values, names = _surface(model, X, features, (part,), n_grid, margin, fixed)
    ax = new_axes(ax, (4.6, 3.6))
    _draw(ax, axes, values[part], names, part, _unit(model), None)
    if show_rows:
        draw_rows(ax, X, feature_columns(X, features)[0])
    return ax


def uncertainty_maps(
    model: Any,
    X: Any,
    features: Sequence[Any] = (0, 1),
    *,
    n_grid: int = 50,
    margin: float = 0.25,
    fixed: dict[Any, Any] | None = None,
    show_rows: bool = True,
    axes: Any = None,
) -> np.ndarray:
    """Draw knowledge, data and total uncertainty side by side, on one scale.

    Parameters
    ----------
    model : estimator
        Fitted, with ``predict_uncertainty``.
    X : array or DataFrame of shape (n_samples, n_features)
        Rows, such as those of training.
    features : sequence of int or str, default=(0, 1)
        The two features.
    n_grid : int, default=50
        Points along each feature.
    margin : float, default=0.25
        How far the maps reach beyond the rows, as a share of their range.
    fixed : dict, optional
        Values of other features.
    show_rows : bool, default=True
        Whether to draw the rows.
    axes : sequence of three Axes, optional
        Where to draw.

    Returns
    -------
    ndarray of three Axes
        The axes.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins import DistributionalRegressor, plots
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = DistributionalRegressor(n_estimators=5, n_folds=2).fit(X, X[:, 0])
    >>> [ax.get_title() for ax in plots.uncertainty_maps(model, X, n_grid=5)]
    ['knowledge uncertainty', 'data uncertainty', 'total uncertainty']
    """
    X = X if hasattr(X, "columns") else np.asarray(X)
    if axes is None:
        axes = import_pyplot().subplots(
            1, 3, figsize=(12.0, 3.6), layout="constrained", sharex=True, sharey=True
        )[1]
    axes = np.asarray(axes, dtype=object).ravel()
    if len(axes) != 3:
        raise ValueError(f"axes must be three, one a part, got {len(axes)}")
    grid, values, names = _surface(model, X, features, _PARTS, n_grid, margin, fixed)
    limits = (0.0, float(max(values["total"].max(), np.finfo(float).tiny)))
    for ax, part in zip(axes, _PARTS):
        _draw(ax, grid, values[part], names, part, _unit(model), limits)
        if show_rows:
            draw_rows(ax, X, feature_columns(X, features)[0])
    return axes


def _surface(
    model: Any,
    X: Any,
    features: Sequence[Any],
    parts: Sequence[str],
    n_grid: int,
    margin: float,
    fixed: dict[Any, Any] | None,
) -> tuple[list[np.ndarray], dict[str, np.ndarray], list[str]]:
    if len(features) != 2:
        raise ValueError(f"features must be two, got {len(features)}")
    if not hasattr(model, "predict_uncertainty"):
        raise TypeError(f"model must have predict_uncertainty, got {type(model).__name__}")
    numbers, names = feature_columns(X, features)
    axes, rows = grid_rows(X, numbers, n_grid, margin, fixed)
    found = model.predict_uncertainty(rows)
    shape = (len(axes[0]), len(axes[1]))
    values = {part: np.asarray(getattr(found, part)).reshape(shape) for part in parts}
    if not _classes(model):
        values = {part: np.sqrt(value) for part, value in values.items()}
    return axes, values, names


def _classes(model: Any) -> bool:
    return hasattr(model, "predict_proba")


def _unit(model: Any) -> str:
    return "nats" if _classes(model) else "standard deviation"


def _draw(
    ax: Any,
    axes: list[np.ndarray],
    values: np.ndarray,
    names: list[str],
    part: str,
    unit: str,
    limits: tuple[float, float] | None,
) -> None:
    low, high = limits or (0.0, float(max(values.max(), np.finfo(float).tiny)))
    mesh = ax.pcolormesh(*axes, values.T, cmap=SHADES, vmin=low, vmax=high, shading="gouraud")
    ax.figure.colorbar(mesh, ax=ax, label=unit)
    ax.set(xlabel=names[0], ylabel=names[1], title=f"{part} uncertainty")
