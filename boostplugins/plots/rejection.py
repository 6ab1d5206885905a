"""Rejection curves: the error that stays when the most uncertain rows are handed over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from boostplugins._validation import check_target
from boostplugins.metrics import prr
from boostplugins.plots._axes import line_style, new_axes


def rejection_curve(
    error: ArrayLike, uncertainty: ArrayLike | Mapping[str, ArrayLike], *, ax: Any = None
) -> Any:
    """Draw the error that remains against the share of rows handed over, the most uncertain first.

    Parameters
    ----------
    error : array-like of shape (n_samples,)
        Errors >= 0, such as squared errors, or 0 / 1 for classes.
    uncertainty : array-like of shape (n_samples,), or mapping of str to such
        Uncertainties, with names for several.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The axes, with random order and the order by error itself (the best) for comparison; the
        legend holds the prediction rejection ratios.

    Examples
    --------
    >>> from boostplugins import plots
    >>> ax = plots.rejection_curve([0.0, 1.0, 4.0], {"knowledge": [0.1, 0.2, 0.3]})
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['random order', 'knowledge, PRR 1.00', 'order by error']
    """
    error = check_target(error, "error")
    named = uncertainty if isinstance(uncertainty, Mapping) else {"uncertainty": uncertainty}
    ax = new_axes(ax)
    ax.plot([0.0, 1.0], [1.0, 0.0], color="0.7", linewidth=1, label="random order")
    for number, (name, values) in enumerate(named.items()):
        ratio = prr(error, values)
        ax.plot(*_curve(error, check_target(values, name)), **line_style(number), linewidth=1.8,
                label=f"{name}, PRR {ratio:.2f}")  # fmt: skip
    ax.plot(*_curve(error, error), color="0.5", linestyle=":", linewidth=1.4, label="order by error")
    ax.set(
        xlabel="share of rows handed over",
        ylabel="share of the error that remains",
        xlim=(0, 1),
        ylim=(0, None),
    )
    ax.legend(frameon=False)
    return ax


def _curve(error: np.ndarray, by: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of equal uncertainty are handed over together."""
    levels, group = np.unique(-by, return_inverse=True)
    count = np.bincount(group, minlength=len(levels))
    removed = np.bincount(group, error, len(levels))
    share = np.concatenate([[0.0], np.cumsum(count)]) / len(error)
    total = error.sum()
    taken = np.concatenate([[0.0], np.cumsum(removed)]) / (total if total > 0 else 1.0)
    return share, 1.0 - taken
