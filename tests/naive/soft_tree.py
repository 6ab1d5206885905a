"""A soft tree by recursion, row by row, and growth by brute force."""

from __future__ import annotations

import math

import numpy as np


def naive_value(tree, row, node=0):
    """Value below a node: its coefficient and the gate's average of its children."""
    value = tree.beta[node]
    for s, divided in enumerate(tree.node):
        if divided == node:
            z = tree.intercept[s] + sum(w * x for w, x in zip(tree.omega[s], row))
            p = 1 / (1 + math.exp(-z))
            value += p * naive_value(tree, row, 2 * s + 1) + (1 - p) * naive_value(tree, row, 2 * s + 2)
    return value


def naive_path_weight(tree, row, node):
    """Product of gates from the root to a node."""
    if node == 0:
        return 1.0
    s = (node - 1) // 2
    z = tree.intercept[s] + sum(w * x for w, x in zip(tree.omega[s], row))
    p = 1 / (1 + math.exp(-z))
    return naive_path_weight(tree, row, int(tree.node[s])) * (p if node == 2 * s + 1 else 1 - p)


def brute_force_split(objective, constants, directions, cuts, steeps):
    """Best penalised likelihood of one split over a grid of gates, coefficients by Nelder-Mead."""
    from scipy.optimize import minimize

    from boostplugins.soft_trees.objective import Predictor

    best = objective.value(constants)
    for k, predictor in enumerate(constants):
        for direction in directions:
            for cut in cuts:
                for steep in steeps:
                    omega = steep * np.asarray(direction, dtype=float)

                    def loss(v, k=k, predictor=predictor, omega=omega, cut=cut, steep=steep):
                        moved = predictor.tree.split(0, -steep * cut, omega, v[:2])
                        moved.beta[0] = v[2]
                        model = list(constants)
                        model[k] = Predictor(predictor.gamma, moved)
                        return -objective.value(model)

                    start = np.array([0.0, 0.0, predictor.tree.beta[0]])
                    best = max(best, -minimize(loss, start, method="Nelder-Mead").fun)
    return best


def grow_by_brute_force(objective, constants, n_splits, directions, cuts, steeps):
    """Greedy growth by trying every gate of a grid at every leaf of every parameter's tree.

    At each step all coefficients of the parameter's tree are fitted by a general minimiser with numerical
    gradients. Returns the penalised log likelihoods, one a step, and the last model.
    """
    from scipy.optimize import minimize

    from boostplugins.soft_trees.objective import Predictor
    from boostplugins.soft_trees.tree import SoftTree

    model, path = list(constants), [objective.value(constants)]
    for _ in range(n_splits):
        best, best_value = model, path[-1]
        for k, predictor in enumerate(model):
            for leaf in predictor.tree.leaves:
                for direction in directions:
                    for cut in cuts:
                        for steep in steeps:
                            omega = steep * np.asarray(direction, dtype=float)
                            shape = predictor.tree.split(int(leaf), -steep * cut, omega, np.zeros(2))

                            def trial(beta, k=k, shape=shape, gamma=predictor.gamma, model=model):
                                tree = SoftTree(shape.node, shape.intercept, shape.omega, beta)
                                return [*model[:k], Predictor(gamma, tree), *model[k + 1 :]]

                            found = minimize(
                                lambda beta, trial=trial: -objective.value(trial(beta)),
                                shape.beta,
                                method="L-BFGS-B",
                                options={"maxiter": 15},
                            )
                            if -found.fun > best_value:
                                best, best_value = trial(found.x), -found.fun
        model = best
        path.append(best_value)
    return path, model
