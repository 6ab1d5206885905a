"""Levene's test of every split, one scipy call each."""

from __future__ import annotations

import numpy as np
from scipy.stats import levene


def levene_t(left, right):
    """Signed square root of Levene's F with mean centring."""
    z = [np.abs(part - part.mean()) for part in (left, right)]
    f = levene(left, right, center="mean").statistic
    return np.sign(z[0].mean() - z[1].mean()) * np.sqrt(f)


def all_cuts(values, residual, least):
    """t of every cut of a number, NaN where not allowed; missing numbers go right."""
    order = np.argsort(values, kind="stable")
    x, e = values[order], residual[order]
    out = np.full(len(x) - 1, np.nan)
    for k in range(1, len(x)):
        tie = x[k - 1] == x[k] or np.isnan(x[k - 1])
        if k >= least and len(x) - k >= least and not tie:
            out[k - 1] = levene_t(e[:k], e[k:])
    return out


def all_subsets(codes, residual, n_levels, least):
    """t of every bipartition of levels, NaN where not allowed."""
    out = np.full((1 << (n_levels - 1)) - 1, np.nan)
    for subset in range(1, 1 << (n_levels - 1)):
        left = (subset >> codes) & 1 == 1
        if left.sum() >= least and (~left).sum() >= least:
            out[subset - 1] = levene_t(residual[left], residual[~left])
    return out
