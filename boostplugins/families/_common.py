"""What the files of the families share: calls of compiled kernels, columns of parameters, spreads."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from boostplugins.families.base import Family

# Least Fisher information: keeps a booster's hessian positive where a parameter has no effect.
FISHER_FLOOR = 1e-12
# Standard deviation given to a constant response, relative to its size: keeps the start finite.
LEAST_SPREAD = 1e-9
# Least log density of a response within the support: what lies below, far beyond the reach of floats, would
# be told as minus infinity, which stands for impossible responses. Sums over 1e8 rows stay finite.
LEAST_LOG = -1e300
# Scores and information beyond the range of floats become its ends, so that their sign is kept.
LARGEST = float(np.finfo(np.float64).max)


def run(
    family: Family, kernel: Callable[..., None], y: np.ndarray, raw: np.ndarray, *constants: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Call a compiled kernel on raw scores clipped by the links.

    Parameters
    ----------
    family : Family
        Whose links clip.
    kernel : callable
        ``kernel(y, raw, score, fisher, *constants)`` filling `score` and `fisher`.
    y : ndarray of shape (n_samples,)
        Responses.
    raw : ndarray of shape (n_samples, K)
        Raw scores.
    *constants : object
        Settings of the family.

    Returns
    -------
    tuple of ndarray of shape (n_samples, K)
        Score and Fisher information, the latter above a floor; what overflows is the greatest float
        of its sign.
    """
    clipped = np.empty(raw.shape)
    for k, link in enumerate(family.links):
        np.clip(raw[:, k], link.low, link.high, out=clipped[:, k])
    score, fisher = np.empty(raw.shape), np.empty(raw.shape)
    kernel(np.ascontiguousarray(y, dtype=np.float64), clipped, score, fisher, *constants)
    return limited(score, fisher)


def limited(score: np.ndarray, fisher: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Keep scores and information finite, and information positive, in place.

    Parameters
    ----------
    score, fisher : ndarray of shape (n_samples, K)
        Derivatives, infinite where they overflow.

    Returns
    -------
    tuple of ndarray of shape (n_samples, K)
        The same arrays.
    """
    np.clip(score, -LARGEST, LARGEST, out=score)
    return score, np.clip(fisher, FISHER_FLOOR, LARGEST, out=fisher)


def within(inside: np.ndarray, density: np.ndarray) -> np.ndarray:
    """Log densities: finite within the support, minus infinity outside.

    Parameters
    ----------
    inside : ndarray of bool
        Whether the response is possible.
    density : ndarray
        Log densities as computed.

    Returns
    -------
    ndarray
        Log densities.
    """
    return np.where(inside, np.maximum(density, LEAST_LOG), -np.inf)


def check_limits(low: object, high: object, remedy: str = "") -> None:
    """Refuse limits that are no two numbers in order.

    Parameters
    ----------
    low, high : object
        Limits found.
    remedy : str, default=""
        What to do instead of giving many limits, appended to the message.

    Raises
    ------
    ValueError
        Naming the limit.
    """
    for name, value in (("low", low), ("high", high)):
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
            shape = f" of shape {value.shape}" if isinstance(value, np.ndarray) else ""
            found = repr(value) if isinstance(value, str) else f"a {type(value).__name__}{shape}"
            raise ValueError(f"{name} must be one number, the same for all rows, got {found}{remedy}")
    if not low < high:  # type: ignore[operator]
        raise ValueError(f"low must be below high, got {low:g} and {high:g}")


def columns(theta: ArrayLike) -> list[np.ndarray]:
    """Cut parameters into one array each.

    Parameters
    ----------
    theta : array-like of shape (..., K)
        Parameters.

    Returns
    -------
    list of K ndarray
        Views of shape (...).
    """
    theta = np.asarray(theta, dtype=np.float64)
    return [theta[..., k] for k in range(theta.shape[-1])]


# Extreme responses and parameters may overflow to the right infinity; that is no news to report.
quiet = np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore")


def spread(y: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Weighted mean and standard deviation, the latter kept above zero.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Values.
    weight : ndarray of shape (n_samples,)
        Weights.

    Returns
    -------
    tuple of float
        Mean and standard deviation.
    """
    mean = float(np.average(y, weights=weight))
    deviation = float(np.sqrt(np.average((y - mean) ** 2, weights=weight)))
    return mean, max(deviation, LEAST_SPREAD * max(abs(mean), np.finfo(float).tiny ** 0.25))
