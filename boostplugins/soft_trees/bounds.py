"""How small and how large a spread may get: limits of raw scores while trees grow and afterwards."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from boostplugins.families import Family
from boostplugins.families._steps import limits
from boostplugins.soft_trees.objective import Block, Predictor
from boostplugins.soft_trees.ties import HARMLESS, has_ties

# How far a location may leave the range of its training values, as a share of that range; scales and
# shapes may not: a straight line in log units soon promises far too much.
_BEYOND = 0.25
# Rows that a least spread needs: so many, or this share of all.
_FEW_ROWS, _FEW_SHARE = 10, 0.01
# Responses are rounded where so few of them differ; gaps below this share of their range are the same value.
_ROUNDED, _SAME = 0.5, 1e-6
# Where a shape is fitted too, a scale is not the spread: Johnson's is its tail weight times that.
_SHAPED = 100.0


def spread_limits(family: Family, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest raw scores of scales: of others there are none.

    The likelihood of a location family has no bound where responses are tied or predicted exactly: a tree
    that lived on this would spend all its gates on tied rows, and throw the spread of the rest about. The
    floor is that of all fits, and what rounding of the responses leaves; the ceiling is the range of the
    responses, beyond which the likelihood of every row falls.

    Parameters
    ----------
    family : Family
        Distribution of the response.
    y, weight : ndarray of shape (n_samples,)
        Responses and weights.

    Returns
    -------
    low, high : ndarray of shape (K,)
        Limits, infinite where there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.families import Normal
    >>> from boostplugins.soft_trees.bounds import spread_limits
    >>> low, high = spread_limits(Normal(), np.array([0.0, 1.0, 1.0, 5.0, 5.0, 5.0]), np.ones(6))
    >>> low[1] == np.log(1.0 / np.sqrt(12.0)), high[1] == np.log(5.0)
    (np.True_, np.True_)
    """
    low, high = np.full(family.n_params, -np.inf), np.full(family.n_params, np.inf)
    if not family.locations or family.discrete:
        return low, high
    start = family.init(y, weight)
    least, _ = limits(family, start)
    step = _rounding(y)
    room = family.n_params > len(family.locations) + len(family.scales)
    span = float(np.ptp(y)) * (_SHAPED if room else 1.0)
    for k in family.scales:
        low[k] = max(least[k], math.log(step / math.sqrt(12.0)) if step > 0 else -math.inf)
        high[k] = max(start[k], low[k], math.log(span) if span > 0 else -math.inf)
    return low, high


def limits_of_growth(
    family: Family, y: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Limits that trees are grown within: of tied responses alone.

    Parameters
    ----------
    family : Family
        Distribution of the response.
    y, weight : ndarray of shape (n_samples,)
        Responses, in the units that trees are grown in, and weights.

    Returns
    -------
    tuple of ndarray of shape (K,) or None
        `spread_limits` where some response is that of many rows, and the floor far below the best constant:
        coarse grades have a floor of no harm. Elsewhere None: trial steps may then go anywhere and find
        back, and only predictions are bounded.
    """
    if not family.locations or family.discrete or not has_ties(y, weight):
        return None
    low, high = spread_limits(family, y, weight)
    if not (low < family.init(y, weight) + math.log(HARMLESS))[list(family.scales)].any():
        return None
    return low, np.maximum(high, low + 1.0)  # room for what bends at either


def bounded(
    predictor: Predictor, block: Block, location: bool, scale: bool, floor: float, ceiling: float
) -> Predictor:
    """Keep the tree within the range of its training values, a location with some room.

    A spread stays above what only a few rows have, whose responses may be close to their means by chance,
    and within the limits of all fits.

    Parameters
    ----------
    predictor : Predictor
        Of the response.
    block : Block
        Training rows.
    location, scale : bool
        Whether the parameter is a location, or a scale.
    floor, ceiling : float
        Limits of all fits.

    Returns
    -------
    Predictor
        With its bounds.
    """
    value = np.sort(predictor.tree.value(block.x))
    few = max(math.ceil(_FEW_SHARE * len(value)), min(_FEW_ROWS, len(value) // 20)) if scale else 1
    low, high = float(value[few - 1 if few else 0]), float(value[-1])
    room = _BEYOND * (high - low) if location else 0.0
    if block.basis.shape[1]:  # the limits are of the sum with structured effects
        return replace(predictor, low=low - room, high=high + room)
    low = min(max(low - room, floor), ceiling)
    return replace(predictor, low=low, high=max(min(high + room, ceiling), low))


def _rounding(y: np.ndarray) -> float:
    """Unit that the responses are rounded to; 0 where they are not."""
    values = np.unique(y)
    if not 1 < len(values) <= _ROUNDED * len(y):
        return 0.0
    gaps = np.diff(values)
    step = float(gaps[gaps > _SAME * float(values[-1] - values[0])].min(initial=np.inf))
    return step if math.isfinite(step) else 0.0
