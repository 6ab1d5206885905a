"""Spreads fitted to residuals that have the size of errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.optimize import minimize

from boostplugins.soft_trees.criteria import DF_ROWS, curvature, information, jacobian, sample_rows
from boostplugins.soft_trees.objective import Objective, Predictor

# Beyond this leverage a row is its own prediction, and its residual says nothing.
_MOST_LEVERAGE = 0.9
_JITTER = 1e-9


def studentized_scores(objective: Objective, model: list[Predictor], parameter: int) -> np.ndarray:
    r"""Raw scores of a parameter, moved away from each row so that residuals have the size of errors.

    A fit follows its rows: a residual is smaller than the error by :math:`\sqrt{1 - h_i}`, with leverage
    :math:`h_i = w_i J_i (J'WJ + S)^{-1} J_i'`. The scores are
    :math:`\eta_i - \{(1 - h_i)^{-1/2} - 1\} \, u_i / w_i` with score u and information w. A row of weight m
    counts as m rows, each with its own residual.

    Parameters
    ----------
    objective : Objective
        Data, family and penalties.
    model : list of Predictor
        The fitted model.
    parameter : int
        Number of the parameter.

    Returns
    -------
    ndarray of shape (n_samples,)
        Raw scores.

    Examples
    --------
    The residuals of a mean of three, times the root of 3 / 2:

    >>> import numpy as np
    >>> from boostplugins.families import Normal
    >>> from boostplugins.soft_trees.objective import Block, Objective, Penalty, Predictor
    >>> from boostplugins.soft_trees.studentize import studentized_scores
    >>> from boostplugins.soft_trees.tree import SoftTree
    >>> block = Block.of_features(np.zeros((3, 1)))
    >>> loss = Objective(Normal(), np.array([0.0, 3.0, 6.0]), np.ones(3), [block] * 2, Penalty(1.0, 1.0))
    >>> model = [Predictor(np.empty(0), SoftTree.stump(value, 1)) for value in (3.0, 0.5)]
    >>> (loss.y - studentized_scores(loss, model, 0)).round(3)
    array([-3.674,  0.   ,  3.674])
    """
    raw = objective.raw(model)
    score, fisher = objective.derivatives(raw)
    u, w = score[:, parameter], fisher[:, parameter]
    leverage = np.clip(leverages(objective, model, parameter), 0.0, _MOST_LEVERAGE)
    return raw[:, parameter] - (1.0 / np.sqrt(1.0 - leverage) - 1.0) * u / w


def leverages(objective: Objective, model: list[Predictor], parameter: int) -> np.ndarray:
    """How far each row draws the fit to itself: 0 not at all, 1 wholly.

    Parameters
    ----------
    objective : Objective
        Data, family and penalties.
    model : list of Predictor
        The fitted model.
    parameter : int
        Number of the parameter.

    Returns
    -------
    ndarray of shape (n_samples,)
        Leverages of single rows: a row of weight m counts as m.

    Raises
    ------
    LinAlgError
        Where the information about the parameter's numbers is not positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.families import Normal
    >>> from boostplugins.soft_trees.objective import Block, Objective, Penalty, Predictor
    >>> from boostplugins.soft_trees.studentize import leverages
    >>> from boostplugins.soft_trees.tree import SoftTree
    >>> block = Block.of_features(np.zeros((4, 1)))
    >>> loss = Objective(Normal(), np.arange(4.0), np.ones(4), [block] * 2, Penalty(1.0, 1.0))
    >>> model = [Predictor(np.empty(0), SoftTree.stump(value, 1)) for value in (1.5, 0.1)]
    >>> leverages(loss, model, 0).round(6)
    array([0.25, 0.25, 0.25, 0.25])
    """
    _, fisher = objective.derivatives(objective.raw(model))
    predictor, block, w = model[parameter], objective.blocks[parameter], fisher[:, parameter]
    matrix = information(predictor, block, w) + curvature(predictor, block, objective.penalty)
    size = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    matrix = matrix / size / size[:, None]
    matrix[np.diag_indices(len(matrix))] += _JITTER
    root = cholesky(matrix, lower=True)
    out = np.empty(len(w))
    for at in range(0, len(w), DF_ROWS):
        here = slice(at, at + DF_ROWS)
        slopes = jacobian(predictor, block.rows(here)) / size
        out[here] = (solve_triangular(root, slopes.T, lower=True) ** 2).sum(axis=0)
    return out * w / np.maximum(objective.weight, 1.0)


def collapses(objective: Objective, model: list[Predictor], most: float) -> bool:
    """Whether the spread falls where the first parameter has taken up its rows.

    A mean that follows a few rows leaves residuals of no size, a tree of the deviation that finds these
    rows makes them weigh the more, and the likelihood rises without end. Such a node shows by the mean
    leverage of its rows.

    Parameters
    ----------
    objective : Objective
        Data, family and penalties.
    model : list of Predictor
        The fitted model.
    most : float
        Mean leverage that a node of the other parameters' trees may have.

    Returns
    -------
    bool
        Whether a node has more; judged by a sample of the rows where they are many.
    """
    if not any(p.tree.n_splits for p in model[1:]):
        return False
    rows = sample_rows(len(objective.y), DF_ROWS)
    weight = objective.weight[rows] * (objective.weight.sum() / max(objective.weight[rows].sum(), 1e-300))
    part = replace(
        objective, y=objective.y[rows], weight=weight, blocks=[block.rows(rows) for block in objective.blocks]
    )
    try:
        leverage = leverages(part, model, 0)
    except LinAlgError:
        return False
    for predictor, block in zip(model[1:], part.blocks[1:]):
        share = predictor.tree.path_weights(block.x) * weight[:, None]
        held = share.sum(axis=0) >= 1.0
        if ((leverage @ share)[held] > most * share.sum(axis=0)[held]).any():
            return True
    return False


def refit_spread(
    objective: Objective, model: list[Predictor], steps: int, gates: bool = True
) -> list[Predictor]:
    """Fit all parameters but the first again, around studentised first ones.

    A mean that has adapted to its rows leaves residuals that are too small, most of all at the edge of
    the data: a tree of the deviation learns that, and promises too much where rows are few.

    Parameters
    ----------
    objective : Objective
        Data, family and penalties.
    model : list of Predictor
        The fitted model.
    steps : int
        L-BFGS iterations.
    gates : bool, default=True
        Whether gates may move; otherwise coefficients alone.

    Returns
    -------
    list of Predictor
        The first predictor as it was, and the others refitted; the model as it was where the
        studentised scores have no finite likelihood.
    """
    try:
        first = studentized_scores(objective, model, 0)
    except LinAlgError:
        return model
    rest = model[1:]

    def loss(vector: np.ndarray) -> tuple[float, np.ndarray]:
        value, grad = objective.loss_and_gradient(vector, rest, first)
        return value, grad if gates else grad * linear

    start = objective.pack(rest)
    linear = objective.pack([_marks(p) for p in rest])
    if not np.isfinite(loss(start)[0]):
        return model
    options = {"maxiter": steps, "maxcor": 20, "ftol": 1e-10}
    result = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    if not np.isfinite(result.fun):
        return model
    return [model[0], *objective.unpack(result.x, rest)]


def _marks(predictor: Predictor) -> Predictor:
    """A predictor of ones where numbers are linear coefficients, and zeros for gates."""
    tree = predictor.tree
    ones = np.ones_like(predictor.gamma), np.ones_like(tree.beta)
    zeros = np.zeros_like(tree.intercept), np.zeros_like(tree.omega)
    return Predictor(ones[0], type(tree)(tree.node, *zeros, ones[1]))
