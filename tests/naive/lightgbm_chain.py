"""The chain on LightGBM in plain numpy: states recomputed from the trees' partitions alone."""

from __future__ import annotations

import math

import numpy as np

from boostplugins.noise import Stream, normals


def states(leaves, chain, loss, y, weight, step, prior_values=None):
    """Replay a chain on given partitions.

    Parameters: leaves (n, T, K) leaf of each row in each tree; the chain's settings; the loss without
    open settings; y, weight (n,); step eps; prior_values(cycle) -> (n, K). Yields the (n, K) state
    after each iteration: F + eps * mean of the directions in each row's leaf, shrunken before.
    """
    n, total, k_total = leaves.shape
    state = np.tile(loss.start(y, weight), (n, 1))
    noisy = chain.noise == "objective" and chain.temperature != math.inf
    stream = Stream.STRUCTURE if chain.leaf_noise == "shared" else Stream.LEAVES
    for t in range(total):
        raw = state if prior_values is None else state + prior_values(chain.schedule.cycle(t))
        d = chain.schedule.scale(t) * weight[:, None] * loss.direction(y, raw)
        kept = chain.mask.rows(chain.schedule.cycle(t), n)
        if kept is not None and chain.schedule.exploring(t):
            d[~kept] = 0.0
        if noisy:
            size = math.sqrt(2.0 / (step * chain.temperature))
            zeta = np.stack([normals(chain.random_state, t, stream, n, output=k) for k in range(k_total)], 1)
            d += np.sqrt(weight)[:, None] * size * loss.noise_scale(raw) * zeta
        pull = loss.start(y, weight) if chain.shrink_to == "start" else 0.0
        state = state + chain.shrink * step * (pull - state)
        for k in range(k_total):
            total_d = np.bincount(leaves[:, t, k], d[:, k])
            total_w = np.bincount(leaves[:, t, k], weight)
            mean = np.divide(total_d, total_w, out=np.zeros_like(total_d), where=total_w > 0)
            state[:, k] += step * mean[leaves[:, t, k]]
        yield state.copy()
