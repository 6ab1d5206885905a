"""One Metropolis step of one tree: propose GROW, PRUNE, CHANGE or SWAP, decide, and draw the leaf values.

The log ratio is likelihood + structure prior + transition. A rule is proposed from its prior, so
its probability cancels; what stays is

* GROW at a leaf of depth d: log p(d) + log(1 - p_left) + log(1 - p_right) - log(1 - p(d))
  + log P(PRUNE | new) / #prunable(new) - log P(GROW | old) / #growable(old), and PRUNE its inverse;
* CHANGE: the children's log(1 - p), which a rule alters where it uses up a column, and
  log P(CHANGE | new) - log P(CHANGE | old); #prunable is the same before and after;
* SWAP: see `boostplugins.hbart.swap`.

P(move | tree) is the move's share among the moves that the tree allows: a stump can only grow.

A forest keeps one running vector a row, the residual or the precision, in step.
"""

from __future__ import annotations

import math

import numpy as np

from boostplugins.hbart.compiling import inner
from boostplugins.hbart.forest import gather
from boostplugins.hbart.passes import relabel
from boostplugins.hbart.scores import allowed, node_score
from boostplugins.hbart.swap import pick_child, swap_step
from boostplugins.hbart.trees import collapse, draw_rule, n_pairs, pick, restore, split, split_probability


@inner
def draw_value(rng, total, weight, count, prior, precision):  # type: ignore[no-untyped-def]
    """Draw a leaf's value from its conditional: normal, or inverse gamma for a factor of the variance."""
    if prior.scale:
        shape = prior.shape + 0.5 * count * prior.informed
        return (prior.rate + 0.5 * precision * total) / rng.standard_gamma(shape)
    tight = 1.0 / prior.leaf_var[0] + precision * weight
    return precision * total / tight + rng.standard_normal() / math.sqrt(tight)


@inner
def draw_values(rng, t, forest, precision):  # type: ignore[no-untyped-def]
    """Draw all leaf values of a tree and note what the rows are owed."""
    trees, prior, scratch = forest.trees, forest.prior, forest.scratch
    number = 0
    for node in range(trees.top[t]):
        if trees.var[t, node] == -1:
            before = trees.value[t, node]
            after = draw_value(
                rng, scratch.sum_of[node], scratch.weight_of[node], trees.rows[t, node], prior, precision
            )
            trees.value[t, node] = after
            scratch.owed_leaves[number] = node
            scratch.owed[number] = before / after if prior.scale else after - before
            scratch.table[node] = scratch.owed[number]
            number += 1
    for k in range(number, 4):  # the four-leaf pass takes the last entry for every other leaf
        scratch.owed_leaves[k] = 255
        scratch.owed[k] = scratch.owed[number - 1]
    scratch.owed_from[0] = t
    scratch.owed_from[1] = number


@inner
def children_stay(t, node, forest):  # type: ignore[no-untyped-def]
    """Log prior probability that both children of a node are leaves."""
    trees = forest.trees
    left = split_probability(trees, t, trees.left[t, node], forest.rules, forest.prior)
    right = split_probability(trees, t, trees.right[t, node], forest.rules, forest.prior)
    return math.log1p(-left) + math.log1p(-right)


@inner
def pair_score(t, node, forest, precision):  # type: ignore[no-untyped-def]
    """Log marginal likelihood of the two leaves below a node."""
    left, right = forest.trees.left[t, node], forest.trees.right[t, node]
    return node_score(t, left, forest, precision) + node_score(t, right, forest, precision)


@inner
def set_children(t, node, forest, sides):  # type: ignore[no-untyped-def]
    """Give the two leaves below a node the counts and sums of a rule's sides."""
    trees, scratch = forest.trees, forest.scratch
    left, right = trees.left[t, node], trees.right[t, node]
    trees.rows[t, left], trees.rows[t, right] = np.int64(sides[5]), np.int64(sides[0])
    scratch.sum_of[left], scratch.sum_of[right] = sides[1], sides[2]
    scratch.weight_of[left], scratch.weight_of[right] = sides[3], sides[4]


@inner
def move_rows(t, forest, old, new, undo):  # type: ignore[no-untyped-def]
    """Relabel the rows of an accepted move and take the values `undo` of their old leaves out."""
    rows, scale = forest.rows, forest.prior.scale
    x = rows.weight if scale else rows.residual
    leaves = (np.uint8(old[0]), np.uint8(old[1]), np.uint8(new[0]), np.uint8(new[1]))
    relabel(forest.trees.leaf_of[t], rows.right, x, leaves, (np.float32(undo[0]), np.float32(undo[1])), scale)


@inner
def grow_step(rng, t, node, rule, forest, precision):  # type: ignore[no-untyped-def]
    """Accept or refuse a split of a leaf."""
    trees, prior, rules = forest.trees, forest.prior, forest.rules
    side = forest.scratch.sides[0]
    count = trees.rows[t, node]
    side[5] = count - side[0]
    if side[0] < prior.min_leaf or side[5] < prior.min_leaf:
        return False
    growable, prunable, chance = allowed(t, forest)
    p = split_probability(trees, t, node, rules, prior)
    log_ratio = math.log(p) - math.log1p(-p) - math.log(prior.grow / (chance * growable))
    log_ratio -= node_score(t, node, forest, precision)
    split(trees, t, node, rule)
    set_children(t, node, forest, side)
    growable, prunable, chance = allowed(t, forest)
    log_ratio += pair_score(t, node, forest, precision) + children_stay(t, node, forest)
    log_ratio += math.log(prior.prune / (chance * prunable))
    if math.log(1.0 - rng.random()) >= log_ratio:
        collapse(trees, t, node)
        return False
    neutral = 1.0 if prior.scale else 0.0
    move_rows(t, forest, (node, node), (trees.left[t, node], trees.right[t, node]), (neutral, neutral))
    return True


@inner
def prune_step(rng, t, node, forest, precision):  # type: ignore[no-untyped-def]
    """Accept or refuse the merger of the two leaves below a node."""
    trees, prior, rules, scratch = forest.trees, forest.prior, forest.rules, forest.scratch
    left, right, top = trees.left[t, node], trees.right[t, node], trees.top[t]
    rule = (trees.var[t, node], trees.cut[t, node], trees.miss[t, node])
    growable, prunable, chance = allowed(t, forest)
    log_ratio = -math.log(prior.prune / (chance * prunable)) - children_stay(t, node, forest)
    log_ratio -= pair_score(t, node, forest, precision)
    undo = (trees.value[t, left], trees.value[t, right])
    scratch.sum_of[node] = scratch.sum_of[left] + scratch.sum_of[right]
    scratch.weight_of[node] = scratch.weight_of[left] + scratch.weight_of[right]
    trees.rows[t, node] = trees.rows[t, left] + trees.rows[t, right]
    collapse(trees, t, node)
    p = split_probability(trees, t, node, rules, prior)
    growable, prunable, chance = allowed(t, forest)
    log_ratio += node_score(t, node, forest, precision) + math.log1p(-p) - math.log(p)
    log_ratio += math.log(prior.grow / (chance * growable))
    if math.log(1.0 - rng.random()) >= log_ratio:
        restore(trees, t, node, rule, (left, right, top))
        return False
    trees.value[t, node] = 1.0 if prior.scale else 0.0
    move_rows(t, forest, (left, right), (node, node), undo)
    return True


@inner
def change_step(rng, t, node, rule, forest, precision):  # type: ignore[no-untyped-def]
    """Accept or refuse another rule for a node above two leaves."""
    trees, prior, scratch = forest.trees, forest.prior, forest.scratch
    left, right = trees.left[t, node], trees.right[t, node]
    side, before = scratch.sides[0], scratch.sides[2]
    for s in range(5):
        side[s] += scratch.sides[1, s]
    side[5] = trees.rows[t, left] + trees.rows[t, right] - side[0]
    if side[0] < prior.min_leaf or side[5] < prior.min_leaf:
        return False
    log_ratio = math.log(allowed(t, forest)[2])
    log_ratio -= children_stay(t, node, forest) + pair_score(t, node, forest, precision)
    old_rule = (trees.var[t, node], trees.cut[t, node], trees.miss[t, node])
    before[0], before[5] = trees.rows[t, right], trees.rows[t, left]
    before[1], before[2] = scratch.sum_of[left], scratch.sum_of[right]
    before[3], before[4] = scratch.weight_of[left], scratch.weight_of[right]
    trees.var[t, node], trees.cut[t, node], trees.miss[t, node] = rule
    set_children(t, node, forest, side)
    log_ratio -= math.log(allowed(t, forest)[2])
    log_ratio += children_stay(t, node, forest) + pair_score(t, node, forest, precision)
    if math.log(1.0 - rng.random()) >= log_ratio:
        trees.var[t, node], trees.cut[t, node], trees.miss[t, node] = old_rule
        set_children(t, node, forest, before)
        return False
    undo = (trees.value[t, left], trees.value[t, right])
    trees.value[t, left] = 1.0 if prior.scale else 0.0
    trees.value[t, right] = trees.value[t, left]
    move_rows(t, forest, (left, right), (left, right), undo)
    return True


@inner
def choose_move(rng, t, forest):  # type: ignore[no-untyped-def]
    """Draw a move that the tree allows and the node to make it at; move 4 is none."""
    trees, prior = forest.trees, forest.prior
    growable, prunable, chance = allowed(t, forest)
    if chance <= 0.0:
        return 4, np.int64(0)
    u = rng.random() * chance + (0.0 if growable > 0 else prior.grow)
    if u < prior.grow:
        move, number = 0, growable
    elif u < prior.grow + prior.prune:
        move, number = 1, prunable
    elif u < 1.0 - prior.swap or n_pairs(trees, t) * prior.swap == 0.0:
        move, number = 2, prunable
    else:
        move, number = 3, n_pairs(trees, t)
    which = np.int64(rng.random() * number)
    if move == 3:
        return move, pick_child(trees, t, which)
    return move, pick(trees, t, forest.rules, prior, move == 0, which)


@inner
def tree_step(rng, t, forest, precision):  # type: ignore[no-untyped-def]
    """Update one tree given precision 1 / sigma^2; returns whether its structure changed."""
    trees, tally = forest.trees, forest.scratch.tally
    none = np.int64(255)
    old, rule = (none, none), (np.int64(0), np.int64(0), np.uint8(0))
    move, node = choose_move(rng, t, forest)
    if move == 0 or move == 2:
        rule = draw_rule(rng, trees, t, node, forest.rules)
    if move == 0:
        old = (node, none)
    elif move == 2:
        old = (np.int64(trees.left[t, node]), np.int64(trees.right[t, node]))
    gather(t, forest, rule, old)
    accepted = False
    if move == 0:
        accepted = grow_step(rng, t, node, rule, forest, precision)
    elif move == 1:
        accepted = prune_step(rng, t, node, forest, precision)
    elif move == 2:
        accepted = change_step(rng, t, node, rule, forest, precision)
    elif move == 3:
        accepted = swap_step(rng, t, node, forest, precision)
    if move < 4:
        tally[move, 0] += 1
        tally[move, 1] += accepted
    draw_values(rng, t, forest, precision)
    return accepted
