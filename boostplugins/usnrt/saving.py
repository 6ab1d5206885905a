"""Trees, networks and encoders as arrays and JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from boostplugins._files import write_bytes
from boostplugins.usnrt.encoding import TableEncoder
from boostplugins.usnrt.network import History, Network, NetworkSpec
from boostplugins.usnrt.pair import MeanVariance
from boostplugins.usnrt.tree import Tree, TreeModel

_FORMAT = 1
_TREE_FIELDS = tuple(Tree.__dataclass_fields__)
Arrays = dict[str, np.ndarray]


def write_model(path: str | Path, kind: str, state: dict[str, Any], arrays: Arrays) -> None:
    """Write a model file: npz with a JSON head, whole or not at all.

    Parameters
    ----------
    path : str or Path
        File to write or replace.
    kind : str
        Name of the estimator.
    state : dict
        JSON-ready state.
    arrays : dict of ndarray
        Numeric arrays.
    """
    head = json.dumps({"format": _FORMAT, "kind": kind, "state": state})
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer, allow_pickle=False, head=np.frombuffer(head.encode(), dtype=np.uint8), **arrays
    )
    write_bytes(path, buffer.getvalue())


def read_model(path: str | Path, kind: str) -> tuple[dict[str, Any], Arrays]:
    """Read a model file.

    Parameters
    ----------
    path : str or Path
        File that `write_model` wrote.
    kind : str
        Name of the estimator expected.

    Returns
    -------
    state : dict
        Its state.
    arrays : dict of ndarray
        Its arrays.

    Raises
    ------
    ValueError
        For a file of another kind, format or none.
    """
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        head = json.loads(arrays.pop("head").tobytes().decode())
        found, version, state = head["kind"], head["format"], head["state"]
    except FileNotFoundError:
        raise
    except Exception as error:  # numpy, zipfile, zlib and json each have their own for a bad file
        raise ValueError(f"{path} is no saved model of boostplugins: {error}") from None
    if version != _FORMAT:
        raise ValueError(f"{path} has format {version}, this version reads {_FORMAT}; save it again")
    if found != kind:
        raise ValueError(f"{path} holds a {found}, not a {kind}; load it with {found}.load")
    return state, arrays


def pack_encoder(encoder: TableEncoder) -> tuple[dict[str, Any], Arrays]:
    """Take an encoder apart.

    Parameters
    ----------
    encoder : TableEncoder
        The encoder.

    Returns
    -------
    state : dict
        Levels, and those shown to the networks.
    arrays : dict of ndarray
        Means, scales, marks.
    """
    state = {
        "levels": [list(names) for names in encoder.levels],
        "shown": [s.tolist() for s in encoder.shown],
    }
    return state, {
        "encoder.center": encoder.center,
        "encoder.scale": encoder.scale,
        "encoder.marked": encoder.marked,
    }


def unpack_encoder(state: dict[str, Any], arrays: Arrays) -> TableEncoder:
    """Put an encoder together.

    Parameters
    ----------
    state : dict
        Of `pack_encoder`.
    arrays : dict of ndarray
        Of `pack_encoder`.

    Returns
    -------
    TableEncoder
        The encoder.
    """
    return TableEncoder(
        tuple(tuple(names) for names in state["levels"]),
        tuple(np.array(codes, dtype=np.intp) for codes in state["shown"]),
        arrays["encoder.center"],
        arrays["encoder.scale"],
        arrays["encoder.marked"],
    )


def pack_models(models: Sequence[TreeModel]) -> Arrays:
    """Take trees and their networks apart.

    Parameters
    ----------
    models : sequence of TreeModel
        Members.

    Returns
    -------
    dict of ndarray
        Tree arrays, parameters a leaf a row, scales.
    """
    arrays: Arrays = {}
    for number, model in enumerate(models):
        for name in _TREE_FIELDS:
            arrays[f"tree{number}.{name}"] = getattr(model.tree, name)
        arrays[f"mean{number}"] = np.stack([pair.mean.params for pair in model.pairs])
        arrays[f"variance{number}"] = np.stack([pair.variance.params for pair in model.pairs])
        arrays[f"scale{number}"] = np.array([pair.scale for pair in model.pairs])
    return arrays


def unpack_models(
    count: int, specs: tuple[NetworkSpec, NetworkSpec], n_inputs: int, arrays: Arrays
) -> list[TreeModel]:
    """Put trees and their networks together.

    Parameters
    ----------
    count : int
        Members.
    specs : tuple of NetworkSpec
        Of mean and variance networks.
    n_inputs : int
        What the networks see.
    arrays : dict of ndarray
        Of `pack_models`.

    Returns
    -------
    list of TreeModel
        Members.

    Raises
    ------
    ValueError
        For arrays that do not fit together.
    """
    models = []
    for number in range(count):
        tree = Tree(*(arrays[f"tree{number}.{name}"] for name in _TREE_FIELDS))
        leaves = len(tree.leaves)
        inner = tree.feature >= 0
        place = np.arange(len(tree.feature))
        for child in (tree.left, tree.right):
            if not (child[inner] > place[inner]).all() or (child >= len(place)).any():
                raise ValueError("children must come after their parent")
        params = arrays[f"mean{number}"], arrays[f"variance{number}"]
        for spec, values in zip(specs, params):
            if values.shape != (leaves, spec.n_params(n_inputs)):
                raise ValueError(f"parameters of shape {values.shape} do not fit {leaves} leaves")
        means, variances = (
            [Network(spec, n_inputs, row) for row in values] for spec, values in zip(specs, params)
        )
        scales = arrays[f"scale{number}"]
        pairs = (MeanVariance(m, v, float(s)) for m, v, s in zip(means, variances, scales, strict=True))
        models.append(TreeModel(tree, tuple(pairs)))
    return models


def pack_history(history: Sequence[tuple[History, ...]]) -> list[Any]:
    """Turn histories into lists.

    Parameters
    ----------
    history : sequence of tuple of History
        Of each leaf.

    Returns
    -------
    list
        JSON-ready.
    """
    return [[[list(h.loss), h.best_epoch] for h in leaf] for leaf in history]


def unpack_history(state: list[Any]) -> list[tuple[History, ...]]:
    """Turn lists into histories.

    Parameters
    ----------
    state : list
        Of `pack_history`.

    Returns
    -------
    list of tuple of History
        Of each leaf.
    """
    return [tuple(History(tuple(loss), best) for loss, best in leaf) for leaf in state]
