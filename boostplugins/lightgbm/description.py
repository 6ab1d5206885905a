"""The chain's description inside a LightGBM model.

A LightGBM model keeps its training parameters in its text, through saving, loading, copying and
pickling. One of them, the path of a data file for the command line, means nothing to a model
trained from Python: it holds the description, as compressed JSON in base64.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from typing import Any

from lightgbm import Booster, Dataset

_PARAMETER = "data"
_MARK = "boostplugins-"
_MOST_SHOWN = 100  # characters of a setting in a message


def write_description(booster: Booster, description: dict[str, Any], into_text: bool = True) -> None:
    """Store a description in a booster that is being trained.

    Parameters
    ----------
    booster : Booster
        The booster.
    description : dict
        JSON-ready description.
    into_text : bool, default=True
        Whether to store it in the model's text too: LightGBM takes no parameter once it has found no
        feature that can be split.
    """
    packed = zlib.compress(json.dumps(description).encode(), level=9)
    parameter = {_PARAMETER: _MARK + base64.urlsafe_b64encode(packed).decode().rstrip("=")}
    if into_text:
        booster.reset_parameter(parameter)
    else:
        booster.params |= parameter


def read_description(booster: Booster) -> dict[str, Any] | None:
    """Read the description that a booster carries.

    Parameters
    ----------
    booster : Booster
        Trained or loaded booster.

    Returns
    -------
    dict or None
        The description; None where the booster carries none.

    Raises
    ------
    ValueError
        For a description that was damaged.
    """
    text = (booster.params or {}).get(_PARAMETER)
    if isinstance(text, (list, tuple)):
        text = text[0] if text else None
    if not text:
        text = _in_text(booster)
    if not isinstance(text, str) or not text.startswith(_MARK):
        return None
    body = text[len(_MARK) :]
    try:
        packed = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
        return json.loads(zlib.decompress(packed))
    except (binascii.Error, zlib.error, ValueError) as error:
        raise ValueError(f"the description of the chain in the model is damaged: {error}") from None


def earlier_description(data: Dataset) -> dict[str, Any] | None:
    """Read the description that the ``init_model`` of a training carries.

    Parameters
    ----------
    data : Dataset
        Training set, which holds the model as what LightGBM predicts with.

    Returns
    -------
    dict or None
        The description; None where there is no model, or none that says which chain it is.
    """
    handle = getattr(getattr(data, "_predictor", None), "_handle", None)
    if handle is None:
        return None
    lent: Any = Booster.__new__(Booster)
    lent._handle, lent.params, lent.pandas_categorical = handle, {}, None
    try:
        return read_description(lent)
    finally:
        lent._handle = None  # it is not ours to free


def check_continued(earlier: dict[str, Any] | None, description: dict[str, Any]) -> None:
    """Refuse to go on with a model whose states a reader would take for others.

    Parameters
    ----------
    earlier : dict or None
        Description of the ``init_model``.
    description : dict
        Description of the chain.

    Raises
    ------
    ValueError
        Naming the setting at fault.
    """
    if earlier is None:
        raise ValueError(
            "init_model must be trained with a chain, got a model that does not say which; to start from its "
            "predictions give the data sets init_score=model.predict(X, raw_score=True)"
        )
    now = json.loads(json.dumps(description))
    for name in ("schedule", "prior", "shrink"):
        if earlier.get(name) != now[name]:
            raise ValueError(
                f"init_model must be trained with the same {name}, {_short(now[name])}, got "
                f"{_short(earlier.get(name))}; the states of one model are read by one {name}"
            )
    if earlier["loss"]["name"] != now["loss"]["name"]:
        raise ValueError(
            f"init_model must be trained with the same loss, {now['loss']['name']}, got "
            f"{earlier['loss']['name']}"
        )


def _short(setting: Any) -> str:
    text = str(setting)
    return text if len(text) < _MOST_SHOWN else "another"


def _in_text(booster: Booster) -> str | None:
    """Find the parameter in the model's text: LightGBM 4.5 takes none from there into a copy."""
    found = re.search(rf"^\[{_PARAMETER}: (\S*)\]$", booster.model_to_string(num_iteration=1), re.MULTILINE)
    return None if found is None else found[1]
