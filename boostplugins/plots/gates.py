"""Gates of a soft tree: where it divides, and how softly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from boostplugins._validation import check_integer
from boostplugins.plots._axes import LINES, SHADES, line_style, new_axes
from boostplugins.plots._grid import draw_rows, feature_columns, grid_rows

_LEAST_WEIGHT = 0.1  # a gate is drawn only where this much of a row reaches its node


def soft_gates(
    model: Any,
    X: Any,
    features: Sequence[Any] = (0,),
    *,
    parameter: int | str = 0,
    most_gates: int = 6,
    n_grid: int = 120,
    fixed: dict[Any, Any] | None = None,
    ax: Any = None,
) -> Any:
    """Draw the gates of a soft tree along one feature, or over two.

    Parameters
    ----------
    model : SoftTreeRegressor or SoftTreeClassifier
        Fitted.
    X : array or DataFrame of shape (n_samples, n_features)
        Rows that span the picture.
    features : sequence of one or two int or str, default=(0,)
        One feature: the weight of each gate's left side, where the gate matters. Two: lines where
        gates give both sides the same weight, with thin lines at 10 % and 90 %, over the raw score.
    parameter : int or str, default=0
        Whose tree: a parameter of the distribution.
    most_gates : int, default=6
        Gates to draw, in the order in which they grew.
    n_grid : int, default=120
        Points along each feature.
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
    >>> from boostplugins import plots
    >>> from boostplugins.estimators.soft_tree import SoftTreeRegressor
    >>> X = np.linspace(-1, 1, 100)[:, None]
    >>> model = SoftTreeRegressor(ridge=0.1, max_leaves=2).fit(X, np.tanh(5 * X[:, 0]))
    >>> ax = plots.soft_gates(model, X)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('x0', 'weight of the left side')
    """
    if len(features) not in (1, 2):
        raise ValueError(f"features must be one or two, got {len(features)}")
    most_gates = check_integer("most_gates", most_gates, 1)
    X = X if hasattr(X, "columns") else np.asarray(X)
    numbers, names = feature_columns(X, features)
    axes, rows = grid_rows(X, numbers, n_grid if len(numbers) == 1 else min(n_grid, 80), fixed=fixed)
    held, number = _model(model, parameter)
    tree, block = held.predictors[number].tree, held.blocks(model._read(rows))[number]
    weight, reach = 1.0 / (1.0 + np.exp(-tree.logits(block.x))), tree.path_weights(block.x)
    shown = range(min(most_gates, tree.n_splits))
    gates = [np.where(reach[:, tree.node[s]] >= _LEAST_WEIGHT, weight[:, s], np.nan) for s in shown]
    labels = [f"gate {s} (node {tree.node[s]})" for s in shown]
    title = f"{held.family.params[number]}: {tree.n_splits} gate{'s' * (tree.n_splits != 1)}"
    if len(numbers) == 1:
        ax = _along(new_axes(ax), axes[0], gates, labels)
        ax.set(xlabel=names[0], title=title)
        return ax
    raw = held.predictors[number].value(block)
    ax = _over(new_axes(ax, (4.8, 3.8)), axes, gates, raw)
    draw_rows(ax, X, numbers)
    ax.set(xlabel=names[0], ylabel=names[1], title=title)
    return ax


def _model(model: Any, parameter: int | str) -> tuple[Any, int]:
    held = getattr(model, "model_", None)
    if held is None or not hasattr(held, "predictors"):
        raise TypeError(f"model must be a fitted soft tree, got {type(model).__name__}")
    params = list(held.family.params)
    if isinstance(parameter, str) and parameter in params:
        return held, params.index(parameter)
    if isinstance(parameter, (int, np.integer)) and 0 <= parameter < len(params):
        return held, int(parameter)
    raise ValueError(f"parameter must be one of {params} or its number, got {parameter!r}")


def _along(ax: Any, x: np.ndarray, gates: list[np.ndarray], labels: list[str]) -> Any:
    for s, (gate, label) in enumerate(zip(gates, labels)):
        ax.plot(x, gate, **line_style(s), label=label)
    ax.set(ylabel="weight of the left side", ylim=(-0.03, 1.03), xlim=(x[0], x[-1]))
    if gates:
        ax.legend(frameon=False, fontsize="small")
    return ax


def _over(ax: Any, axes: list[np.ndarray], gates: list[np.ndarray], raw: np.ndarray) -> Any:
    shape = (len(axes[0]), len(axes[1]))
    # Pale, so that black lines stand out.
    extent = (axes[0][0], axes[0][-1], axes[1][0], axes[1][-1])
    mesh = ax.imshow(
        raw.reshape(shape).T, cmap=SHADES, alpha=0.5, extent=extent, origin="lower", aspect="auto"
    )
    ax.figure.colorbar(mesh, ax=ax, label="raw score")
    for s, gate in enumerate(gates):
        surface = np.ma.masked_invalid(gate.reshape(shape).T)
        for level, width in ((0.1, 0.6), (0.5, 1.8), (0.9, 0.6)):
            if np.nanmin(gate) < level < np.nanmax(gate):
                ax.contour(*axes, surface, levels=[level], colors="black", linewidths=width,
                           linestyles=[LINES[s % len(LINES)]])  # fmt: skip
    return ax
