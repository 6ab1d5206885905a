"""Finished fits, kept as JSON files in a folder, so that a broken run goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from boostplugins._files import write_bytes

_LOGGER = logging.getLogger(__name__)
_FORMAT = 1


class Store:
    """Records of finished fits by the digest of all that decides them.

    Parameters
    ----------
    folder : str, Path or None
        Where to keep them, made if missing; None keeps nothing.

    Raises
    ------
    ValueError
        Where the folder cannot be made.
    """

    def __init__(self, folder: str | Path | None) -> None:
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ValueError(f"results must be a folder, {folder} cannot be made: {error}") from None

    def _path(self, job: dict[str, Any]) -> Path:
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", job["model"])[:60]
        assert self.folder is not None
        return self.folder / f"{name}-{job['fold']}-{job['digest'][:16]}.json"

    def get(self, job: dict[str, Any]) -> dict[str, Any] | None:
        """Read the record of a job.

        Parameters
        ----------
        job : dict
            ``model``, ``fold`` and ``digest``.

        Returns
        -------
        dict or None
            Its record; None where there is none that fits.
        """
        if self.folder is None:
            return None
        path = self._path(job)
        try:
            record = json.loads(path.read_text())
            found = record["format"] == _FORMAT and record["digest"] == job["digest"]
            scores = {name: float(value) for name, value in record["scores"].items()}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            _LOGGER.warning("%s holds no finished fit (%s); it is fitted again", path, error)
            return None
        return record | {"scores": scores, "error": None} if found else None

    def put(self, record: dict[str, Any]) -> None:
        """Keep a record, whole or not at all; a failure is not kept, so that it is tried again.

        Parameters
        ----------
        record : dict
            What a job gave.
        """
        if self.folder is None or record["error"] is not None:
            return
        # As text, since JSON knows no NaN and no infinity.
        scores = {name: repr(float(value)) for name, value in record["scores"].items()}
        held = {"format": _FORMAT, **record, "scores": scores}
        write_bytes(self._path(record), json.dumps(held, indent=1).encode())


def digest_of(*parts: Any) -> str:
    """Fingerprint of objects by their content.

    Parameters
    ----------
    *parts : object
        Arrays, tables, estimators, settings.

    Returns
    -------
    str
        Hexadecimal digits, the same in every process.
    """
    together = hashlib.sha256()
    for part in parts:
        together.update(_digest(part).encode())
    return together.hexdigest()


def _digest(part: Any) -> str:
    if hasattr(part, "get_params"):
        kind = type(part)
        params = sorted(part.get_params(deep=False).items())
        return digest_of(f"{kind.__module__}.{kind.__qualname__}", _version(kind), params)
    if isinstance(part, (list, tuple)):
        return digest_of("sequence", len(part), *part) if len(part) else "empty"
    if isinstance(part, np.ndarray) and part.dtype != object:
        part = np.ascontiguousarray(part)
    try:
        return str(joblib.hash(part, hash_name="sha1"))
    except Exception:  # what cannot be pickled still has a name
        return re.sub(r" at 0x[0-9a-f]+", "", repr(part))


def _version(kind: type) -> str:
    try:
        return version(kind.__module__.split(".")[0].replace("sklearn", "scikit-learn"))
    except PackageNotFoundError:
        return ""
