"""Losses on the raw scale: squared error, logistic, softmax, likelihoods of Normals and of any family."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from boostplugins._kinds import find_kind
from boostplugins.losses.base import Loss, check_loss
from boostplugins.losses.likelihood import FamilyLikelihood
from boostplugins.losses.logistic import Logistic
from boostplugins.losses.normal import NormalLikelihood
from boostplugins.losses.softmax import Softmax
from boostplugins.losses.squared_error import SquaredError

__all__ = [
    "FamilyLikelihood",
    "Logistic",
    "Loss",
    "NormalLikelihood",
    "Softmax",
    "SquaredError",
    "check_loss",
    "get_loss",
    "loss_from_dict",
    "losses",
]


def losses() -> dict[str, type[Loss]]:
    """Find the losses: every `Loss` defined in a file of this folder.

    Returns
    -------
    dict of str to type
        Classes by name.

    Examples
    --------
    >>> from boostplugins.losses import losses
    >>> sorted(losses())
    ['likelihood', 'logistic', 'normal', 'softmax', 'squared_error']
    """
    found: dict[str, type[Loss]] = {}
    for module in pkgutil.iter_modules(__path__):
        for item in vars(importlib.import_module(f"{__name__}.{module.name}")).values():
            if isinstance(item, type) and issubclass(item, Loss) and item is not Loss:
                found[item.name] = item
    return found


def get_loss(loss: str | Loss | type[Loss]) -> Loss:
    """Find a loss by its name.

    Parameters
    ----------
    loss : str, Loss or type
        Name or alias (the boosters' own names are known), an instance, or a class.

    Returns
    -------
    Loss
        The loss.

    Raises
    ------
    ValueError
        For an unknown name.
    TypeError
        For anything that is no loss.

    Examples
    --------
    >>> from boostplugins.losses import get_loss
    >>> get_loss("RMSE")
    SquaredError(noise_variance=None)
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, type) and issubclass(loss, Loss):
        return loss()
    known = losses()
    if isinstance(loss, str):
        for name, kind in known.items():
            if loss == name or loss in kind.aliases:
                return kind()
        names = sorted([*known, *(alias for kind in known.values() for alias in kind.aliases)])
        raise ValueError(f"loss must be one of {names} or a Loss, got {loss!r}")
    raise TypeError(f"loss must be a name or a Loss, got {loss!r} of type {type(loss).__name__}")


def loss_from_dict(description: dict[str, Any]) -> Loss:
    """Make a loss from its description.

    Parameters
    ----------
    description : dict
        What ``to_dict`` gave.

    Returns
    -------
    Loss
        An equal loss.

    Raises
    ------
    ValueError
        For a loss that this version does not know, or options that are not its own.
    """
    options = dict(description)
    losses()  # imports their files
    kind = find_kind(Loss, "name", options.pop("name", None), "loss")
    try:
        return kind(**options)
    except TypeError as error:
        raise ValueError(f"loss description {description!r} does not fit: {error}") from None
