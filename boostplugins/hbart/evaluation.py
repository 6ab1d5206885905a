"""Draws of forests evaluated at rows: rows go down a tree once per structure, not once per draw.

Otherwise a draw of a tree costs one masked addition.
"""

from __future__ import annotations

import numpy as np

from boostplugins.hbart.compiling import inner, kernel
from boostplugins.hbart.passes import route, send, shift_four, shift_many


@inner
def descend(codes, nodes, root, size, right, node_of):  # type: ignore[no-untyped-def]
    """Find every row's leaf, by its position in the structure of `size` nodes that starts at `root`.

    Node by node and without branches: a row is sent on from where it is or stays.
    """
    var, cut, miss, to_right = nodes
    for i in range(len(node_of)):
        node_of[i] = 0
    for k in range(size):
        node = root + k
        if var[node] >= 0:
            rule = (np.int64(var[node]), np.int64(cut[node]), np.uint8(miss[node] & 1))
            route(codes[var[node]], rule, miss[node] > 1, right)
            send(node_of, right, np.uint8(k), np.uint8(k + 1), np.uint8(k + to_right[node]))


@inner
def fill(codes, nodes, start, structure, values, scale, out, work):  # type: ignore[no-untyped-def]
    """Fill out (draws, rows) with forest values."""
    node_of, right, last, leaves, by = work
    var = nodes[0]
    position = 0
    for draw in range(len(structure)):
        for t in range(structure.shape[1]):
            s = structure[draw, t]
            root, size = start[s], start[s + 1] - start[s]
            if s != last[t]:
                descend(codes, nodes, root, size, right, node_of[t])
                last[t] = s
            number, most = 0, (size + 1) // 2
            few = most <= 4
            for k in range(size):
                if var[root + k] < 0 and number < most:
                    value = values[position + number]
                    leaves[number] = k
                    by[number if few else k] = value if scale else -value
                    number += 1
            for k in range(number, 4):  # the four-leaf pass takes the last entry for every other leaf
                leaves[k] = 255
                if few:
                    by[k] = by[number - 1]
            position += most
            if few:
                shift_four(out[draw], node_of[t], leaves, by, scale)
            else:
                shift_many(out[draw], node_of[t], by, scale)


@kernel
def evaluate(codes, nodes, start, structure, values, scale, out):  # type: ignore[no-untyped-def]
    """Fill out (draws, rows) with forest values."""
    n_trees, n = structure.shape[1], codes.shape[1]
    node_of, right = np.zeros((n_trees, n), dtype=np.uint8), np.zeros(n, dtype=np.uint8)
    last, leaves = np.full(n_trees, -1), np.zeros(260, dtype=np.uint8)
    fill(codes, nodes, start, structure, values, scale, out, (node_of, right, last, leaves, np.zeros(256)))
