"""Families: distributions of the response whose every parameter can be boosted."""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache
from typing import Any

from boostplugins._kinds import find_kind
from boostplugins.families.base import Family
from boostplugins.families.normal import Normal
from boostplugins.families.support import Support

__all__ = ["Family", "Normal", "Support", "families", "family_from_dict", "get_family"]


@lru_cache(maxsize=1)
def _found() -> dict[str, type[Family]]:
    found: dict[str, type[Family]] = {}
    for module in pkgutil.iter_modules(__path__):
        for item in vars(importlib.import_module(f"{__name__}.{module.name}")).values():
            if isinstance(item, type) and issubclass(item, Family) and item.name:
                found[item.name] = item
    return found


@lru_cache(maxsize=1)
def _wrapped() -> dict[str, Family]:
    """GAMLSS short names of families that wrap another."""
    from boostplugins.families.hurdle import Hurdle
    from boostplugins.families.negative_binomial import NegativeBinomial
    from boostplugins.families.poisson import Poisson
    from boostplugins.families.zero_inflated import ZeroInflated

    return {
        "ZIP": ZeroInflated(Poisson()),
        "ZINBI": ZeroInflated(NegativeBinomial()),
        "ZAP": Hurdle(Poisson()),
        "ZANBI": Hurdle(NegativeBinomial()),
        "ZAGA": Hurdle(),
    }


def families() -> dict[str, type[Family]]:
    """Find the families: every named `Family` defined in a file of this folder.

    Returns
    -------
    dict of str to type
        Classes by name.

    Examples
    --------
    >>> from boostplugins.families import families
    >>> "normal" in families()
    True
    """
    return dict(_found())


def get_family(family: str | Family | type[Family]) -> Family:
    """Find a family by its name.

    Parameters
    ----------
    family : str, Family or type
        Name, alias (GAMLSS short names are known), an instance, or a class.

    Returns
    -------
    Family
        The family.

    Raises
    ------
    ValueError
        For an unknown name.
    TypeError
        For anything that is no family.

    Examples
    --------
    >>> from boostplugins.families import get_family
    >>> get_family("NO")
    Normal()
    """
    if isinstance(family, Family):
        return family
    if isinstance(family, type) and issubclass(family, Family):
        return family()
    if not isinstance(family, str):
        raise TypeError(f"family must be a name or a Family, got {family!r} of type {type(family).__name__}")
    if family in _wrapped():
        return _wrapped()[family]
    for name, kind in _found().items():
        if family == name or family in kind.aliases:
            try:
                return kind()
            except TypeError:
                raise ValueError(f"family {name!r} needs arguments; pass {kind.__name__}(...)") from None
    names = sorted([*_found(), *_wrapped(), *(alias for kind in _found().values() for alias in kind.aliases)])
    raise ValueError(f"family must be one of {names} or a Family, got {family!r}")


def family_from_dict(description: dict[str, Any]) -> Family:
    """Make a family from its description.

    Parameters
    ----------
    description : dict
        What ``to_dict`` gave.

    Returns
    -------
    Family
        An equal family.

    Raises
    ------
    ValueError
        For a family that this version does not know, or options that are not its own.

    Examples
    --------
    >>> from boostplugins.families import Normal, family_from_dict
    >>> family_from_dict(Normal().to_dict())
    Normal()
    """
    options = {
        key: family_from_dict(value) if isinstance(value, dict) else value
        for key, value in description.items()
    }
    _found()  # imports their files
    kind = find_kind(Family, "name", options.pop("name", None), "family")
    try:
        return kind(**options)
    except TypeError as error:
        raise ValueError(f"family description {description!r} does not fit: {error}") from None


def __getattr__(name: str) -> Any:
    for kind in _found().values():
        if kind.__name__ == name:
            return kind
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
