"""The walk of a chain over its cycles, with the schedule that drives it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from boostplugins._validation import check_integer
from boostplugins.estimators._frames import predict_frame
from boostplugins.plots._axes import LINES, MARKERS, new_axes
from boostplugins.virtual_ensemble import VirtualEnsemble

_MOST_POINTS = 200


def chain_trace(
    model: Any, X: Any, *, output: int = 0, chain: int = 0, most_rows: int = 4, ax: Any = None
) -> Any:
    """Draw the raw scores of some rows along a chain, the members read and the gradient schedule.

    Parameters
    ----------
    model : SGLBClassifier, SGLBRegressor or VirtualEnsemble
        Trained.
    X : array-like of shape (n_samples, n_features)
        Rows; the first `most_rows` are drawn.
    output : int, default=0
        Which raw score, for several classes or parameters.
    chain : int, default=0
        Which chain of an estimator.
    most_rows : int, default=4
        Rows to draw.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The axes of the scores. Grey stretches explore, white ones sample; dots are the members (without
        the random prior function); the thin line, on the right axis, is the gradient scale.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins import SGLBRegressor, plots
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = SGLBRegressor(n_estimators=40, depth=2, booster="lightgbm", n_jobs=1).fit(X, X[:, 0])
    >>> ax = plots.chain_trace(model, X, most_rows=2)
    >>> ax.get_xlabel(), [text.get_text() for text in ax.get_legend().get_texts()]
    ('iteration', ['row 0', 'row 1', 'gradient scale'])
    """
    ensemble, rows = _ensemble(model, X, check_integer("chain", chain, 0))
    rows = rows[: check_integer("most_rows", most_rows, 1)]
    reader = ensemble._reader
    total, output = int(reader.n_iterations), check_integer("output", output, 0)
    if output >= reader.n_outputs:
        raise ValueError(f"output must be below the chain's {reader.n_outputs}, got {output}")
    step = max(1, math.ceil(total / _MOST_POINTS))
    iterations = np.arange(step, total + 1, step)
    states = reader.states(rows, iterations)[:, :, output]
    members = reader.states(rows, ensemble.ends)[:, :, output]
    ax = new_axes(ax, (7.0, 3.6))
    handles = []
    for i in range(len(states)):
        [line] = ax.plot(iterations, states[i], color="0.15", linestyle=LINES[i % len(LINES)], linewidth=1.2,
                         label=f"row {i}")  # fmt: skip
        ax.plot(ensemble.ends, members[i], color="black", linestyle="none", marker=MARKERS[i % len(MARKERS)])
        handles.append(line)
    handles.append(_draw_schedule(ax, ensemble.schedule, total))
    ax.set(xlabel="iteration", ylabel="raw score", xlim=(0, total))
    ax.legend(handles=handles, frameon=False, fontsize="small", ncols=len(handles), loc="lower left",
              bbox_to_anchor=(0.0, 1.0))  # fmt: skip
    return ax


def _ensemble(model: Any, X: Any, chain: int) -> tuple[VirtualEnsemble, Any]:
    if isinstance(model, VirtualEnsemble):
        return model, X
    if not hasattr(model, "models_") or not hasattr(model, "_ensembles"):
        raise TypeError(
            f"model must be a fitted SGLB estimator or a VirtualEnsemble, got {type(model).__name__}"
        )
    ensembles = model._ensembles()
    if chain >= len(ensembles):
        raise ValueError(f"chain must be below the model's {len(ensembles)} chains, got {chain}")
    return ensembles[chain], predict_frame(model, X, model.categorical_features_)


def _draw_schedule(ax: Any, schedule: Any, total: int) -> Any:
    iterations = np.arange(total)
    scale = [schedule.scale(int(t)) for t in iterations]
    exploring = np.array([schedule.exploring(int(t)) for t in iterations])
    edges = np.flatnonzero(np.diff(np.concatenate([[False], exploring, [False]]).astype(int)))
    right = ax.twinx()
    for start, stop in edges.reshape(-1, 2):
        right.axvspan(start, stop, color="0.92", linewidth=0, zorder=0)
    [line] = right.plot(iterations, scale, color="0.55", linewidth=1.0, label="gradient scale")
    right.set(ylabel="gradient scale", ylim=(0, 1.05 * max(scale)))
    right.tick_params(colors="0.4")
    # Scores in front of the schedule.
    ax.set_zorder(right.get_zorder() + 1)
    ax.patch.set_visible(False)
    return line
