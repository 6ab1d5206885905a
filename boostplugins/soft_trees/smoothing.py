"""Choosing the smoothness of spline effects by marginal likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from boostplugins.soft_trees.objective import Objective, Predictor
from boostplugins.soft_trees.refine import (
    design,
    linear_penalty,
    solve_positive,
    update_coefficients,
)
from boostplugins.soft_trees.structured import Term

_ROUNDS = 12
_SMALLEST, _LARGEST = 1e-6, 1e8
_SETTLED = 0.02  # relative change of every penalty at which rounds end


def choose_smoothing(
    objective: Objective, model: list[Predictor], terms: Sequence[tuple[Term, ...]]
) -> tuple[Objective, list[Predictor]]:
    r"""Fit structured effects alone, and choose spline penalties where they are open.

    Generalised Fellner-Schall update of Wood and Fasiolo (2017):
    :math:`\lambda \leftarrow \lambda\,(r / \lambda - \operatorname{tr} V S) / (\gamma' S \gamma)`,
    r being the rank of the penalty S and V the posterior covariance of the coefficients.

    Parameters
    ----------
    objective : Objective
        Blocks hold each penalty at smoothing 1 where it is open.
    model : list of Predictor
        Constants.
    terms : sequence of tuple of Term
        Structured effects of each parameter.

    Returns
    -------
    objective : Objective
        With the penalties chosen.
    model : list of Predictor
        With structured coefficients fitted.
    """
    open_terms = [
        (k, here, term) for k, here, term in _places(terms) if term.is_smooth and term.smoothing is None
    ]
    smoothing = np.ones(len(open_terms))
    model = update_coefficients(objective, model, steps=20)
    for _ in range(_ROUNDS if open_terms else 0):
        before = smoothing.copy()
        covariances = [_covariance(objective, model, k) for k in range(len(model))]
        for j, (k, here, term) in enumerate(open_terms):
            unit = 2.0 * term.roughness
            rank = max(len(term.rotation) - 2, 1)
            gamma = model[k].gamma[here]
            left = rank / smoothing[j] - float(np.sum(covariances[k][here, here] * unit))
            bend = max(float(gamma @ unit @ gamma), 1e-300)
            smoothing[j] = np.clip(smoothing[j] * max(left, 1e-10) / bend, _SMALLEST, _LARGEST)
        objective = _with_smoothing(objective, open_terms, smoothing)
        model = update_coefficients(objective, model, steps=20)
        if (np.abs(smoothing - before) <= _SETTLED * before).all():
            break
    return objective, model


def _places(terms: Sequence[tuple[Term, ...]]) -> list[tuple[int, slice, Term]]:
    out = []
    for k, held in enumerate(terms):
        at = 0
        for term in held:
            width = term.rotation.shape[1] if term.is_smooth else 1
            out.append((k, slice(at, at + width), term))
            at += width
    return out


def _covariance(objective: Objective, model: list[Predictor], k: int) -> np.ndarray:
    _, fisher = objective.derivatives(objective.raw(model))
    columns = design(model[k], objective.blocks[k])
    matrix = (columns * fisher[:, k : k + 1]).T @ columns
    matrix += linear_penalty(objective, model[k], objective.blocks[k])
    return solve_positive(matrix, np.eye(len(matrix)))


def _with_smoothing(
    objective: Objective, open_terms: list[tuple[int, slice, Term]], smoothing: np.ndarray
) -> Objective:
    matrices = [block.roughness.copy() for block in objective.blocks]
    for value, (k, here, term) in zip(smoothing, open_terms):
        matrices[k][here, here] = value * term.roughness
    blocks = [replace(b, roughness=m) for b, m in zip(objective.blocks, matrices)]
    return replace(objective, blocks=blocks)
