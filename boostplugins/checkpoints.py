"""Checkpoints: where a long fit stands, kept in a sealed file, so that a killed one can go on.

A file belongs to one fit: it carries a fingerprint of the data, the settings and the versions, and
any other fit refuses it. It is replaced as a whole, and removed by the fit that ends well.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from boostplugins._files import Content, read_model, write_model
from boostplugins._validation import check_integer

_KIND = "Checkpoint"
# Settings that change no bit of a fit.
_IDLE = {"checkpoint", "checkpoint_every", "n_jobs", "verbose"}


class Checkpoint:
    """File of one fit's checkpoints.

    Parameters
    ----------
    path : str or Path
        File to write; one that is there already is gone on from.
    every : int
        Iterations between two checkpoints.
    fingerprint : str
        What tells this fit from any other.
    """

    def __init__(self, path: str | Path, every: int, fingerprint: str) -> None:
        self.path = Path(path)
        self.every = check_integer("checkpoint_every", every, 1)
        self.fingerprint = fingerprint
        if not self.path.parent.is_dir():
            raise ValueError(f"checkpoint must be a file in a folder that exists, got {str(path)!r}")

    def load(self) -> Content | None:
        """Read the last checkpoint.

        Returns
        -------
        Content or None
            What `save` was given last; None where there is no file.

        Raises
        ------
        ValueError
            For a damaged file, or one of another fit.
        """
        if not self.path.exists():
            return None
        content = read_model(self.path, _KIND)
        if content.state.get("fingerprint") != self.fingerprint:
            raise ValueError(
                f"checkpoint {str(self.path)!r} belongs to a fit of other data, settings or versions; remove "
                "the file, or name another"
            )
        return content

    def save(
        self,
        state: dict[str, Any],
        arrays: Mapping[str, np.ndarray] | None = None,
        parts: Sequence[bytes] = (),
    ) -> None:
        """Keep where the fit stands.

        Parameters
        ----------
        state : dict
            JSON-ready state.
        arrays : mapping of ndarray, optional
            Arrays.
        parts : sequence of bytes, default=()
            Models in the boosters' own formats.
        """
        write_model(self.path, _KIND, {**state, "fingerprint": self.fingerprint}, arrays, parts)

    def finished(self) -> list[bytes]:
        """Give the stages that have ended, of a fit in several stages.

        Returns
        -------
        list of bytes
            Their models.
        """
        content = self.load()
        return [] if content is None else content.parts[: int(content.state.get("finished", 0))]

    def stage(self, finished: Sequence[bytes]) -> Stage:
        """Make the checkpoint of the next stage of a fit in several.

        Parameters
        ----------
        finished : sequence of bytes
            Models of the stages that have ended.

        Returns
        -------
        Stage
            Writes to the same file, beside those models.
        """
        return Stage(self, finished)

    @property
    def companion(self) -> Path:
        """Folder beside, for a booster that keeps where it stands in files of its own."""
        return self.path.with_name(f"{self.path.name}.booster")

    def remove(self) -> None:
        """Remove the files of a fit that has ended."""
        self.path.unlink(missing_ok=True)
        shutil.rmtree(self.companion, ignore_errors=True)


class Stage(Checkpoint):
    """Checkpoint of one stage of a fit; made by `Checkpoint.stage`.

    Parameters
    ----------
    whole : Checkpoint
        File of the fit.
    finished : sequence of bytes
        Models of the stages before.
    """

    def __init__(self, whole: Checkpoint, finished: Sequence[bytes]) -> None:
        super().__init__(whole.path, whole.every, whole.fingerprint)
        self._finished = tuple(finished)

    def load(self) -> Content | None:
        """Read the last checkpoint of this stage.

        Returns
        -------
        Content or None
            What `save` was given last; None where the stage has none.
        """
        content = super().load()
        if content is None or content.state.get("finished") != len(self._finished):
            return None
        stage = content.state["stage"]
        return None if stage is None else Content(stage, content.arrays, content.parts[len(self._finished) :])

    def save(
        self,
        state: dict[str, Any] | None,
        arrays: Mapping[str, np.ndarray] | None = None,
        parts: Sequence[bytes] = (),
    ) -> None:
        """Keep where the stage stands.

        Parameters
        ----------
        state : dict or None
            JSON-ready state; None before it has any.
        arrays : mapping of ndarray, optional
            Arrays.
        parts : sequence of bytes, default=()
            Models in the boosters' own formats.
        """
        whole = {"stage": state, "finished": len(self._finished)}
        super().save(whole, arrays, [*self._finished, *parts])


def checkpoint_of(estimator: Any, *data: Any) -> Checkpoint | None:
    """Make the checkpoint that an estimator's settings ask for.

    Parameters
    ----------
    estimator : object
        Estimator with the settings `checkpoint`, `checkpoint_every` and `random_state`.
    *data : object
        Arrays and tables of the fit.

    Returns
    -------
    Checkpoint or None
        None where `checkpoint` is None.

    Raises
    ------
    ValueError
        Where a resumed fit could not be the same one.
    """
    if estimator.checkpoint is None:
        return None
    if not isinstance(estimator.random_state, (int, np.integer)):
        raise ValueError(
            "random_state must be an integer with checkpoint, or a resumed fit would be another one, got "
            f"{estimator.random_state!r}"
        )
    settings = {name: value for name, value in estimator.get_params(deep=False).items() if name not in _IDLE}
    mark = fingerprint(type(estimator).__name__, sorted(settings.items()), *data)
    return Checkpoint(estimator.checkpoint, estimator.checkpoint_every, mark)


def fingerprint(*parts: Any) -> str:
    """Tell fits apart: by content, and by the versions that decide their bits.

    Parameters
    ----------
    *parts : object
        Names, settings, arrays and tables.

    Returns
    -------
    str
        Hexadecimal digits, the same in every process.

    Examples
    --------
    >>> from boostplugins.checkpoints import fingerprint
    >>> fingerprint([1, 2]) == fingerprint([1, 2]), fingerprint([1, 2]) == fingerprint([2, 1])
    (True, False)
    """
    together = hashlib.sha256()
    for name in ("boostplugins", "numpy", "numba", "catboost", "lightgbm"):
        together.update(f"{name} {_version(name)}\n".encode())
    for part in parts:
        together.update(_hash(part).encode())
    return together.hexdigest()


def _hash(part: Any) -> str:
    if isinstance(part, (list, tuple)):
        return " ".join([str(len(part)), *map(_hash, part)])
    try:
        return str(joblib.hash(part, hash_name="sha1"))
    except Exception:  # a function without a name: what it made of the data is part of the data
        return re.sub(" at 0x[0-9a-f]+", "", repr(part))


def _version(name: str) -> str:
    try:
        return version(name)
    except Exception:  # not installed, or a source tree
        return ""
