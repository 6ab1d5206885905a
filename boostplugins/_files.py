"""Model files, written whole or not at all, and read only where their checksum fits.

A file is a zip archive that `numpy.load` opens too: ``head.json`` (what the model is, and its state),
``part0``, ``part1`` ... (the boosters' own formats), ``*.npy`` (arrays). The archive's comment seals it:
format and SHA-256 of all that stands before. The seal is checked before anything else is read, so that
no booster sees a damaged byte. It guards against damage, not against somebody who seals anew; nothing
in a file is ever executed, though, and sizes are checked before memory is taken.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import shutil
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

_OPEN = re.compile(r"/dev/(stdin|stdout|stderr)|(?:/dev|/proc/self)/fd/(\d+)")
_FORMAT = 2
_SEAL = "boostplugins format {:04d} sha256 "
_SEAL_PATTERN = re.compile(rb"boostplugins format (\d{4}) sha256 ([0-9a-f]{64})")
_DIGEST_LENGTH = 64
_SEAL_LENGTH = len(_SEAL.format(0)) + _DIGEST_LENGTH
_CHUNK = 1 << 20
# Unpacked bytes that a file may claim: so many, and so many times its own length.
_FREE_BYTES, _MOST_RATIO = 64 << 20, 100
_KINDS_OF_ARRAYS = "biufUSMm"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # of all members: equal models make equal files


class Content(NamedTuple):
    """What a model file holds.

    Attributes
    ----------
    state : dict
        JSON-ready state.
    arrays : dict of ndarray
        Arrays.
    parts : list of bytes
        Models in the boosters' own formats.
    """

    state: dict[str, Any]
    arrays: dict[str, np.ndarray]
    parts: list[bytes]


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file as a whole or not at all.

    Parameters
    ----------
    path : str or Path
        File to write or replace. A link stays one: the file that it leads to is replaced. A device or a
        pipe, such as ``/dev/stdout``, is written to.
    content : bytes
        Its content.
    """
    path = Path(path)
    if is_stream(path):
        number = _descriptor(path)
        if number is not None:  # opened anew, a file would be cut off
            sys.stdout.flush()
            number = os.dup(number)
        with open(path if number is None else number, "wb") as file:
            file.write(content)
        return
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    # Not `tempfile`, whose files only their owner may read.
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.is_file():
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def is_stream(path: Path) -> bool:
    """Tell whether a path is a device, a pipe or an open file, which must not be replaced by a file.

    Parameters
    ----------
    path : Path
        Any path.

    Returns
    -------
    bool
        False for files, folders and what does not exist.
    """
    return _descriptor(path) is not None or (path.exists() and not (path.is_file() or path.is_dir()))


def _descriptor(path: Path) -> int | None:
    """Number of the open file that a path such as ``/dev/stdout`` stands for."""
    found = _OPEN.fullmatch(path.as_posix())
    if found is None:
        return None
    return int(found[2] or ("stdin", "stdout", "stderr").index(found[1]))


def write_model(
    path: str | Path,
    kind: str,
    state: dict[str, Any],
    arrays: Mapping[str, np.ndarray] | None = None,
    parts: Sequence[bytes] = (),
) -> None:
    """Write a model file.

    Parameters
    ----------
    path : str or Path
        File to write or replace.
    kind : str
        Name of the estimator.
    state : dict
        JSON-ready state.
    arrays : mapping of ndarray, optional
        Arrays of numbers or strings.
    parts : sequence of bytes, default=()
        Models in the boosters' own formats.
    """
    head = {"format": _FORMAT, "kind": kind, "parts": len(parts), "state": state}
    members = {"head.json": json.dumps(head).encode()}
    members |= {f"part{number}": bytes(part) for number, part in enumerate(parts)}
    for name, array in (arrays or {}).items():
        stream = io.BytesIO()
        np.lib.format.write_array(stream, np.asarray(array), allow_pickle=False)
        members[f"{name}.npy"] = stream.getvalue()
    packed = _pack(members, zipfile.ZIP_DEFLATED)
    if sum(map(len, members.values())) > _room(len(packed)):  # a reader would take it for a bomb
        packed = _pack(members, zipfile.ZIP_STORED)
    body = packed[:-_DIGEST_LENGTH]
    write_bytes(path, body + hashlib.sha256(body).hexdigest().encode())


def read_model(path: str | Path, kind: str) -> Content:
    """Read a model file.

    Parameters
    ----------
    path : str or Path
        File that `write_model` wrote, in this version or an earlier one.
    kind : str
        Name of the estimator expected.

    Returns
    -------
    Content
        State, arrays and parts.

    Raises
    ------
    ValueError
        For a file that is damaged, of another kind, of a later format, or no model at all.
    """
    try:
        version, members = _open(path)
        if version <= _FORMAT:
            head = _head(members)
            found = head["kind"]
            content = Content(_state(head), _arrays(members), _parts(head, members))
            if not isinstance(found, str) or head["format"] != version:
                raise ValueError("its head does not fit its seal")
    except FileNotFoundError:
        raise
    except Exception as error:  # numpy, zipfile, zlib and json each have their own for a bad file
        raise ValueError(f"{path} is no saved model of boostplugins: {error}") from None
    if version > _FORMAT:
        raise ValueError(
            f"{path} has format {version}, this version reads formats up to {_FORMAT}; update boostplugins, "
            "or save the model with this version"
        )
    if found != kind:
        raise ValueError(f"{path} holds a {found}, not a {kind}; load it with {found}.load")
    return content


@contextmanager
def restoring(path: str | Path, kind: str) -> Iterator[None]:
    """Turn whatever goes wrong where a model is made of a file's content into one clear error.

    Parameters
    ----------
    path : str or Path
        The file.
    kind : str
        Name of the estimator.

    Yields
    ------
    None
        Make the model within.

    Raises
    ------
    ValueError
        In place of any other error but that of a missing booster.
    """
    try:
        yield
    except ImportError:
        raise
    except Exception as error:
        raise ValueError(f"{path} is no saved {kind}: {error!r}") from None


def _room(length: int) -> int:
    return _FREE_BYTES + _MOST_RATIO * length


def _pack(members: Mapping[str, bytes], compression: int) -> bytes:
    """Zip members, with a seal that lacks its digest."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, compress_type=compression)
        archive.comment = _SEAL.format(_FORMAT).encode() + b"0" * _DIGEST_LENGTH
    return stream.getvalue()


def _open(path: str | Path) -> tuple[int, dict[str, bytes]]:
    """Check the seal, and unpack the members of a format that is known."""
    with open(path, "rb") as stream:
        version = _check_seal(stream)
        if version > _FORMAT:
            return version, {}
        with zipfile.ZipFile(stream) as archive:
            held = archive.infolist()
            names = {info.filename for info in held}
            claimed = sum(info.file_size for info in held)
            if len(names) != len(held):
                raise ValueError("two of its parts have one name")
            if claimed > _room(stream.seek(0, os.SEEK_END)):
                raise ValueError(f"it claims to hold {claimed} bytes, far more than its own length allows")
            return version, {info.filename: _member(archive, info) for info in held}


def _check_seal(stream: IO[bytes]) -> int:
    """Give the format of a file whose checksum fits, or 1: files of the first format have no seal."""
    length = stream.seek(0, os.SEEK_END)
    stream.seek(max(length - _SEAL_LENGTH, 0))
    seal = _SEAL_PATTERN.fullmatch(stream.read())
    if seal is None:
        return 1
    digest, left = hashlib.sha256(), length - _DIGEST_LENGTH
    stream.seek(0)
    while left > 0 and (chunk := stream.read(min(left, _CHUNK))):
        digest.update(chunk)
        left -= len(chunk)
    if digest.hexdigest().encode() != seal[2]:
        raise ValueError("its checksum does not fit, the file is damaged")
    return int(seal[1])


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{info.filename} is packed in a way that models are not")
    with archive.open(info) as stream:
        content = stream.read(info.file_size)  # with a limit, or a bomb would unpack beyond its claim
    if len(content) != info.file_size:
        raise ValueError(f"{info.filename} is cut off")
    return content


def _head(members: dict[str, bytes]) -> dict[str, Any]:
    # The first format called its head model.json, or kept it as an array of bytes.
    for name in ("head.json", "model.json"):
        if name in members:
            return json.loads(members.pop(name))
    return json.loads(_array(members.pop("head.npy")).tobytes())


def _state(head: dict[str, Any]) -> dict[str, Any]:
    # The first format had the state of Bayesian trees in the head itself.
    return head if head["format"] == 1 and "n_chains" in head else head["state"]


def _parts(head: dict[str, Any], members: dict[str, bytes]) -> list[bytes]:
    return [members[f"part{number}"] for number in range(head.get("parts", 0))]


def _arrays(members: dict[str, bytes]) -> dict[str, np.ndarray]:
    suffix = ".npy"
    return {
        name.removesuffix(suffix): _array(content)
        for name, content in members.items()
        if name.endswith(suffix)
    }


def _array(content: bytes) -> np.ndarray:
    """Read an array whose shape is what its bytes allow."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, _, dtype = read_header[version](stream)
    count = 1
    for length in shape:
        count *= length
    if dtype.kind not in _KINDS_OF_ARRAYS or count * dtype.itemsize != len(content) - stream.tell():
        raise ValueError(f"an array claims {dtype} of shape {shape}, which it does not hold")
    stream.seek(0)
    return np.lib.format.read_array(stream, allow_pickle=False)
