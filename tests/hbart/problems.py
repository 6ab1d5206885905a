"""Small problems for the sampler's tests."""

from __future__ import annotations

import numpy as np

from boostplugins.hbart.bins import Bins
from boostplugins.hbart.chains import Problem, start_run
from boostplugins.hbart.priors import Hyperparameters


def plain(kernel):
    """The Python function of a kernel, also where compilation is off and the kernel is that function."""
    return getattr(kernel, "py_func", kernel)


def make_problem(n=30, p=2, levels=0, missing=0.0, k=0, seed=0, lam=0.05, n_values=None, weights=False):
    """A problem with p ordered columns, one categorical if `levels`, and k variance covariates."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    if n_values:
        X = np.floor(X * n_values)
    X[rng.random((n, p)) < missing] = np.nan
    n_levels = [0] * p
    if levels:
        X = np.column_stack([X, rng.integers(0, levels, n)])
        X[rng.random(n) < missing, -1] = np.nan
        n_levels.append(levels)
    bins = Bins.learn(X, np.array(n_levels), None)
    z = rng.standard_normal((n, k))
    z = (z - z.mean(axis=0)) / z.std(axis=0) if k else z
    y = np.nan_to_num(X[:, 0]) - 0.5 + 0.1 * rng.standard_normal(n)
    y = np.clip(y / max(np.ptp(y), 1e-9), -0.6, 0.6)
    weight = rng.choice([0.5, 1.5], n) if weights else np.ones(n)
    return Problem(bins.codes(X), bins.rules(), y, np.empty(0), weight, z, lam, 0.02, 0.0)


def start(problem, seed=0, informed=True, **hyper):
    """A chain and its hyperparameters."""
    hyper = Hyperparameters(**hyper)
    return start_run(problem, hyper, np.random.default_rng(seed), informed), hyper


def routed(run, forest, t):
    """The leaf of every row, by walking the rules instead of trusting the labels."""
    trees, codes, rules = forest.trees, forest.rows.codes, forest.rules
    out = np.zeros(codes.shape[1], dtype=int)
    for i in range(codes.shape[1]):
        node = 0
        while trees.var[t, node] >= 0:
            j, cut = trees.var[t, node], int(trees.cut[t, node])
            code = int(codes[j, i])
            if code == 65535:
                right = trees.miss[t, node] == 1
            else:
                right = not cut >> code & 1 if rules.n_levels[j] else code > cut
            node = trees.right[t, node] if right else trees.left[t, node]
        out[i] = node
    return out
