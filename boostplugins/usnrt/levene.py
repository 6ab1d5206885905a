r"""Levene's two-sample statistic over every split of a node, one sorted pass a feature.

For groups L and R of residuals e, with z = |e - mean of the group|,

.. math:: t = (\bar z_L - \bar z_R) / (w \sqrt{1/n_L + 1/n_R}), \quad
          w^2 = \frac{\sum_L (z - \bar z_L)^2 + \sum_R (z - \bar z_R)^2}{n - 2},

and t^2 is the F statistic of Levene's test with mean centring. The means move with the cut, so z
does too; but deviations from a mean sum to zero, hence
:math:`\sum |e - m| = 2 (m \, \#\{e \le m\} - \sum_{e \le m} e)`: counts and sums below m, which a
Fenwick tree over the ranks of the residuals gives in O(log n). A feature costs O(n log n), not O(n^2).
"""

from __future__ import annotations

import numpy as np

from boostplugins._jit import njit

# Residuals come with unit variance; a pooled variance of |e - mean| below this is rounding.
LEAST_POOLED = 1e-13


@njit(error_model="numpy")
def _statistic(k, n, spread_left, spread_right, square_left, square_right):  # type: ignore[no-untyped-def]
    """t from the sums of z and of z^2 in groups of k and n - k rows."""
    mean_left, mean_right = spread_left / k, spread_right / (n - k)
    pooled = square_left - spread_left * mean_left + square_right - spread_right * mean_right
    pooled /= n - 2
    apart = mean_left - mean_right
    if pooled < LEAST_POOLED:
        return 0.0 if abs(apart) < 1e-6 else np.sign(apart) * np.inf
    return apart / np.sqrt(pooled * (1.0 / k + 1.0 / (n - k)))


@njit(error_model="numpy")
def scan_cuts(values, residual, rank, ordered, least, out):  # type: ignore[no-untyped-def]
    """Statistic of every cut between rows sorted by a feature; NaN where a cut is not allowed.

    values, residual, rank: the feature (NaN last), the residual and its rank, in the feature's order.
    ordered: the residuals sorted. least: rows that either side must have. out[k - 1]: cut after k rows.
    """
    n = len(residual)
    count = np.zeros(n + 1, dtype=np.int64)
    total = np.zeros(n + 1)
    below = np.zeros(n + 1)
    square_all = 0.0
    for i in range(n):
        below[i + 1] = below[i] + ordered[i]
        square_all += ordered[i] * ordered[i]
    sum_left, square_left = 0.0, 0.0
    for k in range(1, n):
        e = residual[k - 1]
        sum_left += e
        square_left += e * e
        node = rank[k - 1] + 1
        while node <= n:
            count[node] += 1
            total[node] += e
            node += node & -node
        out[k - 1] = np.nan
        if k < least or n - k < least or not (values[k - 1] < values[k] or np.isnan(values[k])):
            continue
        if np.isnan(values[k - 1]):
            continue
        m_left = sum_left / k
        m_right = (below[n] - sum_left) / (n - k)
        place = np.searchsorted(ordered, m_left, side="right")
        c, s, node = 0, 0.0, place
        while node > 0:
            c += count[node]
            s += total[node]
            node -= node & -node
        spread_left = 2.0 * (m_left * c - s)
        place = np.searchsorted(ordered, m_right, side="right")
        c, s, node = place, below[place], place
        while node > 0:
            c -= count[node]
            s -= total[node]
            node -= node & -node
        spread_right = 2.0 * (m_right * c - s)
        out[k - 1] = _statistic(
            k,
            n,
            spread_left,
            spread_right,
            square_left - sum_left * m_left,
            square_all - square_left - (below[n] - sum_left) * m_right,
        )


@njit(error_model="numpy")
def scan_subsets(codes, residual, n_levels, least, out):  # type: ignore[no-untyped-def]
    """Statistic of every bipartition of the levels; NaN where a side has too few rows.

    out[s - 1]: the levels whose bits are set in s go left; the last level always goes right.
    """
    n = len(residual)
    size = np.zeros(n_levels, dtype=np.int64)
    total = np.zeros(n_levels)
    square = np.zeros(n_levels)
    for i in range(n):
        size[codes[i]] += 1
        total[codes[i]] += residual[i]
        square[codes[i]] += residual[i] * residual[i]
    mean = np.zeros(2)
    spread = np.zeros(2)
    for s in range(1, 1 << (n_levels - 1)):
        k, sum_left, square_left = 0, 0.0, 0.0
        for level in range(n_levels):
            if (s >> level) & 1:
                k += size[level]
                sum_left += total[level]
                square_left += square[level]
        out[s - 1] = np.nan
        if k < least or n - k < least:
            continue
        mean[1] = sum_left / k
        mean[0] = (total.sum() - sum_left) / (n - k)
        spread[:] = 0.0
        for i in range(n):
            side = (s >> codes[i]) & 1
            spread[side] += abs(residual[i] - mean[side])
        out[s - 1] = _statistic(
            k,
            n,
            spread[1],
            spread[0],
            square_left - sum_left * mean[1],
            square.sum() - square_left - (total.sum() - sum_left) * mean[0],
        )
