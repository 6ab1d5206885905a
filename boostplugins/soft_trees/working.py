"""A small soft tree fitted to working residuals: the base learner of boosting."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from boostplugins.soft_trees.criteria import sample_rows
from boostplugins.soft_trees.kernels import differentiate, evaluate
from boostplugins.soft_trees.objective import Penalty
from boostplugins.soft_trees.screening import SCREEN_ROWS, Gate, polish, propose
from boostplugins.soft_trees.tree import SoftTree


def working_tree(
    x: np.ndarray,
    score: np.ndarray,
    fisher: np.ndarray,
    max_leaves: int,
    penalty: Penalty,
    steps: int = 15,
) -> SoftTree:
    r"""Fit a soft tree f to maximise :math:`u'f - f'Wf/2` less the ridge penalties.

    Parameters
    ----------
    x : ndarray of shape (n_samples, n_features)
        Standardised features.
    score, fisher : ndarray of shape (n_samples,)
        Weighted score u and information W of the rows.
    max_leaves : int
        Leaves at most.
    penalty : Penalty
        Ridge penalties.
    steps : int, default=15
        L-BFGS iterations over all gates and coefficients at the end.

    Returns
    -------
    SoftTree
        The tree.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.soft_trees.objective import Penalty
    >>> from boostplugins.soft_trees.working import working_tree
    >>> x = np.linspace(-1, 1, 100)[:, None]
    >>> tree = working_tree(x, np.sign(x[:, 0]), np.ones(100), 2, Penalty(0.001, 0.001))
    >>> bool(np.abs(tree.value(x[[0, -1]]) - [-1.0, 1.0]).max() < 0.1)
    True
    """
    mean = float(score.sum() / max(fisher.sum(), 1e-300))
    tree = SoftTree.stump(mean, x.shape[1])
    rows = sample_rows(len(x), SCREEN_ROWS)
    few, share = x[rows], max(len(x) / SCREEN_ROWS, 1.0)
    for _ in range(max_leaves - 1 if x.shape[1] else 0):
        left = score - fisher * tree.value(x)
        seen, weight = share * left[rows], share * fisher[rows]
        paths = tree.path_weights(few)
        found: list[tuple[Gate, int]] = []
        for leaf in tree.leaves:
            gates = propose(few, paths[:, leaf], seen, weight, penalty.gates, penalty.nodes)
            found.extend((gate, int(leaf)) for gate in gates[:1])
        if not found:
            break
        gate, leaf = max(found, key=lambda item: item[0].gain)
        gate, pair = polish(
            gate, few, paths[:, leaf], seen, weight, penalty.gates, penalty.nodes, max_iter=10
        )
        tree = tree.split(leaf, gate.intercept, gate.omega, pair)
    return _finish(tree, x, score, fisher, penalty, steps)


def _finish(
    tree: SoftTree, x: np.ndarray, score: np.ndarray, fisher: np.ndarray, penalty: Penalty, steps: int
) -> SoftTree:
    nodes, splits = len(tree.beta), tree.n_splits
    if not splits:
        return tree

    def loss(vector: np.ndarray) -> tuple[float, np.ndarray]:
        beta, intercept = vector[:nodes], vector[nodes : nodes + splits]
        omega = vector[nodes + splits :].reshape(tree.omega.shape)
        gates = (omega @ x.T).T
        gates += intercept
        f = np.empty(len(x))
        evaluate(gates, tree.node, beta, f)
        left = score - fisher * f
        value = 0.5 * float(f @ (score + left)) - penalty.gates * float((omega**2).sum())
        value -= penalty.nodes * float((beta[1:] ** 2).sum())
        slope, grad = np.empty_like(gates), np.zeros(nodes)
        differentiate(gates, tree.node, beta, left, slope, grad)
        grad[1:] -= 2.0 * penalty.nodes * beta[1:]
        d_omega = slope.T @ x - 2.0 * penalty.gates * omega
        return -value, -np.concatenate([grad, slope.sum(axis=0), d_omega.ravel()])

    start = np.concatenate([tree.beta, tree.intercept, tree.omega.ravel()])
    result = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": steps})
    vector = result.x if np.isfinite(result.fun) else start
    return SoftTree(
        tree.node,
        vector[nodes : nodes + splits],
        vector[nodes + splits :].reshape(tree.omega.shape),
        vector[:nodes],
    )
