"""Model files: a zip of JSON and the boosters' own formats, written whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_FORMAT = 1


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file as a whole or not at all.

    Parameters
    ----------
    path : str or Path
        File to write or replace.
    content : bytes
        Its content.
    """
    path = Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_archive(path: str | Path, kind: str, state: dict[str, Any], parts: Sequence[bytes]) -> None:
    """Write a model archive.

    Parameters
    ----------
    path : str or Path
        File to write or replace.
    kind : str
        Name of the estimator.
    state : dict
        JSON-ready state.
    parts : sequence of bytes
        Models in the boosters' own formats.
    """
    path = Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            head = {"format": _FORMAT, "kind": kind, "parts": len(parts), "state": state}
            archive.writestr("model.json", json.dumps(head))
            for number, part in enumerate(parts):
                archive.writestr(f"part{number}", part)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_archive(path: str | Path, kind: str) -> tuple[dict[str, Any], list[bytes]]:
    """Read a model archive.

    Parameters
    ----------
    path : str or Path
        File that `write_archive` wrote.
    kind : str
        Name of the estimator expected.

    Returns
    -------
    state : dict
        Its state.
    parts : list of bytes
        Its models.

    Raises
    ------
    ValueError
        For a file of another kind, format or none.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            head = json.loads(archive.read("model.json"))
            parts = [archive.read(f"part{number}") for number in range(head["parts"])]
            found, version, state = head["kind"], head["format"], head["state"]
    except FileNotFoundError:
        raise
    except (OSError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is no saved model of boostplugins: {error}") from None
    if version != _FORMAT:
        raise ValueError(f"{path} has format {version}, this version reads {_FORMAT}; save it again")
    if found != kind:
        raise ValueError(f"{path} holds a {found}, not a {kind}; load it with {found}.load")
    return state, parts
