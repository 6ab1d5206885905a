"""The Gibbs sampler: one compiled loop over iterations, and the compact record of its draws.

An iteration updates every mean tree given the others, then sigma^2 (or the probit's latent
responses), then the variance of the mean trees' leaf values unless it is fixed, then the variance
model: gamma by Metropolis, or the trees of a variance forest. A draw stores each tree's leaf values,
and its structure only where that changed since the draw before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from boostplugins.hbart.compiling import inner, kernel
from boostplugins.hbart.forest import Forest, pay
from boostplugins.hbart.latent import draw_latent, draw_leaf_var, draw_sigma2
from boostplugins.hbart.log_linear import LogLinear, gamma_step
from boostplugins.hbart.moves import tree_step
from boostplugins.hbart.passes import weighted_squares
from boostplugins.hbart.trees import Trees


class Chain(NamedTuple):
    """Data, priors and state of one chain."""

    mean: Forest
    variance: Forest  # shares the mean forest's rows; no trees unless the variance is a forest
    linear: LogLinear  # no covariates unless the variance is log-linear
    target: np.ndarray  # float64 (n,): scaled responses, or a probit's latent ones
    sign: np.ndarray  # float64 (n,): +1 or -1, the class of a probit; empty otherwise
    sigma2: np.ndarray  # float64 (1,)
    clock: np.ndarray  # int64 (1,): iterations done
    nu: float
    lam: float
    offset: float  # of a probit


class Record(NamedTuple):
    """Draws of one forest, appended to; nodes are in preorder, so a left child is the next entry."""

    var: np.ndarray  # int64: split column, -1 for a leaf
    cut: np.ndarray  # int64: cut, or a leaf's number within its tree
    miss: np.ndarray  # uint8: 1 sends missing values right; + 2 for a rule on levels
    right: np.ndarray  # int64: distance to the right child
    values: np.ndarray  # float64: leaf values, by draw, tree and leaf
    structure: np.ndarray  # int64 (draws, m): number of the structure each tree has
    start: np.ndarray  # int64: first node of each structure, and where the next one goes
    size: np.ndarray  # int64 (3,): structures, nodes, values so far
    changed: np.ndarray  # bool (m,): structure changed since it was last stored
    current: np.ndarray  # int64 (m,): structure last stored


def new_record(n_draws: int, m: int, capacity: int, changed: np.ndarray, current: np.ndarray) -> Record:
    """Make room for draws; pages that stay untouched cost no memory.

    Parameters
    ----------
    n_draws : int
        Draws to hold.
    m : int
        Trees.
    capacity : int
        Nodes a tree may have.
    changed : ndarray of shape (m,)
        Which trees' structures have yet to be stored.
    current : ndarray of shape (m,)
        Structures last stored.

    Returns
    -------
    Record
        Empty record.
    """
    most = n_draws * m * capacity
    return Record(
        np.empty(most, dtype=np.int64),
        np.empty(most, dtype=np.int64),
        np.empty(most, dtype=np.uint8),
        np.empty(most, dtype=np.int64),
        np.empty(n_draws * m * (capacity + 1) // 2),
        np.empty((n_draws, m), dtype=np.int64),
        np.zeros(n_draws * m + 1, dtype=np.int64),
        np.zeros(3, dtype=np.int64),
        changed,
        current,
    )


@inner
def store_tree(forest, t, record, new_structure, stack):  # type: ignore[no-untyped-def]
    """Append a tree's leaf values, and its structure where that is new; `stack` is work space."""
    trees = forest.trees
    stack[0, 0], stack[0, 1] = 0, -1
    depth, leaf = 1, 0
    position = record.size[1]
    while depth > 0:
        depth -= 1
        node, above = stack[depth, 0], stack[depth, 1]
        if trees.var[t, node] >= 0:
            stack[depth, 0], stack[depth, 1] = trees.right[t, node], position
            stack[depth + 1, 0], stack[depth + 1, 1] = trees.left[t, node], -1
            depth += 2
        else:
            record.values[record.size[2]] = trees.value[t, node]
            record.size[2] += 1
        if new_structure:
            record.var[position] = trees.var[t, node]
            record.cut[position] = trees.cut[t, node] if trees.var[t, node] >= 0 else leaf
            record.miss[position] = trees.miss[t, node]
            if trees.var[t, node] >= 0 and forest.rules.n_levels[trees.var[t, node]] > 0:
                record.miss[position] += 2
            record.right[position] = 0
            if above >= 0:
                record.right[above] = position - above
        leaf += trees.var[t, node] < 0
        position += 1
    if new_structure:
        record.size[1] = position
        record.size[0] += 1
        record.start[record.size[0]] = position


@inner
def store(forest, record, draw, stack):  # type: ignore[no-untyped-def]
    """Append a draw of a whole forest; numbers of structures count on from `current`."""
    trees = forest.trees
    base = np.int64(-1)
    for t in range(len(trees.top)):
        base = max(base, np.int64(record.current[t]))
    for t in range(len(trees.top)):
        new_structure = record.changed[t]
        store_tree(forest, t, record, new_structure, stack)
        if new_structure:
            base += 1
            record.current[t] = base
            record.changed[t] = False
        record.structure[draw, t] = record.current[t]


def refresh_rows(chain: Chain) -> None:
    """Recompute the running residual (and precision) from the leaves, to shed rounding errors.

    Parameters
    ----------
    chain : Chain
        Chain whose rows are refreshed in place.
    """
    rows = chain.mean.rows
    rows.residual[:] = chain.target - sum_of_leaves(chain.mean.trees)
    if len(chain.variance.trees.top):
        rows.weight[:] = chain.linear.given / np.exp(sum_of_leaves(chain.variance.trees, np.log))


def sum_of_leaves(trees: Trees, function: Callable[[np.ndarray], np.ndarray] = np.positive) -> np.ndarray:
    """Sum a function of the leaf values over the trees, for each row.

    Parameters
    ----------
    trees : Trees
        Forest.
    function : callable, default=np.positive
        Applied to the values.

    Returns
    -------
    ndarray of shape (n,)
        Sums.
    """
    total = np.zeros(trees.leaf_of.shape[1])
    for t in range(len(trees.top)):
        total += function(trees.value[t])[trees.leaf_of[t]]
    return total


@kernel
def run(rng, chain, n_steps, keep, mean_record, variance_record, scalars):  # type: ignore[no-untyped-def]
    """Advance a chain; with `keep`, store every draw: trees, and as rows of `scalars` the rest.

    That is sigma^2, the variance of the mean trees' leaf values, and gamma.
    """
    rows = chain.mean.rows
    count = len(rows.residual) * chain.mean.prior.informed
    stack = np.empty((256, 2), dtype=np.int64)
    for step in range(n_steps):
        for which in range(2):  # one call for both forests keeps the compiled code small
            forest = chain.mean if which == 0 else chain.variance
            record = mean_record if which == 0 else variance_record
            for t in range(len(forest.trees.top)):
                if tree_step(rng, t, forest, 1.0 / chain.sigma2[0]):
                    record.changed[t] = True
            pay(forest, 0, len(rows.residual))
            forest.scratch.owed_from[1] = 0
            if which == 0:
                if len(chain.sign) > 0:
                    draw_latent(rng, chain.target, rows.residual, chain.sign, chain.offset)
                else:
                    squares = weighted_squares(rows.residual, rows.weight, 4096)
                    chain.sigma2[0] = draw_sigma2(rng, squares, count, chain.nu, chain.lam)
                if forest.prior.leaf_nu > 0.0:
                    draw_leaf_var(rng, forest)
                if len(chain.linear.gamma) > 0:
                    gamma_step(rng, chain.linear, rows.residual, rows.weight, 1.0 / chain.sigma2[0])
            if keep:
                store(forest, record, step, stack)
        chain.clock[0] += 1
        if keep:
            scalars[step, 0] = chain.sigma2[0]
            scalars[step, 1] = chain.mean.prior.leaf_var[0]
            for j in range(len(chain.linear.gamma)):
                scalars[step, 2 + j] = chain.linear.gamma[j]
