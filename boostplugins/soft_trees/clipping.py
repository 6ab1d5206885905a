"""Limits of raw scores without a corner in the likelihood."""

from __future__ import annotations

import numpy as np

# Half the width of the bend at a limit: a corner there would leave L-BFGS wherever rounding takes it.
_BEND = 0.25


def smooth_clip(raw: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Clip raw scores with a parabola at each limit, so that the slope has no jump.

    Parameters
    ----------
    raw : ndarray of shape (n_samples, K)
        Raw scores.
    low, high : ndarray of shape (K,)
        Limits, at least 1 apart; infinite for none.

    Returns
    -------
    clipped, slope : ndarray of shape (n_samples, K)
        Scores, bit for bit the same a quarter within the limits, and derivatives, 1 there.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.soft_trees.clipping import smooth_clip
    >>> clipped, slope = smooth_clip(np.array([[-3.0], [-1.0], [0.3]]), np.array([-1.0]), np.array([1.0]))
    >>> clipped.ravel().tolist(), slope.ravel().tolist()
    ([-1.0, -0.9375, 0.3], [0.0, 0.5, 1.0])
    """
    with np.errstate(invalid="ignore"):
        above = np.clip((raw - low + _BEND) / (2.0 * _BEND), 0.0, 1.0)
        below = np.clip((high - raw + _BEND) / (2.0 * _BEND), 0.0, 1.0)
    clipped = np.where(above < 1.0, low + _BEND * above**2, raw)
    return np.where(below < 1.0, high - _BEND * below**2, clipped), above * below
