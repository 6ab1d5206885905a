"""Derivatives and expectations of wrapped families that have no closed form."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# Step of five-point differences on raw scores of unit length: error about 1e-11.
_STEP = 2e-3
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_S = 0.5 * (_NODES + 1.0)
# A step flat at both ends, where scores run off to infinity, and its weights.
LEVELS = _S**3 * (10.0 - 15.0 * _S + 6.0 * _S**2)
LEVEL_WEIGHTS = 0.5 * _WEIGHTS * 30.0 * (_S * (1.0 - _S)) ** 2


def raw_gradient(
    function: Callable[[np.ndarray], np.ndarray], raw: np.ndarray, length: np.ndarray
) -> np.ndarray:
    """Derivatives of a function of the raw scores by five-point differences.

    Parameters
    ----------
    function : callable
        Maps (n, K) raw scores to (n,) values.
    raw : ndarray of shape (n, K)
        Where.
    length : ndarray of shape (n, K)
        Lengths over which the raw scores matter.

    Returns
    -------
    ndarray of shape (n, K)
        Derivatives; 0 where the function is flat at minus infinity.
    """
    gradient = np.empty(raw.shape)
    for k in range(raw.shape[1]):
        moved = [raw.copy() for _ in range(4)]
        for copy, times in zip(moved, (-2.0, -1.0, 1.0, 2.0)):
            copy[:, k] += times * _STEP * length[:, k]
        a, b, c, d = (function(copy) for copy in moved)
        with np.errstate(invalid="ignore"):
            gradient[:, k] = (a - 8.0 * b + 8.0 * c - d) / (12.0 * _STEP * length[:, k])
    return np.nan_to_num(gradient, nan=0.0, posinf=0.0, neginf=0.0)
