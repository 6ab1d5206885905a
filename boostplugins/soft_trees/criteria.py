"""Degrees of freedom and information criteria of a soft tree model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from boostplugins.soft_trees.kernels import differentiate, evaluate
from boostplugins.soft_trees.objective import Block, Objective, Penalty, Predictor

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
    tree, n = predictor.tree, len(block.x)
    z = block.x @ tree.omega.T + tree.intercept
    evaluate(z, tree.node, tree.beta, np.empty(n))
    slope = np.empty_like(z)
    differentiate(z, tree.node, tree.beta, np.ones(n), slope, np.zeros(len(tree.beta)))
    weights = np.ones((n, len(tree.beta)))
    for s, node in enumerate(tree.node):
        weights[:, 2 * s + 1] = weights[:, node] * z[:, s]
        weights[:, 2 * s + 2] = weights[:, node] * (1.0 - z[:, s])
    inputs = (slope[:, :, None] * block.x[:, None, :]).reshape(n, -1)
    return np.concatenate([block.basis, weights, slope, inputs], axis=1)


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
            np.full(len(tree.beta) - 1, penalty.nodes),
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
    n = len(objective.y)
    rows = slice(None, None, max(1, math.ceil(n / DF_ROWS)))
    blocks = [Block(b.x[rows], b.basis[rows], b.roughness) for b in objective.blocks]
    raw = np.stack([p.value(b) for p, b in zip(predictors, blocks)], axis=1)
    _, fisher = objective.family.score_and_fisher(objective.y[rows], raw)
    fisher = fisher * objective.weight[rows, None]
    scale = objective.weight.sum() / max(objective.weight[rows].sum(), 1e-300)
    total = 0.0
    for k, (predictor, block) in enumerate(zip(predictors, blocks)):
        slopes = jacobian(predictor, block)
        information = scale * (slopes * fisher[:, k : k + 1]).T @ slopes
        total += _trace(information, curvature(predictor, block, objective.penalty))
    return total


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
