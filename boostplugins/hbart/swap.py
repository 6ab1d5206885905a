"""SWAP: a split node and one of its split children exchange their rules.

The pair is uniform over all such pairs, and the tree keeps its shape, so the way back is as likely up
to P(SWAP | tree), the move's share among those the tree allows. The rules, however, are not drawn from
the prior here, and every rule below lies on another path: the ratio takes the prior of the splits and
rules of the whole subtree, 0 where a rule contradicts its new path, and the likelihood of all its
leaves. This plain exchange is its own inverse even where both children have the same rule.
"""

from __future__ import annotations

import math

import numpy as np

from boostplugins.hbart.compiling import inner
from boostplugins.hbart.scores import allowed, node_score
from boostplugins.hbart.trees import rule_log_prior, split_probability


@inner
def pick_child(trees, t, which):  # type: ignore[no-untyped-def]
    """The `which`-th split node that has a parent."""
    for node in range(1, trees.top[t]):
        if trees.var[t, node] >= 0:
            if which == 0:
                return np.int64(node)
            which -= 1
    return np.int64(-1)


@inner
def exchange_rules(trees, t, a, b):  # type: ignore[no-untyped-def]
    """Exchange the rules of two nodes."""
    trees.var[t, a], trees.var[t, b] = trees.var[t, b], trees.var[t, a]
    trees.cut[t, a], trees.cut[t, b] = trees.cut[t, b], trees.cut[t, a]
    trees.miss[t, a], trees.miss[t, b] = trees.miss[t, b], trees.miss[t, a]


@inner
def is_below(trees, t, node, top):  # type: ignore[no-untyped-def]
    """Whether a node is `top` or one of its descendants."""
    while node >= 0:
        if node == top:
            return True
        node = trees.parent[t, node]
    return False


@inner
def subtree_log_prior(trees, t, top, rules, prior):  # type: ignore[no-untyped-def]
    """Log prior of the splits, stops and rules from `top` down; -inf where a rule contradicts its path."""
    total = 0.0
    for node in range(trees.top[t]):
        if trees.var[t, node] != -2 and is_below(trees, t, node, top):
            p = split_probability(trees, t, node, rules, prior)
            if trees.var[t, node] < 0:
                total += math.log1p(-p)
            elif p > 0.0:
                total += math.log(p) + rule_log_prior(trees, t, node, rules)
            else:
                total = -np.inf
    return total


@inner
def subtree_score(t, forest, precision):  # type: ignore[no-untyped-def]
    """Log marginal likelihood of the marked leaves."""
    total = 0.0
    for node in range(forest.trees.top[t]):
        if forest.scratch.below[node] != 0:
            total += node_score(t, node, forest, precision)
    return total


@inner
def deal(t, top, forest):  # type: ignore[no-untyped-def]
    """Mark the leaves below `top`, send their rows down anew, and sum up what each would get.

    Rows' new leaves go to `rows.right`, sums to `dealt`; the tree's own contribution is put back.
    """
    trees, rows, rules = forest.trees, forest.rows, forest.rules
    scale, below, dealt = forest.prior.scale, forest.scratch.below, forest.scratch.dealt
    for leaf in range(256):
        below[leaf] = 0
        dealt[0, leaf], dealt[1, leaf], dealt[2, leaf] = 0.0, 0.0, 0.0
    for leaf in range(trees.top[t]):
        below[leaf] = trees.var[t, leaf] == -1 and is_below(trees, t, leaf, top)
    leaf_of = trees.leaf_of[t]
    for i in range(len(leaf_of)):
        old = leaf_of[i]
        if below[old] == 0:
            continue
        node = np.int64(top)
        while trees.var[t, node] >= 0:
            j, cut = trees.var[t, node], trees.cut[t, node]
            code = np.int64(rows.codes[j, i])
            if code == 65535:
                go_right = trees.miss[t, node] != 0
            elif rules.n_levels[j] > 0:
                go_right = (cut >> code) & 1 == 0
            else:
                go_right = code > cut
            node = trees.right[t, node] if go_right else trees.left[t, node]
        rows.right[i] = node
        weight = np.float64(rows.weight[i])
        x, value = np.float64(rows.residual[i]), trees.value[t, old]
        dealt[0, node] += 1.0
        dealt[1, node] += x * x * weight * value if scale else (x + value) * weight
        dealt[2, node] += weight


@inner
def exchange_sums(t, forest):  # type: ignore[no-untyped-def]
    """Exchange the marked leaves' counts and sums with the dealt ones; again undoes it."""
    trees, scratch = forest.trees, forest.scratch
    for node in range(trees.top[t]):
        if scratch.below[node] != 0:
            count = trees.rows[t, node]
            trees.rows[t, node] = np.int64(scratch.dealt[0, node])
            scratch.dealt[0, node] = count
            scratch.sum_of[node], scratch.dealt[1, node] = scratch.dealt[1, node], scratch.sum_of[node]
            scratch.weight_of[node], scratch.dealt[2, node] = scratch.dealt[2, node], scratch.weight_of[node]


@inner
def move_dealt_rows(t, forest):  # type: ignore[no-untyped-def]
    """Put the rows into their new leaves, whose values become neutral, and take their old values out."""
    trees, rows, scale, below = forest.trees, forest.rows, forest.prior.scale, forest.scratch.below
    leaf_of = trees.leaf_of[t]
    for i in range(len(leaf_of)):
        leaf = leaf_of[i]
        if below[leaf] != 0:
            value = np.float32(trees.value[t, leaf])
            if scale:
                rows.weight[i] *= value
            else:
                rows.residual[i] += value
            leaf_of[i] = rows.right[i]
    for node in range(trees.top[t]):
        if below[node] != 0:
            trees.value[t, node] = 1.0 if scale else 0.0


@inner
def swap_step(rng, t, child, forest, precision):  # type: ignore[no-untyped-def]
    """Accept or refuse the exchange of a node's rule with its parent's."""
    trees, prior, rules, scratch = forest.trees, forest.prior, forest.rules, forest.scratch
    top = trees.parent[t, child]
    log_ratio = math.log(allowed(t, forest)[2]) - subtree_log_prior(trees, t, top, rules, prior)
    exchange_rules(trees, t, top, child)
    after = subtree_log_prior(trees, t, top, rules, prior)
    if after == -np.inf:
        exchange_rules(trees, t, top, child)
        return False
    deal(t, top, forest)
    log_ratio += after - subtree_score(t, forest, precision)
    enough = True
    for node in range(trees.top[t]):
        if scratch.below[node] != 0 and scratch.dealt[0, node] < prior.min_leaf:
            enough = False
    exchange_sums(t, forest)
    if enough:
        log_ratio += subtree_score(t, forest, precision) - math.log(allowed(t, forest)[2])
        if math.log(1.0 - rng.random()) < log_ratio:
            move_dealt_rows(t, forest)
            return True
    exchange_sums(t, forest)
    exchange_rules(trees, t, top, child)
    return False
