"""Tables that explain a fitted soft tree model."""

from __future__ import annotations

from typing import Any

import numpy as np

from boostplugins.soft_trees.encoding import Encoder
from boostplugins.soft_trees.model import SoftTreeModel


def coefficient_table(model: SoftTreeModel, parameter: int) -> list[dict[str, Any]]:
    """Structured effects of a parameter with their standard errors.

    Parameters
    ----------
    model : SoftTreeModel
        The model.
    parameter : int
        Number of the parameter.

    Returns
    -------
    list of dict
        ``name``, and ``estimate`` and ``standard_error`` of a linear effect for a unit of the
        feature, or ``coefficients`` and ``standard_errors`` of a spline.
    """
    gamma = model.predictors[parameter].gamma + model.shift[parameter]
    errors = model.errors[parameter]
    table: list[dict[str, Any]] = []
    at = 0
    for term in model.terms[parameter]:
        if term.is_smooth:
            here = slice(at, at + term.rotation.shape[1])
            table.append(
                {
                    "name": term.label,
                    "coefficients": gamma[here].copy(),
                    "standard_errors": errors[here].copy(),
                }
            )
            at = here.stop
            continue
        estimate, error = gamma[at] / term.scale, errors[at] / term.scale
        table.append({"name": term.label, "estimate": float(estimate), "standard_error": float(error)})
        at += 1
    return table


def column_labels(encoder: Encoder, names: list[str]) -> list[str]:
    """Names of encoded columns.

    Parameters
    ----------
    encoder : Encoder
        The encoder.
    names : list of str
        Names of the features.

    Returns
    -------
    list of str
        ``name``, ``name is missing`` or ``name=level``.
    """
    out: list[str] = []
    for j, levels in enumerate(encoder.levels):
        if levels is not None:
            out.extend(f"{names[j]}={level}" for level in levels)
        else:
            out.append(names[j])
            if encoder.marked[j]:
                out.append(f"{names[j]} is missing")
    return out


def gate_table(model: SoftTreeModel, parameter: int, names: list[str]) -> list[dict[str, Any]]:
    """Nodes of a tree with their gates in units of the features.

    Parameters
    ----------
    model : SoftTreeModel
        The model.
    parameter : int
        Number of the parameter.
    names : list of str
        Names of the features.

    Returns
    -------
    list of dict
        ``node``, ``parent`` (-1 for the root), ``depth``, ``x`` (place from left to right in
        [0, 1]), ``coefficient``, ``leaf``; for a divided node ``left``, ``right``, ``intercept`` and
        ``weights`` by column name: the left side has weight sigmoid(intercept + weights . x).
    """
    tree, columns = model.predictors[parameter].tree, model.columns[parameter]
    labels = column_labels(model.encoder, names)
    center, scale = model.encoder.center[columns], model.encoder.scale[columns]
    depths, left, width = tree.depths, np.zeros(len(tree.beta)), np.ones(len(tree.beta))
    parent = np.full(len(tree.beta), -1)
    nodes: list[dict[str, Any]] = []
    split_of = {int(node): s for s, node in enumerate(tree.node)}
    for s, node in enumerate(tree.node):
        for side in (0, 1):
            child = 2 * s + 1 + side
            parent[child] = node
            width[child] = width[node] / 2
            left[child] = left[node] + side * width[child]
    for j in range(len(tree.beta)):
        entry: dict[str, Any] = {
            "node": j,
            "parent": int(parent[j]),
            "depth": int(depths[j]),
            "x": float(left[j] + width[j] / 2),
            "coefficient": float(tree.beta[j]),
            "leaf": j not in split_of,
        }
        if j in split_of:
            s = split_of[j]
            weights = tree.omega[s] / scale
            entry |= {
                "left": 2 * s + 1,
                "right": 2 * s + 2,
                "intercept": float(tree.intercept[s] - weights @ center),
                "weights": {labels[c]: float(w) for c, w in zip(columns, weights)},
            }
        nodes.append(entry)
    return nodes
