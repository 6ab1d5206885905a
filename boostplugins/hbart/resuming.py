"""Chains of Bayesian trees taken apart into arrays, and set back to where they stood."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from boostplugins.hbart.chains import Run
from boostplugins.hbart.posterior import ForestDraws, Pieces, _one_chain

_SHARED = {"codes", "zt"}  # of the data: large, and never written to
_FOREST = tuple(ForestDraws.__dataclass_fields__)


def pack_runs(runs: Sequence[Run]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Take chains apart.

    Parameters
    ----------
    runs : sequence of Run
        Chains between two rounds.

    Returns
    -------
    state : dict
        Their sources of randomness, JSON-ready.
    arrays : dict of ndarray
        All that changes while they run, and the draws kept.
    """
    state: dict[str, Any] = {"rng": [run.rng.bit_generator.state for run in runs]}
    arrays: dict[str, np.ndarray] = {}
    for number, run in enumerate(runs):
        arrays |= {f"{number}.{name}": array for name, array in _changing(run)}
        if run.pieces.n_draws:
            for kind, parts in (("mean", run.pieces.mean), ("variance", run.pieces.variance)):
                draws = _one_chain(parts)
                arrays |= {f"{number}.draws.{kind}.{name}": getattr(draws, name) for name in _FOREST}
            arrays[f"{number}.draws.scalars"] = np.concatenate(run.pieces.scalars)
    return state, arrays


def unpack_runs(runs: Sequence[Run], state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Set chains back to where others stood.

    Parameters
    ----------
    runs : sequence of Run
        Chains of the same problem before their first iteration, changed in place.
    state : dict
        Of `pack_runs`.
    arrays : dict of ndarray
        Of `pack_runs`.
    """
    for number, run in enumerate(runs):
        run.rng.bit_generator.state = state["rng"][number]
        for name, array in _changing(run):
            array[...] = arrays[f"{number}.{name}"]
        if f"{number}.draws.scalars" in arrays:
            mean, variance = (
                ForestDraws(*(arrays[f"{number}.draws.{kind}.{name}"] for name in _FOREST))
                for kind in ("mean", "variance")
            )
            run.pieces = Pieces([mean], [variance], [arrays[f"{number}.draws.scalars"]])


def _changing(run: Run) -> Iterator[tuple[str, np.ndarray]]:
    yield from _arrays("chain", run.chain)
    yield from _arrays("changed", run.changed)
    yield from _arrays("current", run.current)


def _arrays(name: str, item: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Name every array of nested tuples."""
    if isinstance(item, np.ndarray):
        yield name, item
    elif isinstance(item, tuple):
        names = getattr(item, "_fields", range(len(item)))
        for inner, value in zip(names, item):
            if inner not in _SHARED:
                yield from _arrays(f"{name}.{inner}", value)
