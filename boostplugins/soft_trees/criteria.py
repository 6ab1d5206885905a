"""Degrees of freedom and information criteria of a soft tree model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from boostplugins.soft_trees.clipping import smooth_clip
from boostplugins.soft_trees.kernels import differentiate, evaluate
from boostplugins.soft_trees.objective import Block, Objective, Penalty, Predictor
from boostplugins.soft_trees.tree import SoftTree

# Rows that estimate the information matrix of effective degrees of freedom.
DF_ROWS = 4096
_JITTER = 1e-9


def jacobian(predictor: Predictor, block: Block) -> np.ndarray:
    """Derivative of one predictor in all its numbers.

    Parameters
    ----------
    predictor : Predictor
        Structured effects and tree.
    block : Block
        Features.

    Returns
    -------
    ndarray of shape (n_samples, n_numbers)
        Columns in the order of `Objective.pack`: structured, nodes, gate intercepts, gate weights.
    """
    tree = predictor.tree
    slope = logit_slopes(tree, block.x)
    inputs = (slope[:, :, None] * block.x[:, None, :]).reshape(len(block.x), -1)
    return np.concatenate([block.basis, tree.path_weights(block.x), slope, inputs], axis=1)


def logit_slopes(tree: SoftTree, x: np.ndarray) -> np.ndarray:
    """Derivative of a tree's value in the logits of its gates.

    Parameters
    ----------
    tree : SoftTree
        The tree.
    x : ndarray of shape (n_samples, n_features)
        Standardised features.

    Returns
    -------
    ndarray of shape (n_samples, n_splits)
        Slopes.
    """
    gates = tree.logits(x)
    evaluate(gates, tree.node, tree.beta, np.empty(len(x)))
    slope = np.empty_like(gates)
    differentiate(gates, tree.node, tree.beta, np.ones(len(x)), slope, np.zeros(len(tree.beta)))
    return slope


def curvature(predictor: Predictor, block: Block, penalty: Penalty) -> np.ndarray:
    """Second derivative of the penalty of one predictor, in the order of `jacobian`.

    Parameters
    ----------
    predictor : Predictor
        Structured effects and tree.
    block : Block
        Features.
    penalty : Penalty
        Ridge penalties.

    Returns
    -------
    ndarray of shape (n_numbers, n_numbers)
        Twice the penalty's matrix.
    """
    tree, columns = predictor.tree, len(predictor.gamma)
    ridge = np.concatenate(
        [
            np.zeros(columns + 1),
            np.full(len(tree.beta) - 1, penalty.nodes * block.firmness),
            np.zeros(tree.n_splits),
            np.full(tree.omega.size, penalty.gates),
        ]
    )
    matrix = np.diag(ridge)
    matrix[:columns, :columns] = block.roughness
    return 2.0 * matrix


def effective_df(objective: Objective, predictors: Sequence[Predictor]) -> float:
    r"""Effective degrees of freedom: gates and coefficients, each as far as its penalty lets it move.

    :math:`\sum_k \operatorname{tr}\{(J_k' W_k J_k + S_k)^{-1} J_k' W_k J_k\}` with the Jacobian J of
    predictor k, the expected information W and the penalty's curvature S.

    Parameters
    ----------
    objective : Objective
        Data and penalties.
    predictors : sequence of Predictor
        The model.

    Returns
    -------
    float
        Between the number of parameters and the count of all coefficients.
    """
    rows = sample_rows(len(objective.y), DF_ROWS)
    blocks = [b.rows(rows) for b in objective.blocks]
    raw = np.stack([p.value(b) for p, b in zip(predictors, blocks)], axis=1)
    if objective.limits is not None:
        raw, _ = smooth_clip(raw, *objective.limits)
    _, fisher = objective.family.score_and_fisher(objective.y[rows], raw)
    fisher = fisher * objective.weight[rows, None]
    scale = objective.weight.sum() / max(objective.weight[rows].sum(), 1e-300)
    total = 0.0
    for k, (predictor, block) in enumerate(zip(predictors, blocks)):
        matrix = scale * information(predictor, block, fisher[:, k])
        total += _trace(matrix, curvature(predictor, block, objective.penalty))
    return total


def information(predictor: Predictor, block: Block, fisher: np.ndarray) -> np.ndarray:
    """Expected information about all numbers of one predictor, J' W J.

    Parameters
    ----------
    predictor : Predictor
        Structured effects and tree.
    block : Block
        Features.
    fisher : ndarray of shape (n_samples,)
        Weighted Fisher information of the rows.

    Returns
    -------
    ndarray of shape (n_numbers, n_numbers)
        In the order of `jacobian`; rows are taken in chunks, so that memory stays small.
    """
    total: np.ndarray | float = 0.0
    for at in range(0, len(fisher), DF_ROWS):
        here = slice(at, at + DF_ROWS)
        slopes = jacobian(predictor, block.rows(here))
        total = total + (slopes * fisher[here, None]).T @ slopes
    return np.asarray(total)


def sample_rows(n: int, most: int) -> np.ndarray | slice:
    """Choose rows for a rough look, the same at every call.

    Parameters
    ----------
    n : int
        Rows there are.
    most : int
        Rows wanted at most.

    Returns
    -------
    slice or ndarray of int
        All rows, or sorted numbers of a random part: equal steps would fall in with daily data.
    """
    if n <= most:
        return slice(None)
    return np.sort(np.random.default_rng(n).permutation(n)[:most])


def _trace(information: np.ndarray, penalty: np.ndarray) -> float:
    both = information + penalty
    diagonal = np.sqrt(np.maximum(np.diag(both), 1e-300))
    both = both / diagonal / diagonal[:, None]
    both[np.diag_indices(len(both))] += _JITTER
    scaled = information / diagonal / diagonal[:, None]
    try:
        return float(np.trace(cho_solve(cho_factor(both), scaled)))
    except LinAlgError:
        return float(np.trace(np.linalg.pinv(both, hermitian=True) @ scaled))


def degrees_of_freedom(objective: Objective, predictors: Sequence[Predictor], kind: str) -> float:
    """Degrees of freedom by one of the three counts.

    Parameters
    ----------
    objective : Objective
        Data and penalties.
    predictors : sequence of Predictor
        The model.
    kind : {"effective", "coefficients", "leaves"}
        `effective_df`; the count of node and structured coefficients (the paper's text); the count
        of leaves and structured coefficients (the paper's software).

    Returns
    -------
    float
        Degrees of freedom.
    """
    if kind == "effective":
        return effective_df(objective, predictors)
    structured = sum(len(p.gamma) for p in predictors)
    if kind == "coefficients":
        return float(structured + sum(len(p.tree.beta) for p in predictors))
    return float(structured + sum(p.tree.n_leaves for p in predictors))


def information_criterion(name: str, log_likelihood: float, df: float, n: float) -> float:
    """AIC, its small-sample correction, or BIC; lower is better.

    Parameters
    ----------
    name : {"aic", "aicc", "bic"}
        Which.
    log_likelihood : float
        Unpenalised log likelihood.
    df : float
        Degrees of freedom.
    n : float
        Sum of sample weights.

    Returns
    -------
    float
        -2 log likelihood + price of the degrees of freedom; infinite where "aicc" has no value.

    Examples
    --------
    >>> from boostplugins.soft_trees.criteria import information_criterion
    >>> information_criterion("aic", -100.0, 3.0, 50.0)
    206.0
    """
    if name == "aic":
        return -2.0 * log_likelihood + 2.0 * df
    if name == "bic":
        return -2.0 * log_likelihood + math.log(max(n, 2.0)) * df
    room = n - df - 1.0
    return -2.0 * log_likelihood + 2.0 * df * n / room if room > 0 else math.inf
