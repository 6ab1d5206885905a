"""Fans of predictive intervals along one feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from boostplugins._validation import check_real
from boostplugins.plots._axes import new_axes
from boostplugins.plots._grid import feature_columns, grid_rows, values_of

_LIGHTEST, _DARKEST = 0.88, 0.55


def interval_fan(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    feature: Any = 0,
    coverages: Sequence[float] = (0.5, 0.8, 0.95),
    n_grid: int = 100,
    margin: float = 0.0,
    fixed: dict[Any, Any] | None = None,
    ax: Any = None,
) -> Any:
    """Draw central intervals of several coverages along a feature, with the mean.

    Parameters
    ----------
    model : estimator
        Fitted, with ``predict`` and ``predict_interval``.
    X : array or DataFrame of shape (n_samples, n_features)
        Rows whose range the feature spans.
    y : array-like of shape (n_samples,), optional
        Responses to draw as dots.
    feature : int or str, default=0
        The feature.
    coverages : sequence of float, default=(0.5, 0.8, 0.95)
        Probabilities inside; wider ones are lighter.
    n_grid : int, default=100
        Points along the feature.
    margin : float, default=0.0
        How far to reach beyond the rows, as a share of their range.
    fixed : dict, optional
        Values of other features; by default medians, and the most frequent category.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The axes.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins import DistributionalRegressor, plots
    >>> X = np.linspace(0, 1, 80)[:, None]
    >>> model = DistributionalRegressor(n_estimators=5).fit(X, X[:, 0])
    >>> ax = plots.interval_fan(model, X, X[:, 0], coverages=[0.5, 0.9])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['responses', '90 %', '50 %', 'mean']
    """
    levels = sorted((check_real("coverages", c, 0.0, 1.0, closed="neither") for c in coverages), reverse=True)
    if not levels:
        raise ValueError("coverages must hold at least one number, got none")
    X = X if hasattr(X, "columns") else np.asarray(X)
    [number], [name] = feature_columns(X, [feature])
    [x], rows = grid_rows(X, [number], n_grid, margin, fixed)
    ax = new_axes(ax)
    if y is not None:
        ax.scatter(values_of(X, number), np.asarray(y), s=9, c="white", edgecolors="0.3", linewidths=0.6,
                   zorder=2.5, label="responses")  # fmt: skip
    for shade, level in zip(np.linspace(_LIGHTEST, _DARKEST, len(levels)), levels):
        ends = model.predict_interval(rows, level)
        ax.fill_between(
            x, ends[:, 0], ends[:, 1], color=str(shade), linewidth=0, label=f"{level * 100:.4g} %"
        )
    ax.plot(x, model.predict(rows), color="black", zorder=3, label="mean")
    ax.set(xlabel=name, ylabel="response", xlim=(x[0], x[-1]))
    ax.legend(frameon=False)
    return ax
