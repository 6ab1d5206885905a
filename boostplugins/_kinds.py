"""Settings as stored models hold them, and classes by the name that they call them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np


def find_kind(base: type, attribute: str, name: Any, what: str) -> Any:
    """Find the subclass that gives itself a name, wherever it is defined.

    Living classes are looked through at each call rather than kept in a register, so that classes
    that travelled to another process are found as well, and a cell run again replaces its class.

    Parameters
    ----------
    base : type
        Base class.
    attribute : str
        Class attribute that holds the name; an inherited name does not count.
    name : object
        Name as a stored model has it.
    what : str
        What is looked for, for the message.

    Returns
    -------
    type
        The class.

    Raises
    ------
    ValueError
        Where no class has the name, or two different ones.
    """
    named = [(vars(kind).get(attribute), kind) for kind in _below(base)]
    found = {f"{kind.__module__}.{kind.__qualname__}": kind for known, kind in named if known == name}
    if not name or not found:
        known = sorted({known for known, _ in named if isinstance(known, str) and known})
        raise ValueError(
            f"{what} must be one of {known}, got {name!r}; a {base.__name__} of your own must be defined or "
            "imported before its model is read"
        )
    if len(found) > 1:
        raise ValueError(f"{what} {name!r} must be one class, got {' and '.join(found)}; rename one of them")
    return next(iter(found.values()))


def plain_settings(value: Any) -> dict[str, Any]:
    """Give the settings of a data class as JSON can hold them: numbers of numpy become Python's.

    Parameters
    ----------
    value : dataclass
        A schedule, mask or loss.

    Returns
    -------
    dict
        Settings by name.
    """
    return {name: _plain(setting) for name, setting in asdict(value).items()}


def _plain(setting: Any) -> Any:
    if isinstance(setting, (list, tuple)):
        return type(setting)(map(_plain, setting))
    return setting.item() if isinstance(setting, np.generic) else setting


def _below(base: type) -> Iterator[type]:
    kind: type
    for kind in base.__subclasses__():
        yield kind
        yield from _below(kind)
