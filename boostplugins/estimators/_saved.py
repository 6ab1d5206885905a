"""Class labels as JSON: every type that a file can hold comes back as it was."""

from __future__ import annotations

from typing import Any

import numpy as np

_PLAIN = (bool, int, float, str)


def pack_labels(classes: np.ndarray) -> dict[str, Any]:
    """Make class labels JSON-ready.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Labels of any type.

    Returns
    -------
    dict
        Type and values.

    Raises
    ------
    ValueError
        For labels that are objects other than numbers and strings.
    """
    values = [value.item() if isinstance(value, np.generic) else value for value in classes.tolist()]
    strange = [value for value in values if type(value) not in _PLAIN]
    if strange:
        raise ValueError(
            f"classes must be numbers or strings to be saved, got {strange[0]!r} of type "
            f"{type(strange[0]).__name__}; fit with strings in their place, or pickle the model"
        )
    return {"type": "|O" if classes.dtype.kind not in "biufU" else classes.dtype.str, "values": values}


def unpack_labels(state: Any, old_type: str | None = None) -> np.ndarray:
    """Make labels of what `pack_labels` wrote.

    Parameters
    ----------
    state : dict or list
        JSON-ready labels; a list in files of the first format.
    old_type : str, optional
        Their type in files of the first format.

    Returns
    -------
    ndarray of shape (n_classes,)
        Labels.
    """
    if isinstance(state, list):
        state = {"type": old_type, "values": state}
    kind = object if state["type"] == "|O" else state["type"]
    if kind is not object and np.dtype(kind).kind not in "biufU":
        raise ValueError(f"labels cannot be of type {kind}")
    return np.array(state["values"], dtype=kind)
