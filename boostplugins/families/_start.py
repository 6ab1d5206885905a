"""The best constant of a family: weighted maximum likelihood by damped Fisher scoring."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from boostplugins.families.base import Family

_MAX_STEPS = 200
_TOLERANCE = 1e-13  # squared length of the step in Fisher units; beyond it the likelihood is flat
_LONGEST = 3.0  # of one step on a log scale: keeps a poor guess from flying off


def best_constant(
    family: Family, y: np.ndarray, weight: np.ndarray, raw: np.ndarray, offset: np.ndarray | None
) -> np.ndarray:
    """Climb the weighted log likelihood of a constant model.

    Parameters
    ----------
    family : Family
        Distribution.
    y, weight : ndarray of shape (n_samples,)
        Responses and weights.
    raw : ndarray of shape (K,)
        Where to start.
    offset : ndarray of shape (n_samples,) or None
        Known part of the first raw score.

    Returns
    -------
    ndarray of shape (K,)
        Raw scores, within the links' limits.
    """
    keep = weight > 0
    y, weight = y[keep], weight[keep] / weight[keep].sum()
    shift = np.zeros((len(y), len(raw)))
    if offset is not None:
        shift[:, 0] = np.asarray(offset, dtype=np.float64)[keep]
    low = np.array([link.low for link in family.links])
    high = np.array([link.high for link in family.links])
    raw = np.clip(np.asarray(raw, dtype=np.float64), low, high)

    def value(at: np.ndarray) -> float:
        return float(weight @ family.log_pdf(y, family.theta(shift + at)))

    best = value(raw)
    share = family.seen(y, raw)
    for _ in range(_MAX_STEPS):
        score, fisher = family.score_and_fisher(y, shift + raw)
        slope, curvature = weight @ score, weight @ fisher
        if share is not None:  # a step too long is halved below
            curvature = curvature * share
        step = slope / curvature
        if slope @ step < _TOLERANCE:
            break
        step *= min(1.0, _LONGEST / max(np.abs(slope / np.sqrt(curvature)).max(), 1e-300))
        for _ in range(40):
            trial = np.clip(raw + step, low, high)
            reached = value(trial)
            if reached >= best:
                break
            step *= 0.5
        else:
            break
        if reached - best <= 1e-15 * max(abs(best), 1.0) and slope @ step < 1e-9:
            raw = trial
            break
        raw, best = trial, reached
    return raw
