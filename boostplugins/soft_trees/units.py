"""Units of the response: families that follow a change of units are fitted at scale 1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from boostplugins.families import Family
from boostplugins.links import Identity, Log
from boostplugins.soft_trees.objective import Predictor
from boostplugins.soft_trees.tree import SoftTree

# A response whose deviation is below this share of its size is constant but for rounding.
_CONSTANT = 1e-12


@dataclass(frozen=True)
class Units:
    """Units of the response, ``y = scale * standard + shift``, and what they do to raw scores.

    Parameters
    ----------
    scale, shift : float
        Units.
    factor, add : ndarray of shape (K,)
        Raw scores of y are ``factor * raw + add`` from those of the standard response.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.families import Normal
    >>> from boostplugins.soft_trees.units import response_units
    >>> response_units(Normal(), np.array([0.0, 2.0, 0.0, 2.0]), np.ones(4)).shift
    1.0
    """

    scale: float
    shift: float
    factor: np.ndarray
    add: np.ndarray

    def log_scale(self, family: Family) -> float:
        """Difference of a log density by the change of units.

        Parameters
        ----------
        family : Family
            The family.

        Returns
        -------
        float
            Log of the scale; 0 for a discrete response.
        """
        return 0.0 if family.discrete else math.log(self.scale)

    def fold(self, predictor: Predictor, k: int) -> Predictor:
        """Put the units into a predictor's coefficients.

        Parameters
        ----------
        predictor : Predictor
            Of the standard response.
        k : int
            Number of its parameter.

        Returns
        -------
        Predictor
            Of the response. A SoRT stays one: its leaves take what is added.
        """
        tree = predictor.tree
        beta = tree.beta * self.factor[k]
        leaves_only = tree.n_splits > 0 and not beta[tree.node].any()
        beta[tree.leaves if leaves_only else 0] += self.add[k]
        return Predictor(
            predictor.gamma * self.factor[k], SoftTree(tree.node, tree.intercept, tree.omega, beta)
        )


def response_units(family: Family, y: np.ndarray, weight: np.ndarray) -> Units:
    """Bring the response to scale 1 where the family follows: penalties then know no units.

    Parameters
    ----------
    family : Family
        The family.
    y, weight : ndarray of shape (n_samples,)
        Responses and weights.

    Returns
    -------
    Units
        The response's mean and deviation for families that follow shifts, its root mean square for
        those that follow factors, 1 and 0 for others and for a constant response.
    """
    count = family.n_params
    plain = Units(1.0, 0.0, np.ones(count), np.zeros(count))
    locations, scales = family.locations, family.scales
    if family.equivariance is None or family.discrete:
        return plain
    if not all(type(family.links[k]) is Identity for k in locations):
        return plain
    if not all(type(family.links[k]) is Log for k in scales):
        return plain
    share = weight / weight.sum()
    center = float(y[0] + share @ (y - y[0])) if locations else 0.0
    largest = float(np.abs(y - center).max())
    if not largest > _CONSTANT * abs(center) or not largest > 1e-150:
        return plain
    scale = largest * float(np.sqrt(share @ ((y - center) / largest) ** 2))
    factor, add = np.ones(count), np.zeros(count)
    for k in locations:
        factor[k], add[k] = scale, center
    for k in scales:
        add[k] = math.log(scale)
    return Units(scale, center, factor, add)
