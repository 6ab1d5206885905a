"""Regions of a USNRT: where the noise differs. The tree itself is drawn by its `plot_tree`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from boostplugins.plots._axes import SHADES, new_axes
from boostplugins.plots._grid import draw_rows, feature_columns, grid_rows


def usnrt_regions(
    model: Any,
    X: Any,
    features: Sequence[Any] = (0, 1),
    *,
    member: int = 0,
    n_grid: int = 200,
    fixed: dict[Any, Any] | None = None,
    ax: Any = None,
) -> Any:
    """Draw the regions of a tree over two features, shaded by the noise in each.

    Parameters
    ----------
    model : USNRTRegressor
        Fitted.
    X : array or DataFrame of shape (n_samples, n_features)
        Rows that span the picture.
    features : sequence of two int or str, default=(0, 1)
        The two features; of a model of one feature, that one is drawn along the first axis.
    member : int, default=0
        Which tree.
    n_grid : int, default=200
        Points along each feature.
    fixed : dict, optional
        Values of other features; by default medians, and the most frequent category.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The axes; brighter is noisier, and each region shows its residual standard deviation.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins import USNRTRegressor, plots
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(800, 2))
    >>> y = rng.normal(size=800) * np.where(X[:, 0] < 0.5, 0.1, 1.0)
    >>> model = USNRTRegressor(min_samples_leaf=200, max_epochs=5).fit(X, y)
    >>> ax = plots.usnrt_regions(model, X)
    >>> len(ax.texts) > 1
    True
    """
    X = X if hasattr(X, "columns") else np.asarray(X)
    if X.shape[1] == 1:
        features = [0]
    elif len(features) != 2:
        raise ValueError(f"features must be two, got {len(features)}")
    nodes = _nodes(model, member)
    numbers, names = feature_columns(X, features)
    axes, rows = grid_rows(X, numbers, n_grid, fixed=fixed)
    leaf = model.apply(rows)[:, member]
    if len(numbers) == 1:
        axes, leaf = [axes[0], np.array([0.0, 1.0])], np.repeat(leaf, 2)
    leaf = leaf.reshape(len(axes[0]), len(axes[1]))
    spread = {row["node"]: float(np.sqrt(row["residual_variance"])) for row in nodes if row["leaf"]}
    ax = new_axes(ax, (4.8, 3.8))
    shades = np.vectorize(spread.get, otypes=[float])(leaf)
    mesh = ax.pcolormesh(*axes, shades.T, cmap=SHADES, vmin=0.0, vmax=max(spread.values()), shading="nearest")
    ax.figure.colorbar(mesh, ax=ax, label="residual standard deviation")
    if len(numbers) == 2:
        draw_rows(ax, X, numbers)
    else:
        ax.set_yticks([])
    for node in np.unique(leaf):
        inside = np.argwhere(leaf == node)
        middle = inside[np.argmin(((inside - inside.mean(axis=0)) ** 2).sum(axis=1))]
        x, y = axes[0][middle[0]], 0.5 if len(numbers) == 1 else axes[1][middle[1]]
        ax.text(x, y, f"{spread[int(node)]:.3g}", ha="center", va="center", fontsize=9,
                bbox={"facecolor": "white", "edgecolor": "0.3", "boxstyle": "round,pad=0.2"})  # fmt: skip
    ax.set(xlabel=names[0], ylabel=names[1] if len(numbers) == 2 else "")
    ax.set(xlim=(axes[0][0], axes[0][-1]), ylim=(axes[1][0], axes[1][-1]))
    ax.set_title(f"{len(spread)} region{'s' * (len(spread) != 1)}")
    return ax


def _nodes(model: Any, member: int) -> list[dict[str, Any]]:
    if not hasattr(model, "tree_data"):
        raise TypeError(f"model must be a fitted USNRTRegressor, got {type(model).__name__}")
    return model.tree_data(member)
