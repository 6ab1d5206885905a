"""One score of a comparison as dots with their errors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from boostplugins.plots._axes import new_axes


def comparison_plot(table: pd.DataFrame, metric: str, *, ax: Any = None) -> Any:
    """Draw a score of every model with two standard errors on either side.

    Parameters
    ----------
    table : DataFrame
        What `boostplugins.compare.compare` gave.
    metric : str
        The score.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The axes, a line a model, the first on top; a model without the score is named and left
        empty. The arrow in the label points to the better side.

    Raises
    ------
    ValueError
        For a score that the table does not hold.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import BayesianRidge, LinearRegression
    >>> from boostplugins import plots
    >>> from boostplugins.compare import compare
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> table = compare([BayesianRidge(), LinearRegression()], X, X[:, 0] + X[:, 1] ** 2, cv=3)
    >>> ax = plots.comparison_plot(table, "rmse")
    >>> ax.get_xlabel(), [text.get_text() for text in ax.get_yticklabels()]
    ('← rmse', ['BayesianRidge', 'LinearRegression'])
    """
    part = table[table["metric"] == metric]
    if part.empty:
        raise ValueError(f"metric must be one of {list(table['metric'].unique())}, got {metric!r}")
    models, mean = list(part["model"]), part["mean"].to_numpy(float)
    places = np.arange(len(models))
    ax = new_axes(ax, (5.0, 0.8 + 0.32 * len(models)))
    ax.errorbar(mean, places, xerr=2.0 * np.nan_to_num(part["se"].to_numpy(float)), fmt="o", color="black",
                ecolor="0.5", elinewidth=2)  # fmt: skip
    if np.isfinite(mean[0]):
        ax.axvline(mean[0], color="0.7", linestyle=":", zorder=0)
    better = part["better"].iloc[0]
    arrow = {"higher": f"{metric} →", "lower": f"← {metric}"}.get(better, metric)
    ax.set(yticks=places, ylim=(len(models) - 0.5, -0.5), xlabel=arrow)
    ax.set_yticklabels(models)
    nominal = re.fullmatch(r"coverage_(\d+)", metric)
    if nominal:
        ax.axvline(float(nominal[1]) / 100.0, color="0.3", linestyle="--", zorder=0)
    return ax
