"""Tree structures in flat arrays, their prior, and the census that transition ratios need.

A forest of m trees keeps up to `capacity` nodes a tree. Node 0 is the root; `var` is the split
column, `LEAF` for a leaf and `FREE` for an unused slot. A rule sends a row right when its code
exceeds `cut` (ordered column) or when bit `code` of `cut` is 0 (categorical column); a missing value
goes right when `miss` is 1 (MIA: the direction belongs to the rule).

Which rules a node may use depends on its path alone, never on the data, so the structure prior is
data-free; the one data-dependent restriction is that every leaf holds at least `min_leaf` rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from boostplugins.hbart.compiling import inner

LEAF = -1
FREE = -2


class Trees(NamedTuple):
    """A forest's arrays: (m, capacity) a node, (m, n) a row."""

    var: np.ndarray  # int64
    cut: np.ndarray  # int64: greatest code that goes left, or the bit set of levels that go left
    miss: np.ndarray  # uint8: 1 sends missing values right
    left: np.ndarray  # int64
    right: np.ndarray  # int64
    parent: np.ndarray  # int64, -1 for the root
    rows: np.ndarray  # int64: rows in the node, kept up to date for leaves
    value: np.ndarray  # float64: leaf values, a shift of the mean or a factor of the variance
    leaf_of: np.ndarray  # uint8: the leaf that each row is in
    top: np.ndarray  # int64 (m,): one past the last slot in use
    used: np.ndarray  # int64 (m,): slots in use


class Rules(NamedTuple):
    """What the columns allow: one entry a column."""

    n_cuts: np.ndarray  # int64: cut points of an ordered column, 0 for a categorical one
    n_levels: np.ndarray  # int64: levels of a categorical column, 0 for an ordered one
    usable: np.ndarray  # int64: numbers of the columns with a rule at the root


def new_trees(m: int, n: int, capacity: int, value: float) -> Trees:
    """Make a forest of stumps.

    Parameters
    ----------
    m : int
        Trees.
    n : int
        Rows.
    capacity : int
        Nodes a tree may have, at most 255.
    value : float
        Value of every leaf: 0 for a mean forest, 1 for a variance forest.

    Returns
    -------
    Trees
        Arrays, every row in node 0.
    """
    var = np.full((m, capacity), FREE, dtype=np.int64)
    var[:, 0] = LEAF
    link = np.full((m, capacity), -1, dtype=np.int64)
    count = np.zeros((m, capacity), dtype=np.int64)
    count[:, 0] = n
    return Trees(
        var,
        np.zeros((m, capacity), dtype=np.int64),
        np.zeros((m, capacity), dtype=np.uint8),
        link.copy(),
        link.copy(),
        link,
        count,
        np.full((m, capacity), value),
        np.zeros((m, n), dtype=np.uint8),
        np.ones(m, dtype=np.int64),
        np.ones(m, dtype=np.int64),
    )


@inner
def available(trees, t, node, j, rules):  # type: ignore[no-untyped-def]
    """Rules that column j offers a node: (lowest cut, highest cut) or (bit set of levels, 0); and how many.

    The number is that of cut points, or of levels where at least two are left, else 0.
    """
    child, above = node, trees.parent[t, node]
    if rules.n_levels[j] > 0:
        levels = (np.int64(1) << rules.n_levels[j]) - np.int64(1)
        while above >= 0:
            if trees.var[t, above] == j:
                cut = trees.cut[t, above]
                levels = levels & (cut if trees.left[t, above] == child else ~cut)
            child, above = above, trees.parent[t, above]
        number, rest = np.int64(0), levels
        while rest != 0:
            rest &= rest - np.int64(1)
            number += 1
        return levels, np.int64(0), (number if number > 1 else np.int64(0))
    low, high = np.int64(0), rules.n_cuts[j] - np.int64(1)
    while above >= 0:
        if trees.var[t, above] == j:
            cut = trees.cut[t, above]
            if trees.left[t, above] == child:
                high = min(high, cut - np.int64(1))
            else:
                low = max(low, cut + np.int64(1))
        child, above = above, trees.parent[t, above]
    return low, high, max(high - low + np.int64(1), np.int64(0))


@inner
def n_available(trees, t, node, rules):  # type: ignore[no-untyped-def]
    """Columns that offer a node at least one rule: the usable ones less those its path has exhausted."""
    number = len(rules.usable)
    above = trees.parent[t, node]
    while above >= 0:
        j = trees.var[t, above]
        seen, below = False, trees.parent[t, node]
        while below != above:
            seen = seen or trees.var[t, below] == j
            below = trees.parent[t, below]
        if not seen and available(trees, t, node, j, rules)[2] == 0:
            number -= 1
        above = trees.parent[t, above]
    return number


@inner
def split_probability(trees, t, node, rules, prior):  # type: ignore[no-untyped-def]
    """Prior probability that a node splits: alpha (1 + depth)**-beta, 0 where no rule is left."""
    if n_available(trees, t, node, rules) == 0:
        return 0.0
    depth, above = 0, trees.parent[t, node]
    while above >= 0:
        depth += 1
        above = trees.parent[t, above]
    return prior.alpha * (1.0 + depth) ** -prior.beta


@inner
def is_growable(trees, t, node, rules, prior):  # type: ignore[no-untyped-def]
    """Whether GROW may pick a node: a leaf of enough rows, with a rule to offer and room for children."""
    return (
        trees.var[t, node] == -1
        and trees.rows[t, node] >= 2 * prior.min_leaf
        and trees.used[t] + 2 <= trees.var.shape[1]
        and n_available(trees, t, node, rules) > 0
    )


@inner
def is_prunable(trees, t, node):  # type: ignore[no-untyped-def]
    """Whether PRUNE and CHANGE may pick a node: both its children are leaves."""
    return (
        trees.var[t, node] >= 0
        and trees.var[t, trees.left[t, node]] == -1
        and trees.var[t, trees.right[t, node]] == -1
    )


@inner
def census(trees, t, rules, prior):  # type: ignore[no-untyped-def]
    """Numbers of growable leaves and of prunable nodes."""
    growable, prunable = 0, 0
    for node in range(trees.top[t]):
        if is_growable(trees, t, node, rules, prior):
            growable += 1
        elif is_prunable(trees, t, node):
            prunable += 1
    return growable, prunable


@inner
def pick(trees, t, rules, prior, grow, which):  # type: ignore[no-untyped-def]
    """The `which`-th growable leaf, or prunable node."""
    for node in range(trees.top[t]):
        if is_growable(trees, t, node, rules, prior) if grow else is_prunable(trees, t, node):
            if which == 0:
                return node
            which -= 1
    return -1


@inner
def draw_rule(rng, trees, t, node, rules):  # type: ignore[no-untyped-def]
    """Draw a rule from the prior: uniform column, uniform cut (or proper subset), coin for missing."""
    while True:  # uniform over the columns with a rule left, by rejection
        j = rules.usable[np.int64(rng.random() * len(rules.usable))]
        low, _, number = available(trees, t, node, j, rules)
        if number > 0:
            break
    if rules.n_levels[j] == 0:
        cut = low + np.int64(rng.random() * number)
    else:
        cut = np.int64(0)
        while cut in (0, low):
            cut = np.int64(0)
            for level in range(rules.n_levels[j]):
                if (low >> level) & 1 and rng.random() < 0.5:
                    cut |= np.int64(1) << level
    return j, cut, np.uint8(rng.random() < 0.5)


@inner
def rule_log_prior(trees, t, node, rules):  # type: ignore[no-untyped-def]
    """Log probability that `draw_rule` draws the rule a node has, less the coin; -inf if it cannot."""
    j, cut = trees.var[t, node], trees.cut[t, node]
    low, high, number = available(trees, t, node, j, rules)
    if rules.n_levels[j] > 0:
        possible = number > 0 and cut & ~low == 0 and cut != 0 and cut != low
        number = 2.0**number - 2.0
    else:
        possible = low <= cut <= high
    if not possible:
        return -np.inf
    return -np.log(n_available(trees, t, node, rules) * np.float64(number))


@inner
def n_pairs(trees, t):  # type: ignore[no-untyped-def]
    """Pairs of a split node and a split child, one for each split node but the root."""
    return max((trees.used[t] - 1) // 2 - 1, 0)


@inner
def split(trees, t, node, rule):  # type: ignore[no-untyped-def]
    """Give a leaf two leaf children, which take the lowest free slots and the parent's value."""
    slot = 1
    for side in range(2):
        while slot < trees.top[t] and trees.var[t, slot] != -2:
            slot += 1
        trees.var[t, slot] = -1
        trees.parent[t, slot] = node
        trees.value[t, slot] = trees.value[t, node]
        if side == 0:
            trees.left[t, node] = slot
        else:
            trees.right[t, node] = slot
        trees.top[t] = max(trees.top[t], slot + 1)
    trees.used[t] += 2
    trees.var[t, node], trees.cut[t, node], trees.miss[t, node] = rule


@inner
def collapse(trees, t, node):  # type: ignore[no-untyped-def]
    """Turn a node with two leaf children back into a leaf."""
    for child in (trees.left[t, node], trees.right[t, node]):
        trees.var[t, child] = -2
        trees.parent[t, child] = -1
    trees.used[t] -= 2
    trees.left[t, node] = -1
    trees.right[t, node] = -1
    trees.var[t, node] = -1
    while trees.var[t, trees.top[t] - 1] == -2:
        trees.top[t] -= 1


@inner
def restore(trees, t, node, rule, slots):  # type: ignore[no-untyped-def]
    """Undo `collapse`: slots are the left child, the right child and the old top."""
    left, right, top = slots
    trees.var[t, left], trees.var[t, right] = -1, -1
    trees.parent[t, left], trees.parent[t, right] = node, node
    trees.left[t, node], trees.right[t, node] = left, right
    trees.var[t, node], trees.cut[t, node], trees.miss[t, node] = rule
    trees.top[t] = top
    trees.used[t] += 2
