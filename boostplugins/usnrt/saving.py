"""Trees, networks and encoders as arrays and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from boostplugins.usnrt.calibration import GROUPS, Correction
from boostplugins.usnrt.encoding import TableEncoder
from boostplugins.usnrt.network import History, Network, NetworkSpec
from boostplugins.usnrt.pair import MeanVariance
from boostplugins.usnrt.tree import Tree, TreeModel

_TREE_FIELDS = tuple(Tree.__dataclass_fields__)
Arrays = dict[str, np.ndarray]


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
        Tree arrays, parameters a leaf a row, corrections.
    """
    arrays: Arrays = {}
    for number, model in enumerate(models):
        for name in _TREE_FIELDS:
            arrays[f"tree{number}.{name}"] = getattr(model.tree, name)
        arrays[f"mean{number}"] = np.stack([pair.mean.params for pair in model.pairs])
        arrays[f"variance{number}"] = np.stack([pair.variance.params for pair in model.pairs])
        arrays[f"scale{number}"] = np.array([pair.correction.factor for pair in model.pairs])
        shapes = [pair.correction.shape for pair in model.pairs]
        if any(shape is not None for shape in shapes):  # a leaf without one has NaN
            none = np.full((2, GROUPS), np.nan)
            arrays[f"shape{number}"] = np.stack([none if shape is None else shape for shape in shapes])
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
        shapes = arrays.get(f"shape{number}", np.full((leaves, 2, GROUPS), np.nan))
        if shapes.shape != (leaves, 2, GROUPS):
            raise ValueError(f"shapes of errors {shapes.shape} do not fit {leaves} leaves")
        corrections = [
            Correction(float(factor), None if np.isnan(shape).any() else shape)
            for factor, shape in zip(arrays[f"scale{number}"], shapes, strict=True)
        ]
        pairs = (MeanVariance(*parts) for parts in zip(means, variances, corrections, strict=True))
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
