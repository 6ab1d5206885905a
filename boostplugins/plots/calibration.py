"""Do predicted probabilities come true: reliability and probability integral transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from boostplugins._validation import check_integer
from boostplugins.metrics import class_ece, pit, reliability
from boostplugins.metrics.calibration import percentile_error
from boostplugins.plots._axes import new_axes
from boostplugins.predictive import Predictive

_LEVELS = np.arange(0, 101) / 100.0
_BAND = (0.025, 0.975)


def reliability_curve(y: ArrayLike, dist: Predictive, *, label: str | None = None, ax: Any = None) -> Any:
    """Draw the share of responses below each predicted quantile against its level.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Responses that the model was not trained on.
    dist : Predictive
        Their predictions.
    label : str, optional
        Name for the legend; the ECE is added.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The axes. The grey band holds 95 % of the curves' points where the predictions are right. Steps
        of discrete distributions are randomised, in the curve and in its ECE.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins import Predictive, plots
    >>> y = np.random.default_rng(0).normal(size=200)
    >>> ax = plots.reliability_curve(y, Predictive("normal", np.tile([0.0, 1.0], (200, 1))))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('predicted probability', 'observed share')
    """
    u = pit(y, dist)
    ax = new_axes(ax, (4.0, 4.0))
    first = not ax.lines
    if first:
        low, high = (binom.ppf(q, len(u), _LEVELS) / len(u) for q in _BAND)
        ax.fill_between(_LEVELS, low, high, color="0.85", linewidth=0, label="95 % if right")
        ax.plot([0, 1], [0, 1], color="0.5", linewidth=1, linestyle=":")
    error = f"ECE {percentile_error(u):.3f}"
    number = len(ax.lines) - 1
    ax.plot(
        _LEVELS,
        (u[:, None] <= _LEVELS).mean(axis=0),
        color=str(min(0.3 * number, 0.6)),
        linestyle=("-", "--", "-.")[number % 3],
        label=error if label is None else f"{label}, {error}",
    )
    ax.set(xlabel="predicted probability", ylabel="observed share", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.legend(frameon=False, loc="upper left")
    return ax


def reliability_diagram(y: ArrayLike, proba: ArrayLike, *, n_bins: int = 10, ax: Any = None) -> Any:
    """Draw observed frequencies of an event against predicted probabilities, bin by bin.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Events, 0 or 1 (for several classes: whether the predicted one was right).
    proba : array-like of shape (n_samples,)
        Predicted probabilities (of the predicted class).
    n_bins : int, default=10
        Bins of equal width.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The axes; the area of a dot is the share of rows in its bin, bars are 95 % of what chance
        gives the frequency if the probability is right.

    Examples
    --------
    >>> from boostplugins import plots
    >>> ax = plots.reliability_diagram([0, 1, 1, 1], [0.1, 0.9, 0.8, 0.4], n_bins=2)
    >>> ax.collections[0].get_offsets().shape
    (2, 2)
    """
    table = reliability(y, proba, n_bins)
    held = table.count > 0
    predicted, observed, count = table.predicted[held], table.observed[held], table.count[held]
    ax = new_axes(ax, (4.0, 4.0))
    ax.plot([0, 1], [0, 1], color="0.5", linewidth=1, linestyle=":")
    low, high = (binom.ppf(q, count, predicted) / count for q in _BAND)
    ax.scatter(predicted, observed, s=20 + 180 * count / count.sum(), color="black", zorder=3)
    ax.vlines(predicted, low, high, color="0.6", linewidth=4)
    ax.set(
        xlabel="predicted probability", ylabel="observed frequency", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02),
        aspect="equal", title=f"ECE {class_ece(y, proba, n_bins):.3f}",
    )  # fmt: skip
    return ax


def pit_histogram(y: ArrayLike, dist: Predictive, *, n_bins: int = 20, ax: Any = None) -> Any:
    """Draw the histogram of the probability integral transform; flat is right.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Responses that the model was not trained on.
    dist : Predictive
        Their predictions.
    n_bins : int, default=20
        Bins.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The axes: a U says too narrow, a hump too wide, a slope biased. The dashed lines hold 95 % of
        the bars where the predictions are right.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins import Predictive, plots
    >>> y = np.random.default_rng(0).normal(size=200)
    >>> ax = plots.pit_histogram(y, Predictive("normal", np.tile([0.0, 1.0], (200, 1))), n_bins=10)
    >>> len(ax.patches)
    10
    """
    n_bins = check_integer("n_bins", n_bins, 1)
    u = pit(y, dist)
    ax = new_axes(ax)
    ax.hist(u, bins=np.linspace(0, 1, n_bins + 1), density=True, color="0.75", edgecolor="0.3")
    ax.axhline(1.0, color="black", linewidth=1)
    for q in _BAND:
        ax.axhline(binom.ppf(q, len(u), 1.0 / n_bins) * n_bins / len(u), color="black", linestyle="--",
                   linewidth=1)  # fmt: skip
    ax.set(xlabel="probability integral transform", ylabel="density", xlim=(0, 1))
    return ax
