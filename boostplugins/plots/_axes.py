"""Axes to draw on, and styles that survive a greyscale print."""

from __future__ import annotations

from typing import Any

# Lightness rises along this map, so that it prints in grey.
SHADES = "cividis"
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 3)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
GREYS = ("0.0", "0.35", "0.55", "0.7")


def new_axes(ax: Any, size: tuple[float, float] = (5.0, 3.6)) -> Any:
    """Give the axes to draw on.

    Parameters
    ----------
    ax : Axes or None
        The user's; None makes a new figure.
    size : tuple of float, default=(5.0, 3.6)
        Inches of a new figure.

    Returns
    -------
    Axes
        Axes.

    Raises
    ------
    ImportError
        Without matplotlib.
    """
    pyplot = import_pyplot()
    return pyplot.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def import_pyplot() -> Any:
    """Import ``matplotlib.pyplot`` when first needed.

    Returns
    -------
    module
        The module.

    Raises
    ------
    ImportError
        Without matplotlib.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('plots need matplotlib: pip install "boostplugins[plots]"') from error
    return pyplot


def line_style(number: int) -> dict[str, Any]:
    """Style of one of several lines.

    Parameters
    ----------
    number : int
        Which, from 0.

    Returns
    -------
    dict
        Line style and a shade of grey.
    """
    return {"linestyle": LINES[number % len(LINES)], "color": GREYS[number % len(GREYS)]}
