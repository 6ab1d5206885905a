"""A forest with its rows, and the one pass over the rows that a tree's update needs.

A mean forest keeps the residual y - f of each row running, a variance forest the precision. New leaf
values are not applied at once: they are owed, and the next tree's pass pays them while it sums.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from boostplugins.hbart.compiling import inner
from boostplugins.hbart.passes import add_four, route, shift_four, shift_many, sum_sides, weigh
from boostplugins.hbart.trees import Rules, Trees


class ForestPrior(NamedTuple):
    """What a forest's moves need to know of its prior."""

    alpha: float
    beta: float
    min_leaf: int
    grow: float  # chances of the moves where all are possible; CHANGE takes the rest
    prune: float
    swap: float
    leaf_var: np.ndarray  # float64 (1,), mean forest: prior variance of a leaf value
    leaf_nu: float  # > 0: leaf_var is drawn too, a priori leaf_nu leaf_lam / chi^2 of leaf_nu degrees
    leaf_lam: float
    shape: float  # variance forest: inverse-gamma prior of a leaf factor
    rate: float
    scale: bool  # whether leaf values multiply the variance instead of adding to the mean
    informed: float  # 1; 0 makes the rows count for nothing, so that the chain draws from the prior


class Rows(NamedTuple):
    """Everything with one entry a row that the moves read and write."""

    codes: np.ndarray  # (p, n) uint16
    residual: np.ndarray  # float32: y - f
    weight: np.ndarray  # float32: precision relative to 1 / sigma^2
    product: np.ndarray  # float32: weight * residual, or weight * residual^2 in a variance forest
    right: np.ndarray  # uint8: where the proposed rule sends the row
    weighted: bool  # False where every weight is 1


class Scratch(NamedTuple):
    """Work space, and the shift that the next pass owes to the rows."""

    leaves: np.ndarray  # uint8 (260,): leaves of the tree at hand, padded with 255
    sums: np.ndarray  # float64 (260,): by position in `leaves`
    weights: np.ndarray  # float64 (260,)
    sum_of: np.ndarray  # float64 (256,): the same by node
    weight_of: np.ndarray  # float64 (256,)
    # float64 (3, 6): number right, sum left, sum right, weight left, weight right, number left
    sides: np.ndarray
    owed_leaves: np.ndarray  # uint8 (260,)
    owed: np.ndarray  # float32 (260,): by position
    table: np.ndarray  # float32 (256,): by node
    owed_from: np.ndarray  # int64 (2,): tree, number of leaves (0: nothing owed)
    below: np.ndarray  # uint8 (256,): 1 for the leaves whose rows a SWAP deals anew
    dealt: np.ndarray  # float64 (3, 256): by node, what a SWAP would make of its rows, sum and weight
    tally: np.ndarray  # int64 (4, 2): proposed and accepted GROW, PRUNE, CHANGE, SWAP


class Forest(NamedTuple):
    """One forest and all that its moves use."""

    trees: Trees
    rules: Rules
    prior: ForestPrior
    rows: Rows
    scratch: Scratch


def new_scratch() -> Scratch:
    """Make the work space.

    Returns
    -------
    Scratch
        Zeroed arrays, nothing owed.
    """
    return Scratch(
        np.full(260, 255, dtype=np.uint8),
        np.zeros(260),
        np.zeros(260),
        np.zeros(256),
        np.zeros(256),
        np.zeros((3, 6)),
        np.full(260, 255, dtype=np.uint8),
        np.zeros(260, dtype=np.float32),
        np.zeros(256, dtype=np.float32),
        np.zeros(2, dtype=np.int64),
        np.zeros(256, dtype=np.uint8),
        np.zeros((3, 256)),
        np.zeros((4, 2), dtype=np.int64),
    )


@inner
def pay(forest, start, stop):  # type: ignore[no-untyped-def]
    """Apply the shift of the last tree's new leaf values to a block of rows."""
    trees, rows, scratch, scale = forest.trees, forest.rows, forest.scratch, forest.prior.scale
    t, number = scratch.owed_from
    if number == 0:
        return
    x = rows.weight[start:stop] if scale else rows.residual[start:stop]
    leaf_of = trees.leaf_of[t, start:stop]
    if number <= 4:
        shift_four(x, leaf_of, scratch.owed_leaves, scratch.owed, scale)
    else:
        shift_many(x, leaf_of, scratch.table, scale)


@inner
def list_leaves(t, forest):  # type: ignore[no-untyped-def]
    """List a tree's leaves in the scratch space, zero their sums, and return their number."""
    trees, scratch = forest.trees, forest.scratch
    n_leaves = 0
    for node in range(trees.top[t]):
        if trees.var[t, node] == -1:
            scratch.leaves[n_leaves] = node
            n_leaves += 1
    for k in range(n_leaves + 4):  # loops, as slice assignments take long to compile
        scratch.sums[k] = 0.0
        scratch.weights[k] = 0.0
        if k >= n_leaves:
            scratch.leaves[k] = 255
    for k in range(3):
        for s in range(6):
            scratch.sides[k, s] = 0.0
    return n_leaves


@inner
def gather(t, forest, rule, old):  # type: ignore[no-untyped-def]
    """One pass over the rows: pay what is owed, then sum over leaves and over a proposal's sides.

    Fills `sum_of` and `weight_of` by node and `sides` by entry of `old` (255 for none), with the
    tree's own contribution put back: residuals of the other trees.
    """
    rows, scratch, scale = forest.rows, forest.scratch, forest.prior.scale
    n_leaves = list_leaves(t, forest)
    needs_weights = rows.weighted and not scale
    for start in range(0, len(rows.residual), 4096):
        stop = min(start + 4096, len(rows.residual))
        pay(forest, start, stop)
        x, weight = rows.residual[start:stop], rows.weight[start:stop]
        if rows.weighted:
            weigh(x, weight, scale, rows.product[start:stop])
            x = rows.product[start:stop]
        leaf_of = forest.trees.leaf_of[t, start:stop]
        for k in range(0, n_leaves, 4):
            add_four(x, leaf_of, scratch.leaves[k : k + 4], scratch.sums[k : k + 4])
            if needs_weights:
                add_four(weight, leaf_of, scratch.leaves[k : k + 4], scratch.weights[k : k + 4])
        if old[0] != 255:
            right = rows.right[start:stop]
            route(rows.codes[rule[0], start:stop], rule, forest.rules.n_levels[rule[0]] > 0, right)
            for k in range(2):
                if old[k] != 255:
                    _add_sides(x, leaf_of, right, np.uint8(old[k]), scratch.sides[k], False)
                    if needs_weights:
                        _add_sides(weight, leaf_of, right, np.uint8(old[k]), scratch.sides[k], True)
    scratch.owed_from[1] = 0
    _put_back(t, forest, old, n_leaves)


@inner
def _add_sides(x, leaf_of, right, leaf, side, is_weight):  # type: ignore[no-untyped-def]
    number, to_left, to_right = sum_sides(x, leaf_of, right, leaf)
    if is_weight:
        side[3] += to_left
        side[4] += to_right
    else:
        side[0] += number
        side[1] += to_left
        side[2] += to_right


@inner
def _put_back(t, forest, old, n_leaves):  # type: ignore[no-untyped-def]
    trees, scratch, scale, weighted = forest.trees, forest.scratch, forest.prior.scale, forest.rows.weighted
    for k in range(n_leaves):
        node = np.int64(scratch.leaves[k])
        value = trees.value[t, node]
        weight = scratch.weights[k] if weighted else np.float64(trees.rows[t, node])
        scratch.weight_of[node] = weight
        scratch.sum_of[node] = scratch.sums[k] * value if scale else scratch.sums[k] + value * weight
    for k in range(2):
        if old[k] != 255:
            side, value = scratch.sides[k], trees.value[t, old[k]]
            if not weighted:
                side[3] = trees.rows[t, old[k]] - side[0]
                side[4] = side[0]
            for s in range(1, 3):
                side[s] = side[s] * value if scale else side[s] + value * side[s + 2]
