"""A described tree as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any

LINE = 18  # letters of a condition on one line


def draw_tree(rows: Sequence[dict[str, Any]], ax: Any = None) -> Any:
    """Draw a tree: a box a node, its condition on the line that leads there.

    Parameters
    ----------
    rows : sequence of dict
        Result of `boostplugins.usnrt.tree.describe`.
    ax : matplotlib Axes, optional
        Where to draw; by default new axes.

    Returns
    -------
    matplotlib Axes
        The axes, with the picture.

    Raises
    ------
    ImportError
        Without matplotlib; install ``boostplugins[plots]``.

    Examples
    --------
    >>> from boostplugins.usnrt.picture import draw_tree
    >>> from boostplugins.usnrt.tree import Tree, describe
    >>> ax = draw_tree(describe(Tree.single(10), ["a"], [()]))
    >>> [text.get_text() for text in ax.texts]
    ['10 rows']
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:  # pragma: no cover - depends on the installation
        raise ImportError("drawing a tree needs matplotlib: pip install boostplugins[plots]") from error
    if ax is None:
        leaves = sum(row["leaf"] for row in rows)
        depth = max(row["depth"] for row in rows)
        ax = Figure(figsize=(1.6 + 1.8 * leaves, 1.2 + 1.3 * depth), layout="constrained").add_subplot()
    loudest = max((row["residual_variance"] for row in rows if row["leaf"]), default=0.0)
    for row in rows:
        x, y = row["x"], -row["depth"]
        if row["parent"] >= 0:
            above = rows[row["parent"]]
            ax.plot([above["x"], x], [-above["depth"], y], color="0.6", linewidth=1, zorder=1)
            middle = 0.5 * (above["x"] + x), 0.5 * (y - above["depth"])
            # Siblings are half a leaf apart here: longer lines would cover each other.
            condition = fill(row["condition"], LINE, break_long_words=False)
            ax.text(*middle, condition, ha="center", va="center", fontsize=7, backgroundcolor="white")
        label = f"{row['n_rows']} rows"
        if row["residual_variance"] == row["residual_variance"]:
            label += f"\nvariance {row['residual_variance']:.3g}"
        # Leaves darken with their residual standard deviation, the picture's subject.
        shade = (row["residual_variance"] / loudest) ** 0.5 if row["leaf"] and loudest > 0 else 0.0
        face = (1.0, 1.0 - 0.5 * shade, 1.0 - 0.7 * shade) if row["leaf"] else "white"
        box = {"boxstyle": "round", "facecolor": face, "edgecolor": "0.3"}
        ax.text(x, y, label, ha="center", va="center", fontsize=8, bbox=box, zorder=2)
    ax.set_xlim(-0.6, max(row["x"] for row in rows) + 0.6)
    ax.set_ylim(-max(row["depth"] for row in rows) - 0.5, 0.5)
    ax.set_axis_off()
    return ax
