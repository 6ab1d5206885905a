"""Soft tree models as arrays and JSON, in files without executable code."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from boostplugins.families import Family, family_from_dict
from boostplugins.soft_trees.encoding import Encoder
from boostplugins.soft_trees.model import SoftTreeModel
from boostplugins.soft_trees.objective import Predictor
from boostplugins.soft_trees.structured import Linear, Smooth, Term
from boostplugins.soft_trees.tree import SoftTree

Arrays = dict[str, np.ndarray]


def pack_tree(tree: SoftTree, prefix: str, arrays: Arrays) -> None:
    """Put a tree among arrays.

    Parameters
    ----------
    tree : SoftTree
        The tree.
    prefix : str
        Start of the arrays' names.
    arrays : dict of ndarray
        Added to.
    """
    for name in ("node", "intercept", "omega", "beta"):
        arrays[f"{prefix}.{name}"] = getattr(tree, name)


def unpack_tree(prefix: str, arrays: Arrays) -> SoftTree:
    """Take a tree from arrays, refusing what cannot be one.

    Parameters
    ----------
    prefix : str
        Start of the arrays' names.
    arrays : dict of ndarray
        What `pack_tree` added to.

    Returns
    -------
    SoftTree
        The tree.

    Raises
    ------
    ValueError
        For arrays that do not fit together.
    """
    node, intercept, omega, beta = (
        arrays[f"{prefix}.{name}"] for name in ("node", "intercept", "omega", "beta")
    )
    splits = len(node)
    fits = intercept.shape == (splits,) and omega.shape[:1] == (splits,) and beta.shape == (2 * splits + 1,)
    # The compiled passes trust these numbers.
    if not fits or omega.ndim != 2 or (node < 0).any() or (node > 2 * np.arange(splits)).any():
        raise ValueError(f"arrays of tree {prefix} do not fit together")
    return SoftTree(node.astype(np.int64), intercept, omega, beta)


def pack_encoder(encoder: Encoder, arrays: Arrays) -> dict[str, Any]:
    """Put an encoder among arrays.

    Parameters
    ----------
    encoder : Encoder
        The encoder.
    arrays : dict of ndarray
        Added to.

    Returns
    -------
    dict
        The rest of it, JSON-ready.
    """
    for name in ("marked", "source", "center", "scale"):
        arrays[f"encoder.{name}"] = getattr(encoder, name)
    return {"levels": [None if held is None else list(held) for held in encoder.levels]}


def unpack_encoder(state: dict[str, Any], arrays: Arrays) -> Encoder:
    """Take an encoder from arrays.

    Parameters
    ----------
    state : dict
        What `pack_encoder` returned.
    arrays : dict of ndarray
        What it added to.

    Returns
    -------
    Encoder
        The encoder.
    """
    levels = tuple(None if held is None else tuple(held) for held in state["levels"])
    return Encoder(levels, *(arrays[f"encoder.{name}"] for name in ("marked", "source", "center", "scale")))


def pack_model(model: SoftTreeModel, prefix: str, arrays: Arrays) -> dict[str, Any]:
    """Put a model, but for its encoder, among arrays.

    Parameters
    ----------
    model : SoftTreeModel
        The model.
    prefix : str
        Start of the arrays' names.
    arrays : dict of ndarray
        Added to.

    Returns
    -------
    dict
        The rest of it, JSON-ready.
    """
    terms: list[list[dict[str, Any]]] = []
    for k, predictor in enumerate(model.predictors):
        pack_tree(predictor.tree, f"{prefix}.{k}", arrays)
        arrays[f"{prefix}.{k}.gamma"] = predictor.gamma
        arrays[f"{prefix}.{k}.bounds"] = np.array([predictor.low, predictor.high])
        arrays[f"{prefix}.{k}.shift"] = model.shift[k]
        arrays[f"{prefix}.{k}.errors"] = model.errors[k]
        arrays[f"{prefix}.{k}.columns"] = model.columns[k]
        terms.append([])
        for t, term in enumerate(model.terms[k]):
            for name in ("center", "knots", "rotation"):
                arrays[f"{prefix}.{k}.{t}.{name}"] = getattr(term, name)
            terms[k].append(
                {name: getattr(term, name) for name in ("label", "feature", "level", "scale", "smoothing")}
            )
    arrays[f"{prefix}.path"] = model.path
    return {"family": model.family.to_dict(), "terms": terms, "figures": model.figures}


def unpack_model(state: dict[str, Any], prefix: str, arrays: Arrays, encoder: Encoder) -> SoftTreeModel:
    """Take a model from arrays.

    Parameters
    ----------
    state : dict
        What `pack_model` returned.
    prefix : str
        Start of the arrays' names.
    arrays : dict of ndarray
        What it added to.
    encoder : Encoder
        Its encoder.

    Returns
    -------
    SoftTreeModel
        The model.
    """
    family = family_from_dict(state["family"])
    numbers = range(family.n_params)
    trees = [unpack_tree(f"{prefix}.{k}", arrays) for k in numbers]
    columns = tuple(arrays[f"{prefix}.{k}.columns"] for k in numbers)
    if any(tree.omega.shape[1] != len(held) for tree, held in zip(trees, columns)):
        raise ValueError("trees and columns do not fit together")
    terms = tuple(
        tuple(
            Term(
                str(held["label"]),
                int(held["feature"]),
                held["level"],
                arrays[f"{prefix}.{k}.{t}.center"],
                float(held["scale"]),
                arrays[f"{prefix}.{k}.{t}.knots"],
                arrays[f"{prefix}.{k}.{t}.rotation"],
                held["smoothing"],
            )
            for t, held in enumerate(state["terms"][k])
        )
        for k in numbers
    )
    return SoftTreeModel(
        family,
        encoder,
        columns,
        terms,
        tuple(
            # Earlier files hold no bounds: their trees went on beyond the training range.
            Predictor(
                arrays[f"{prefix}.{k}.gamma"],
                tree,
                *arrays.get(f"{prefix}.{k}.bounds", np.array([-np.inf, np.inf])).tolist(),
            )
            for k, tree in enumerate(trees)
        ),
        tuple(arrays[f"{prefix}.{k}.shift"] for k in numbers),
        tuple(arrays[f"{prefix}.{k}.errors"] for k in numbers),
        {name: float(value) for name, value in state["figures"].items()},
        arrays[f"{prefix}.path"],
    )


def pack_params(params: dict[str, Any]) -> dict[str, Any]:
    """Make an estimator's parameters JSON-ready.

    Parameters
    ----------
    params : dict
        Parameters.

    Returns
    -------
    dict
        Families and effects written out; a generator as random_state becomes None.
    """
    return {name: _pack(value) for name, value in params.items()}


def unpack_params(state: dict[str, Any]) -> dict[str, Any]:
    """Read what `pack_params` wrote.

    Parameters
    ----------
    state : dict
        JSON-ready parameters.

    Returns
    -------
    dict
        Parameters.
    """
    return {name: _unpack(value) for name, value in state.items()}


def _pack(value: Any) -> Any:
    if isinstance(value, Family):
        return {"#": "family", **value.to_dict()}
    if isinstance(value, (Linear, Smooth)):
        return {"#": type(value).__name__, **{k: _pack(v) for k, v in asdict(value).items()}}
    if isinstance(value, dict):
        return {"#": "dict", "items": [[_pack(k), _pack(v)] for k, v in value.items()]}
    if isinstance(value, (list, tuple)):
        return [_pack(v) for v in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None  # a generator's state is no part of the model
    return value


def _unpack(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpack(v) for v in value]
    if not isinstance(value, dict):
        return value
    held = dict(value)
    kind = held.pop("#")
    if kind == "dict":
        return {_unpack(k): _unpack(v) for k, v in held["items"]}
    if kind == "family":
        return family_from_dict(held)
    return {"Linear": Linear, "Smooth": Smooth}[kind](**held)
