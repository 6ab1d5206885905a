"""Simulations of Bleich and Kapelner (2014), with exact coverage and interval scores."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

N_TEST = 500
FIRST_SEED = 1000


def univariate(rng, n, hetero):
    x = np.linspace(0.0, 1.0, n)
    return x[:, None], 100.0 * x, np.exp(3.5 * x) if hetero else np.full(n, 5.0)


def multivariate(rng, n, hetero):
    X = rng.uniform([0.0, 10.0, 0.0], [400.0, 23.0, 10.0], size=(n, 3))
    f = -35.0 + 0.35 * X[:, 0] - 1.7 * X[:, 1]
    return X, f, np.exp(0.5 * (-6.0 + 0.03 * X[:, 0] + 0.4 * X[:, 2])) if hetero else np.full(n, 3.0)


DESIGNS = {
    "eq. 12": (univariate, 250, True),
    "eq. 14/15": (multivariate, 500, True),
    "eq. 13": (univariate, 250, False),
    "eq. 14 (sd 3)": (multivariate, 500, False),
}


def replicate(design, seed):
    """Training rows and responses, test rows, their true mean and noise."""
    make, n, hetero = DESIGNS[design]
    rng = np.random.default_rng(FIRST_SEED + seed)
    X, f, sd = make(rng, n, hetero)
    y = f + sd * rng.standard_normal(n)
    return X, y, *make(rng, N_TEST, hetero)


def interval_truth(interval, f, sd, level=0.9):
    """Exact coverage and expected interval score of intervals for N(f, sd)."""
    low, high = (interval.T - f) / sd
    below = norm.pdf(low) + low * norm.cdf(low)  # E (low - Z)+
    above = norm.pdf(high) - high * norm.sf(high)
    score = sd * (high - low + 2.0 / (1.0 - level) * (below + above))
    return norm.cdf(high) - norm.cdf(low), score


def measure(mean, interval, f, sd, seconds):
    """RMSE of f, coverage (all, third of least noise, of most), interval score, CPU seconds."""
    error = np.sqrt(np.mean((mean - f) ** 2))
    inside, score = interval_truth(interval, f, sd)
    order = np.argsort(sd, kind="stable")
    third = len(f) // 3
    thirds = inside[order[:third]].mean(), inside[order[-third:]].mean()
    return [float(v) for v in (error, inside.mean(), *thirds, score.mean(), seconds)]
