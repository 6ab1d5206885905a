"""Traces of posterior draws, their ranks and R-hat: have the chains found the same place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import binom

from boostplugins._validation import check_integer
from boostplugins.hbart.diagnostics import ranks, split_rhat
from boostplugins.plots._axes import GREYS, LINES, new_axes

_GOOD, _BAD = 1.01, 1.05


def posterior_trace(model: Any, name: str = "sigma", *, X: Any = None, index: int = 0, ax: Any = None) -> Any:
    """Draw the draws of one quantity, a line a chain, with its R-hat.

    Parameters
    ----------
    model : BARTRegressor, HBARTRegressor, BARTClassifier, or mapping of str to ndarray
        Fitted; or draws of shape (n_chains, n_draws, ...) by name, as `posterior_draws` gives them.
    name : str, default="sigma"
        The quantity.
    X : array-like of shape (n_samples, n_features), optional
        Rows, for quantities of rows such as "f".
    index : int, default=0
        Which entry of a quantity that has several.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The axes; R-hat is in the title.

    Raises
    ------
    ValueError
        For an unknown quantity.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins import plots
    >>> draws = {"sigma": np.random.default_rng(0).normal(size=(2, 100))}
    >>> ax = plots.posterior_trace(draws)
    >>> len(ax.lines), ax.get_ylabel()
    (2, 'sigma')
    """
    chains, label = _one_quantity(model, X, name, index)
    ax = new_axes(ax, (6.0, 2.8))
    for number, chain in enumerate(chains):
        ax.plot(chain, color=GREYS[number % len(GREYS)], linestyle=LINES[number // len(GREYS) % len(LINES)],
                linewidth=0.9, label=f"chain {number}")  # fmt: skip
    rhat = float(split_rhat(chains))
    ax.set(xlabel="draw", ylabel=label, xlim=(0, chains.shape[1] - 1), title=f"R-hat {rhat:.3f}")
    ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def rank_plot(
    model: Any, name: str = "sigma", *, X: Any = None, index: int = 0, n_bins: int = 20, ax: Any = None
) -> Any:
    """Draw how the ranks of one quantity's draws among those of all chains spread within each chain.

    Parameters
    ----------
    model : BARTRegressor, HBARTRegressor, BARTClassifier, or mapping of str to ndarray
        Fitted; or draws of shape (n_chains, n_draws, ...) by name, as `posterior_draws` gives them.
    name : str, default="sigma"
        The quantity.
    X : array-like of shape (n_samples, n_features), optional
        Rows, for quantities of rows such as "f".
    index : int, default=0
        Which entry of a quantity that has several.
    n_bins : int, default=20
        Bins of ranks.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The axes, a line a chain; chains that agree are level at the dotted line, up to noise. The grey
        band holds 95 % of the bins of independent draws; those of a chain depend on one another and
        wander beyond it.

    Raises
    ------
    ValueError
        For an unknown quantity.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins import plots
    >>> draws = {"sigma": np.random.default_rng(0).normal(size=(2, 100))}
    >>> ax = plots.rank_plot(draws, n_bins=10)
    >>> [text.get_text() for text in ax.get_legend().get_texts()], ax.get_xlabel()
    (['chain 0', 'chain 1'], 'rank of sigma')
    """
    check_integer("n_bins", n_bins, 2)
    chains, label = _one_quantity(model, X, name, index)
    ax = new_axes(ax, (6.0, 2.8))
    edges = np.linspace(0.5, chains.size + 0.5, n_bins + 1)
    number = chains.shape[1]
    low, high = binom.ppf([0.025, 0.975], number, 1.0 / n_bins)
    ax.axhspan(low, high, color="0.9", zorder=0)
    ax.axhline(number / n_bins, color="0.5", linestyle=":", linewidth=1)
    for place, chain in enumerate(ranks(chains)):
        ax.stairs(np.histogram(chain, edges)[0], edges, color=GREYS[place % len(GREYS)],
                  linestyle=LINES[place // len(GREYS) % len(LINES)], label=f"chain {place}")  # fmt: skip
    ax.set(xlabel=f"rank of {label}", ylabel="draws", xlim=(edges[0], edges[-1]))
    ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def rhat_plot(model: Any, *, X: Any = None, ax: Any = None) -> Any:
    """Draw the split R-hat of every quantity.

    Parameters
    ----------
    model : BARTRegressor, HBARTRegressor, BARTClassifier, or mapping of str to ndarray
        Fitted; or draws of shape (n_chains, n_draws, ...) by name.
    X : array-like of shape (n_samples, n_features), optional
        Rows, whose quantities are drawn too.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The axes, a line a name and a dot for each of its entries; dashed at 1.01 (good), solid at 1.05
        (beyond it the model warns).

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins import plots
    >>> draws = {"sigma": np.random.default_rng(0).normal(size=(2, 100)), "f": np.zeros((2, 100, 3))}
    >>> ax = plots.rhat_plot(draws)
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['sigma', 'f']
    """
    draws = _draws(model, X)
    ax = new_axes(ax, (5.0, 1.0 + 0.35 * len(draws)))
    for place, values in enumerate(draws.values()):
        rhat = np.atleast_1d(split_rhat(values)).ravel()
        ax.plot(rhat, np.full(len(rhat), place), "o", color="black", markerfacecolor="none", markersize=5)
    ax.axvline(_GOOD, color="0.5", linestyle="--", zorder=0)
    ax.axvline(_BAD, color="0.5", linestyle="-", zorder=0)
    ax.set(yticks=range(len(draws)), ylim=(len(draws) - 0.5, -0.5), xlabel="split R-hat")
    ax.set_yticklabels(list(draws))
    return ax


def _one_quantity(model: Any, X: Any, name: str, index: int) -> tuple[np.ndarray, str]:
    """Draws (n_chains, n_draws) of one entry, and its label."""
    draws = _draws(model, X)
    if name not in draws:
        raise ValueError(f"name must be one of {list(draws)}, got {name!r}; quantities of rows need X")
    values = draws[name].reshape(*draws[name].shape[:2], -1)
    if not 0 <= index < values.shape[2]:
        raise ValueError(f"index must be in [0, {values.shape[2] - 1}], got {index}")
    return values[:, :, index], name if values.shape[2] == 1 else f"{name}[{index}]"


def _draws(model: Any, X: Any) -> dict[str, np.ndarray]:
    if hasattr(model, "posterior_draws"):
        found = model.posterior_draws(X)
    elif isinstance(model, Mapping):
        found = model
    else:
        raise TypeError(f"model must have posterior_draws or be a mapping, got {type(model).__name__}")
    draws = {name: np.asarray(values, dtype=np.float64) for name, values in found.items()}
    for name, values in draws.items():
        if values.ndim < 2:
            raise ValueError(
                f"draws of {name!r} must have shape (n_chains, n_draws, ...), got {values.shape}"
            )
    return draws
