"""Passes over the rows: the only code whose time grows with n, written so that it vectorises.

Sums are masked and branch-free: each leaf's sum runs over all rows of a block with the rows outside
the leaf set to zero. That beats a scatter, whose additions wait for one another. `reassoc` lets the
compiler keep several partial sums; nothing here assumes the absence of NaN. Rows come in blocks, so
that float32 partial sums stay short and a block stays in the cache; a block's sums are added up in
float64. The order of the additions is fixed, so thread counts cannot change a bit.
"""

from __future__ import annotations

import numpy as np

from boostplugins.hbart.compiling import inner, inner_sum


@inner_sum
def add_four(x, leaf_of, leaves, out):  # type: ignore[no-untyped-def]
    """Add to out[0:4] the sums of x over four leaves; a leaf number that no row has sums to 0."""
    a, b, c, d = leaves[0], leaves[1], leaves[2], leaves[3]
    zero = np.float32(0.0)
    s0, s1, s2, s3 = zero, zero, zero, zero
    for i in range(len(x)):
        s0 += x[i] if leaf_of[i] == a else zero
        s1 += x[i] if leaf_of[i] == b else zero
        s2 += x[i] if leaf_of[i] == c else zero
        s3 += x[i] if leaf_of[i] == d else zero
    out[0] += s0
    out[1] += s1
    out[2] += s2
    out[3] += s3


@inner_sum
def sum_sides(x, leaf_of, right, leaf):  # type: ignore[no-untyped-def]
    """Rows of a leaf that a rule sends right, and the sums of x over those it sends left and right.

    The left sum is no difference: where weights span many powers of ten, a difference is rounding error.
    """
    zero, one = np.float32(0.0), np.float32(1.0)
    number, to_left, to_right = zero, zero, zero
    for i in range(len(x)):
        here = leaf_of[i] == leaf
        goes_right = right[i] != 0
        number += one if here & goes_right else zero
        to_right += x[i] if here & goes_right else zero
        to_left += x[i] if here & (not goes_right) else zero
    return np.float64(number), np.float64(to_left), np.float64(to_right)


@inner
def route_ordered(codes, cut, miss, missing, right):  # type: ignore[no-untyped-def]
    """Set right[i] = 1 where a rule on an ordered column sends row i right; all three in the codes' type."""
    keep = miss != 0
    for i in range(len(codes)):
        right[i] = (codes[i] > cut) & ((codes[i] != missing) | keep)


@inner
def route_levels(codes, cut, miss, missing, right):  # type: ignore[no-untyped-def]
    """Set right[i] = 1 where a rule on a categorical column sends row i right."""
    for i in range(len(codes)):
        if codes[i] == missing:
            right[i] = miss
        else:
            right[i] = 1 - ((cut >> np.int64(codes[i])) & 1)


@inner
def route(codes, rule, is_levels, right):  # type: ignore[no-untyped-def]
    """Set right[i] = 1 where a rule sends row i right; code 65535 stands for a missing value."""
    if is_levels:
        route_levels(codes, rule[1], rule[2], np.uint16(65535), right)
    else:
        route_ordered(codes, np.uint16(rule[1]), rule[2], np.uint16(65535), right)


@inner
def send(node_of, right, node, left_child, right_child):  # type: ignore[no-untyped-def]
    """Move the rows at a node to the child that a rule sends them to."""
    for i in range(len(node_of)):
        child = right_child if right[i] != 0 else left_child
        node_of[i] = child if node_of[i] == node else node_of[i]


@inner
def shift_four(x, leaf_of, leaves, by, scale):  # type: ignore[no-untyped-def]
    """Subtract from x (or multiply it by) the entry of the row's leaf, for up to four leaves."""
    a, b, c = leaves[0], leaves[1], leaves[2]
    d0, d1, d2, d3 = by[0], by[1], by[2], by[3]
    if scale:
        for i in range(len(x)):
            leaf = leaf_of[i]
            x[i] *= d0 if leaf == a else (d1 if leaf == b else (d2 if leaf == c else d3))
    else:
        for i in range(len(x)):
            leaf = leaf_of[i]
            x[i] -= d0 if leaf == a else (d1 if leaf == b else (d2 if leaf == c else d3))


@inner
def shift_many(x, leaf_of, table, scale):  # type: ignore[no-untyped-def]
    """Subtract from x (or multiply it by) the entry of the row's leaf, by look-up."""
    if scale:
        for i in range(len(x)):
            x[i] *= table[leaf_of[i]]
    else:
        for i in range(len(x)):
            x[i] -= table[leaf_of[i]]


@inner
def weigh(residual, weight, squared, out):  # type: ignore[no-untyped-def]
    """Set out to weight times residual, or times its square."""
    if squared:
        for i in range(len(out)):
            out[i] = weight[i] * residual[i] * residual[i]
    else:
        for i in range(len(out)):
            out[i] = weight[i] * residual[i]


@inner
def relabel(leaf_of, right, x, leaves, undo, scale):  # type: ignore[no-untyped-def]
    """Move the rows of two old leaves to the new ones that a rule sends them to.

    `leaves` are both old leaves and the new left and right one. The value that each row's old leaf had
    (`undo`) is taken out of x, since rows of different old leaves may share a new one.
    """
    old_a, old_b, new_left, new_right = leaves
    for i in range(len(leaf_of)):
        leaf = leaf_of[i]
        if leaf in (old_a, old_b):
            by = undo[0] if leaf == old_a else undo[1]
            x[i] = x[i] * by if scale else x[i] + by
            leaf_of[i] = new_right if right[i] != 0 else new_left


@inner_sum
def weighted_squares(residual, weight, block):  # type: ignore[no-untyped-def]
    """Sum of weight times squared residual."""
    total = 0.0
    for start in range(0, len(residual), block):
        part = np.float32(0.0)
        for i in range(start, min(start + block, len(residual))):
            part += weight[i] * residual[i] * residual[i]
        total += np.float64(part)
    return total
