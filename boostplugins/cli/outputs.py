"""Places to write to, tried before any work is done for them."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterable
from pathlib import Path

from boostplugins._files import is_stream
from boostplugins.cli.errors import UsageError


def check_files(written: dict[str, Path | None], read: Iterable[Path]) -> None:
    """Refuse files that cannot be written, or that would overwrite each other or what is read.

    Parameters
    ----------
    written : dict of str to Path or None
        Files to write, by their options.
    read : iterable of Path
        Files to read.

    Raises
    ------
    UsageError
        Naming the file.
    """
    inputs = [path.resolve() for path in read]
    taken: dict[Path, str] = {}
    for option, path in written.items():
        if path is None:
            continue
        if path.resolve() in inputs:
            raise UsageError(f"{path} is one of the files to read and would be lost; write to another")
        if str(path) == "-":
            raise UsageError(f"{option} must be a file, got -; the standard output is /dev/stdout")
        other = taken.setdefault(path.resolve(), option)
        if other != option:
            raise UsageError(f"{other} and {option} are the same file {path}; give two")
        _check_file(option, path)


def _check_file(option: str, path: Path) -> None:
    try:
        if path.is_dir():
            raise UsageError(f"{option} {path} is a folder; give a file")
        if not is_stream(path) and not path.resolve().parent.is_dir():
            raise UsageError(f"the folder of {path} does not exist; make it first")
        if is_stream(path):  # trying it would be seen at its other end
            if not os.access(path, os.W_OK):
                raise UsageError(f"{option} {path} cannot be written: Permission denied")
            return
        # Permissions alone do not tell: file systems are full, read-only or bound names in length.
        path = path.resolve()
        probe = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        probe.open("xb").close()
        probe.unlink()
    except OSError as error:
        raise UsageError(f"{option} {path} cannot be written: {error.strerror}") from None


def check_folder(folder: Path) -> None:
    """Refuse a folder for results that cannot be made or written to; it is not made yet.

    Parameters
    ----------
    folder : Path
        Value of ``--out``.

    Raises
    ------
    UsageError
        Naming the folder.
    """
    try:
        there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
        if not there.is_dir():
            raise UsageError(f"--out {folder} cannot be made: {there} is a file, not a folder")
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        raise UsageError(f"--out {folder} cannot be written: {error.strerror}") from None
