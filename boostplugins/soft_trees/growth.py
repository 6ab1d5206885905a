"""Greedy growth of all parameters' trees by the best penalised-likelihood split."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from boostplugins.soft_trees.criteria import degrees_of_freedom, information_criterion, sample_rows
from boostplugins.soft_trees.objective import Objective, Predictor
from boostplugins.soft_trees.refine import refine, refine_split, update_coefficients
from boostplugins.soft_trees.screening import SCREEN_ROWS, Gate, polish, propose, propose_pairs
from boostplugins.soft_trees.studentize import collapses
from boostplugins.soft_trees.tree import SoftTree

logger = logging.getLogger(__name__)

# A split must raise the penalised likelihood by this share of it, as in the authors' software.
LEAST_GAIN = 1e-5
# Degrees of freedom at most, as a share of the rows: beyond it some rows are fitted exactly, and the
# likelihood of a continuous response has no bound.
MOST_DF = 0.5


@dataclass(frozen=True)
class Growth:
    """How trees grow.

    Parameters
    ----------
    max_leaves : int
        Most leaves of all parameters' trees together.
    max_depth : int or None
        Most gates on a path.
    criterion : {"aic", "aicc", "bic", None}
        What the number of splits minimises; None grows to `max_leaves`.
    df : {"effective", "coefficients", "leaves"}
        Degrees of freedom within the criterion.
    patience : int
        Splits without a better criterion before growth stops; they are removed.
    rule : {"best", "each"}
        One split a step, the best over all parameters (the paper), or the best of each parameter
        in turn (the authors' software).
    joint : bool
        Whether all gates and coefficients are optimised together after each step.
    steps : int
        L-BFGS iterations after each step.
    final_steps : int
        L-BFGS iterations at the end.
    polished : int
        Candidates whose exact likelihood is computed in a step.

    Examples
    --------
    >>> from boostplugins.soft_trees.growth import Growth
    >>> Growth(max_leaves=4).criterion
    'bic'
    """

    max_leaves: int = 64
    max_depth: int | None = None
    criterion: str | None = "bic"
    df: str = "effective"
    patience: int = 6
    rule: str = "best"
    joint: bool = True
    steps: int = 60
    final_steps: int = 200
    polished: int = 3


@dataclass(frozen=True)
class Grown:
    """What growth found.

    Parameters
    ----------
    predictors : list of Predictor
        The model.
    log_likelihood, penalised, df, criterion : float
        Its figures; the criterion is NaN where none was asked for.
    path : ndarray of shape (n_steps, 4)
        Leaves, penalised log likelihood, degrees of freedom and criterion, step by step.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.soft_trees.growth import Grown
    >>> Grown([], -1.0, -1.0, 2.0, 6.0, np.empty((0, 4))).df
    2.0
    """

    predictors: list[Predictor]
    log_likelihood: float
    penalised: float
    df: float
    criterion: float
    path: np.ndarray


@dataclass(frozen=True)
class _Candidate:
    parameter: int
    leaf: int
    gate: Gate


def grow(
    objective: Objective,
    start: list[Predictor],
    growth: Growth,
    report: Callable[[str], None] | None = None,
) -> Grown:
    """Grow a model from constants.

    Parameters
    ----------
    objective : Objective
        Data, family and penalties.
    start : list of Predictor
        Model to start from, one predictor a parameter.
    growth : Growth
        How to grow.
    report : callable, optional
        Called with a line of text after each step.

    Returns
    -------
    Grown
        The model of the best criterion, optimised to the end.
    """
    model = refine(objective, start, growth.final_steps if len(start[0].gamma) else 0)
    best = current = _measure(objective, model, growth)
    path = [_row(current)]
    waited = 0
    while _leaves(model) < growth.max_leaves:
        larger = _step(objective, model, growth)
        if larger is None:
            break
        model = larger
        current = _measure(objective, model, growth)
        path.append(_row(current))
        if report is not None:
            report(
                f"{_leaves(model)} leaves, penalised log likelihood {current.penalised:.6g}, "
                f"df {current.df:.4g}, criterion {current.criterion:.6g}"
            )
        if growth.criterion is not None and current.df > MOST_DF * objective.weight.sum():
            break
        if growth.criterion is None or (current.criterion < best.criterion and _sound(objective, current)):
            best, waited = current, 0
        else:
            waited += 1
            if waited >= growth.patience:
                break
    last = best
    if growth.joint:
        last = _measure(objective, refine(objective, best.predictors, growth.final_steps), growth)
        if growth.criterion is not None and not _sound(objective, last):
            last = best
    return replace(last, path=np.array(path))


def _sound(objective: Objective, grown: Grown) -> bool:
    """Whether no node of a spread lives on rows that the location has taken up."""
    return objective.family.classification or not collapses(objective, grown.predictors, MOST_DF)


def _leaves(model: list[Predictor]) -> int:
    return sum(p.tree.n_leaves for p in model)


def _row(grown: Grown) -> tuple[float, float, float, float]:
    return (float(_leaves(grown.predictors)), grown.penalised, grown.df, grown.criterion)


def _measure(objective: Objective, model: list[Predictor], growth: Growth) -> Grown:
    fit = objective.log_likelihood(objective.raw(model))
    if growth.criterion is None:
        df = criterion = math.nan
    else:
        df = degrees_of_freedom(objective, model, growth.df)
        criterion = information_criterion(growth.criterion, fit, df, float(objective.weight.sum()))
    return Grown(model, fit, fit - objective.penalties(model), df, criterion, np.empty((0, 4)))


def _step(objective: Objective, model: list[Predictor], growth: Growth) -> list[Predictor] | None:
    """Add one split, or one a parameter; None where none helps."""
    if growth.rule == "best":
        return _divide(objective, model, growth, range(len(model)))
    moved = False
    for k in range(len(model)):
        larger = _divide(objective, model, growth, (k,))
        if larger is not None:
            model, moved = larger, True
    return model if moved else None


def _divide(
    objective: Objective, model: list[Predictor], growth: Growth, parameters: range | tuple[int, ...]
) -> list[Predictor] | None:
    larger = _split(objective, model, growth, parameters)
    if larger is not None:
        return refine(objective, larger, growth.steps) if growth.joint else larger
    if not growth.joint or _leaves(model) + 3 > growth.max_leaves:
        return None
    return _split_twice(objective, model, growth, parameters)


def _split_twice(
    objective: Objective, model: list[Predictor], growth: Growth, parameters: range | tuple[int, ...]
) -> list[Predictor] | None:
    """Divide a leaf and both its children at once, where no single gate pays for itself."""
    raw = objective.raw(model)
    score, fisher = objective.derivatives(raw)
    before = objective.log_likelihood(raw) - objective.penalties(model)
    rows, share = _screen_rows(len(raw))
    found: list[tuple[Gate, np.ndarray, int, int]] = []
    for k in parameters:
        tree, x = model[k].tree, objective.blocks[k].x[rows]
        path = tree.path_weights(x)
        for leaf in _divisible(tree, x, growth, 2):
            pairs = propose_pairs(
                x, path[:, leaf], share * score[rows, k], share * fisher[rows, k], *_ridges(objective, k)
            )
            found.extend((gate, coef, k, leaf) for gate, coef in pairs[:2])
    best, best_value = None, before + _least_gain(before)
    for gate, coef, k, leaf in sorted(found, key=lambda item: -item[0].gain)[: growth.polished]:
        trial = refine(objective, _twice(objective, model, k, leaf, gate, coef), growth.steps)
        value = objective.value(trial)
        if value > best_value:
            best, best_value = trial, value
    return best


def _twice(
    objective: Objective, model: list[Predictor], k: int, leaf: int, gate: Gate, coef: np.ndarray
) -> list[Predictor]:
    tree = model[k].tree
    inherit = 0.0 if objective.inner or leaf == 0 else float(tree.beta[leaf])
    left = len(tree.beta)
    tree = tree.split(leaf, gate.intercept, gate.omega, np.zeros(2))
    tree = tree.split(left, gate.intercept, gate.omega, coef[:2] + inherit)
    tree = tree.split(left + 1, gate.intercept, gate.omega, coef[1:] + inherit)
    if inherit:
        tree.beta[leaf] = 0.0
    return [*model[:k], Predictor(model[k].gamma, tree), *model[k + 1 :]]


def _divisible(tree: SoftTree, x: np.ndarray, growth: Growth, levels: int) -> list[int]:
    if x.shape[1] == 0:
        return []
    depths = tree.depths
    most = math.inf if growth.max_depth is None else growth.max_depth
    return [int(leaf) for leaf in tree.leaves if depths[leaf] + levels <= most]


def _screen_rows(n: int) -> tuple[np.ndarray | slice, float]:
    return sample_rows(n, SCREEN_ROWS), max(n / SCREEN_ROWS, 1.0)


def _least_gain(value: float) -> float:
    return LEAST_GAIN * (abs(value) + 1.0)


def _split(
    objective: Objective, model: list[Predictor], growth: Growth, parameters: range | tuple[int, ...]
) -> list[Predictor] | None:
    raw = objective.raw(model)
    score, fisher = objective.derivatives(raw)
    before = objective.log_likelihood(raw) - objective.penalties(model)
    weights = {k: model[k].tree.path_weights(objective.blocks[k].x) for k in parameters}
    found = _screen(objective, model, growth, weights, score, fisher)
    best, best_value = None, before + _least_gain(before)
    for candidate in found[: growth.polished]:
        k, block = candidate.parameter, objective.blocks[candidate.parameter]
        weight = weights[k][:, candidate.leaf]
        gate, pair = polish(
            candidate.gate, block.x, weight, score[:, k], fisher[:, k], *_ridges(objective, k), max_iter=15
        )
        trial, value = refine_split(objective, model, raw, k, candidate.leaf, weight, gate, pair)
        if trial is not None and value > best_value:
            best, best_value = trial, value
    if best is None:
        return None
    return best if growth.joint else update_coefficients(objective, best)


def _screen(
    objective: Objective,
    model: list[Predictor],
    growth: Growth,
    weights: dict[int, np.ndarray],
    score: np.ndarray,
    fisher: np.ndarray,
) -> list[_Candidate]:
    """Candidates of every leaf of every tree, by falling gain of the quadratic model."""
    rows, share = _screen_rows(len(score))
    found: list[_Candidate] = []
    for k, path in weights.items():
        x, seen = objective.blocks[k].x[rows], path[rows]
        for leaf in _divisible(model[k].tree, x, growth, 1):
            gates = propose(
                x, seen[:, leaf], share * score[rows, k], share * fisher[rows, k], *_ridges(objective, k)
            )
            found.extend(_Candidate(k, leaf, gate) for gate in gates[:2])
    return sorted(found, key=lambda c: -c.gate.gain)


def _ridges(objective: Objective, k: int) -> tuple[float, float]:
    return objective.penalty.gates, objective.penalty.nodes * objective.blocks[k].firmness
