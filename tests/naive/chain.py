"""The chain's algorithm in plain numpy: leaf values recomputed from the trees' partitions alone."""

from __future__ import annotations

import numpy as np


def leaf_values(leaves, loss, y, weight, schedule, mask, step, shrink, start=None):
    """Replay a noiseless chain.

    Parameters: leaves (n, T) leaf index of each row in each tree; y, weight (n,); step eps; shrink
    gamma. Yields the (n_leaves, K) values that tree t adds, and the state after it.
    """
    n, total = leaves.shape
    state = np.zeros((n, loss.n_outputs))
    for t in range(total):
        if t:
            state = (1.0 - shrink * step) * state
        if t == 0:
            direction = np.tile((loss.start(y, weight) if start is None else start) / step, (n, 1))
        else:
            direction = schedule.scale(t) * loss.direction(y, state)
            kept = mask.rows(schedule.cycle(t), n)
            if kept is not None and schedule.exploring(t):
                direction = direction * kept[:, None]
        values = np.zeros((leaves[:, t].max() + 1, loss.n_outputs))
        for leaf in range(len(values)):
            inside = leaves[:, t] == leaf
            if weight[inside].sum() > 0:
                values[leaf] = step * np.average(direction[inside], axis=0, weights=weight[inside])
        state = state + values[leaves[:, t]]
        yield values, state.copy()
