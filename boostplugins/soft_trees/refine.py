"""Optimisation of a soft tree model whose shape is given."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize

from boostplugins.soft_trees.objective import Block, Objective, Predictor
from boostplugins.soft_trees.screening import Gate, _sigmoid
from boostplugins.soft_trees.tree import SoftTree

_HALVINGS = 12


def refine(objective: Objective, model: list[Predictor], steps: int) -> list[Predictor]:
    """Optimise all gates and coefficients of all parameters together by L-BFGS.

    Parameters
    ----------
    objective : Objective
        Data, family and penalties.
    model : list of Predictor
        Where to start.
    steps : int
        Most iterations.

    Returns
    -------
    list of Predictor
        A model of the same shape whose penalised likelihood is not lower.
    """
    if steps <= 0:
        return model
    start = objective.pack(model)
    before, _ = objective.loss_and_gradient(start, model)
    result = minimize(
        objective.loss_and_gradient,
        start,
        args=(model,),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": steps, "maxfun": 2 * steps + 10, "maxcor": 20, "ftol": 1e-10},
    )
    if not np.isfinite(result.fun) or result.fun > before:
        return model
    return objective.unpack(result.x, model)


def refine_split(
    objective: Objective,
    model: list[Predictor],
    raw: np.ndarray,
    parameter: int,
    leaf: int,
    weight: np.ndarray,
    gate: Gate,
    pair: np.ndarray,
    steps: int = 10,
) -> tuple[list[Predictor] | None, float]:
    """Fit the gate and the two coefficients of one new split by exact likelihood.

    Parameters
    ----------
    objective : Objective
        Data, family and penalties.
    model : list of Predictor
        The model before the split.
    raw : ndarray of shape (n_samples, K)
        Its raw scores.
    parameter, leaf : int
        Where to split.
    weight : ndarray of shape (n_samples,)
        Path weights of the leaf.
    gate : Gate
        Where the gate starts.
    pair : ndarray of shape (2,)
        Where the coefficients start.
    steps : int, default=10
        L-BFGS iterations.

    Returns
    -------
    model : list of Predictor or None
        The larger model; None where no start has a finite likelihood.
    value : float
        Its penalised log likelihood.
    """
    tree, x = model[parameter].tree, objective.blocks[parameter].x
    leaf_beta = float(tree.beta[leaf])
    # A SoRT has no coefficient at inner nodes: the children inherit the leaf's (the root's is an
    # intercept until the end).
    inherit = 0.0 if objective.inner or leaf == 0 else leaf_beta
    nodes = objective.penalty.nodes * objective.blocks[parameter].firmness
    base = objective.penalties(model) - nodes * inherit**2
    shifted = raw.copy()
    ridge = objective.penalty.gates

    def loss(vector: np.ndarray) -> tuple[float, np.ndarray]:
        left, right, intercept, omega = vector[0], vector[1], vector[2], vector[3:]
        p = _sigmoid(x @ omega + intercept)
        shifted[:, parameter] = raw[:, parameter] + weight * (right + p * (left - right))
        cost = base + nodes * ((left + inherit) ** 2 + (right + inherit) ** 2) + ridge * (omega @ omega)
        value = objective.log_likelihood(shifted) - cost
        if not np.isfinite(value):
            return np.inf, np.zeros_like(vector)
        score = objective.derivatives(shifted)[0][:, parameter] * weight
        slope = score * (left - right) * p * (1.0 - p)
        grad = np.empty_like(vector)
        grad[0] = score @ p - 2.0 * nodes * (left + inherit)
        grad[1] = score @ (1.0 - p) - 2.0 * nodes * (right + inherit)
        grad[2] = slope.sum()
        grad[3:] = slope @ x - 2.0 * ridge * omega
        return -value, -grad

    start = np.concatenate([pair, [gate.intercept], gate.omega])
    for _ in range(_HALVINGS):  # the quadratic model may overshoot
        if np.isfinite(loss(start)[0]):
            break
        start[:2] *= 0.5
    else:
        return None, -np.inf
    result = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": steps, "maxcor": 8})
    vector = result.x if np.isfinite(result.fun) else start
    larger = list(model)
    grown = tree.split(leaf, float(vector[2]), vector[3:], vector[:2] + inherit)
    if inherit:
        grown.beta[leaf] = 0.0
    larger[parameter] = Predictor(model[parameter].gamma, grown)
    return larger, -loss(vector)[0]


def design(predictor: Predictor, block: Block) -> np.ndarray:
    """Columns whose coefficients are linear: structured effects, then path weights.

    Parameters
    ----------
    predictor : Predictor
        Structured effects and tree.
    block : Block
        Features.

    Returns
    -------
    ndarray of shape (n_samples, n_columns + n_nodes)
        The design matrix N of equation 7 with the structured columns before it.
    """
    return np.concatenate([block.basis, predictor.tree.path_weights(block.x)], axis=1)


def update_coefficients(
    objective: Objective, model: list[Predictor], steps: int = 5, tolerance: float = 1e-8
) -> list[Predictor]:
    """Refit the linear coefficients by penalised iteratively weighted least squares (equation 8).

    Parameters
    ----------
    objective : Objective
        Data, family and penalties.
    model : list of Predictor
        The model; its gates stay.
    steps : int, default=5
        Rounds over the parameters.
    tolerance : float, default=1e-8
        Relative rise of the penalised likelihood below which rounds end.

    Returns
    -------
    list of Predictor
        A model whose penalised likelihood is not lower.
    """
    model = list(model)
    designs = [design(p, b) for p, b in zip(model, objective.blocks)]
    value = objective.value(model)
    for _ in range(steps):
        before = value
        for k in range(len(model)):
            model, value = _scoring_step(objective, model, k, designs[k], value)
        if value - before <= tolerance * (abs(before) + 1.0):
            break
    return model


def _scoring_step(
    objective: Objective, model: list[Predictor], k: int, columns: np.ndarray, value: float
) -> tuple[list[Predictor], float]:
    score, fisher = objective.derivatives(objective.raw(model))
    predictor, block = model[k], objective.blocks[k]
    penalty = linear_penalty(objective, predictor, block)
    active = np.flatnonzero(active_columns(objective, predictor))
    coef = np.concatenate([predictor.gamma, predictor.tree.beta])
    information = (columns * fisher[:, k : k + 1]).T @ columns + penalty
    slope = columns.T @ score[:, k] - penalty @ coef
    step = np.zeros_like(coef)
    step[active] = solve_positive(information[np.ix_(active, active)], slope[active])
    for _ in range(_HALVINGS):
        trial = list(model)
        trial[k] = with_coefficients(predictor, coef + step)
        reached = objective.value(trial)
        if reached >= value:
            return trial, reached
        step *= 0.5
    return model, value


def linear_penalty(objective: Objective, predictor: Predictor, block: Block) -> np.ndarray:
    """Second derivative of the penalty in the linear coefficients.

    Parameters
    ----------
    objective : Objective
        Penalties.
    predictor : Predictor
        Its shape.
    block : Block
        Roughness of structured effects.

    Returns
    -------
    ndarray of shape (n_columns + n_nodes, n_columns + n_nodes)
        Twice the penalty matrix, in the order of `design`.
    """
    columns, nodes = len(predictor.gamma), len(predictor.tree.beta)
    matrix = np.zeros((columns + nodes, columns + nodes))
    matrix[:columns, :columns] = 2.0 * block.roughness
    free = np.arange(columns + 1, columns + nodes)
    matrix[free, free] = 2.0 * objective.penalty.nodes * block.firmness
    return matrix


def active_columns(objective: Objective, predictor: Predictor) -> np.ndarray:
    """Which linear coefficients the model has: a SoRT lacks those of inner nodes.

    Parameters
    ----------
    objective : Objective
        Kind of tree.
    predictor : Predictor
        Its shape.

    Returns
    -------
    ndarray of bool
        In the order of `design`; the intercept counts.
    """
    active = np.ones(len(predictor.gamma) + len(predictor.tree.beta), dtype=bool)
    if not objective.inner:
        active[len(predictor.gamma) + predictor.tree.node[1:]] = False
    return active


def with_coefficients(predictor: Predictor, coef: np.ndarray) -> Predictor:
    """Put linear coefficients into a predictor.

    Parameters
    ----------
    predictor : Predictor
        Its gates.
    coef : ndarray
        Structured, then node coefficients.

    Returns
    -------
    Predictor
        The same gates with these coefficients.
    """
    cut, tree = len(predictor.gamma), predictor.tree
    return Predictor(coef[:cut], SoftTree(tree.node, tree.intercept, tree.omega, coef[cut:]))


def solve_positive(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Solve a symmetric positive semidefinite system, scaled to unit diagonal.

    Parameters
    ----------
    matrix : ndarray of shape (p, p)
        Information matrix.
    vector : ndarray of shape (p,) or (p, m)
        Right-hand sides.

    Returns
    -------
    ndarray
        Solution; the least one where the system is singular.
    """
    size = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    scaled = matrix / size / size[:, None]
    scaled[np.diag_indices(len(scaled))] += 1e-10
    shape = size if vector.ndim == 1 else size[:, None]
    try:
        return cho_solve(cho_factor(scaled), vector / shape) / shape
    except LinAlgError:
        return np.linalg.pinv(scaled, hermitian=True) @ (vector / shape) / shape
