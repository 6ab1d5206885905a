"""A soft tree by recursion, row by row, and a brute-force search for one split."""

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
