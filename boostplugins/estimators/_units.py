"""Units of the response: families are fitted to standardised responses, predictions put back."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from boostplugins.families import Censored, Family, IntervalCensored, Truncated
from boostplugins.links import Identity, Log

# Spread given to constant responses, relative to their size.
_LEAST = 1e-9


def _root(family: Family) -> Family:
    """The family whose parameters follow the units: limits are moved with the responses."""
    while isinstance(family, (Censored, Truncated, IntervalCensored)):
        family = family.base
    return family


@dataclass(frozen=True)
class Units:
    """What one standardised unit is: y = scale * z + shift.

    Parameters
    ----------
    scale : float, default=1.0
        Size of the unit.
    shift : float, default=0.0
        Where zero lies.
    """

    scale: float = 1.0
    shift: float = 0.0

    @classmethod
    def of(cls, family: Family, y: np.ndarray, weight: np.ndarray | None) -> Units:
        """Choose units for responses, as far as the family follows them.

        Parameters
        ----------
        family : Family
            Distribution.
        y : ndarray of shape (n_samples,)
            Responses.
        weight : ndarray of shape (n_samples,) or None
            Weights.

        Returns
        -------
        Units
            Mean and standard deviation, or the mean alone, or no change.
        """
        root = _root(family)
        if family.discrete or root.equivariance is None:
            return cls()
        y = family.points(y)
        middle = float(np.median(y))  # sums of y - middle keep the digits of a large common part
        mean = middle + float(np.average(y - middle, weights=weight))
        if root.equivariance == "scale":
            return cls(mean if mean > 0 else 1.0)
        widest = float(np.abs(y - mean).max())  # squares of large responses would overflow
        sd = widest and widest * float(np.sqrt(np.average(((y - mean) / widest) ** 2, weights=weight)))
        least = _LEAST * abs(mean)
        if sd <= least:
            sd = least if least > 0 else 1.0
        return cls(sd, mean)

    def standard(self, family: Family) -> Family:
        """Give the family of standardised responses.

        Parameters
        ----------
        family : Family
            That of the responses.

        Returns
        -------
        Family
            The same, but for limits of its own, which are standardised too.
        """
        if self == Units():
            return family
        if isinstance(family, (Censored, Truncated)):
            # In single precision, in which boosters hold labels, a response at a limit is at it still.
            low, high = (
                float(np.float32((limit - self.shift) / self.scale)) for limit in (family.low, family.high)
            )
            return replace(family, base=self.standard(family.base), low=low, high=high)
        if isinstance(family, IntervalCensored):
            return replace(family, base=self.standard(family.base))
        return family

    def inward(self, family: Family, y: np.ndarray) -> np.ndarray:
        """Standardise responses.

        Parameters
        ----------
        family : Family
            That of the responses.
        y : ndarray of shape (n_samples,)
            Responses.

        Returns
        -------
        ndarray of shape (n_samples,)
            Standardised ones.
        """
        if y.dtype.names is None:
            return self._between_limits(family, y, (y - self.shift) / self.scale)
        moved = np.empty_like(y)  # pairs of limits
        for name in y.dtype.names:
            moved[name] = (y[name] - self.shift) / self.scale
        return moved

    def _between_limits(self, family: Family, y: np.ndarray, moved: np.ndarray) -> np.ndarray:
        """Keep responses at limits, and off limits that they lie beside, whatever the rounding."""
        while isinstance(family, (Censored, Truncated)):
            inner = self.standard(family)
            assert isinstance(inner, (Censored, Truncated))
            above = float(np.nextafter(np.float32(inner.low), np.float32(np.inf)))
            below = float(np.nextafter(np.float32(inner.high), np.float32(-np.inf)))
            moved = np.where(y > family.low, np.maximum(moved, above), inner.low)
            moved = np.where(y < family.high, np.minimum(moved, below), inner.high)
            family = family.base
        return moved

    def offset(self, family: Family, offset: np.ndarray | None) -> np.ndarray | None:
        """Put an offset of the first raw score into units.

        Parameters
        ----------
        family : Family
            Distribution.
        offset : ndarray of shape (n_samples,) or None
            In units of the response where the first link is the identity, logarithmic otherwise.

        Returns
        -------
        ndarray of shape (n_samples,) or None
            Standardised.
        """
        if offset is None or 0 not in _root(family).locations:
            return offset
        return offset / self.scale

    def outward(self, family: Family, theta: np.ndarray) -> np.ndarray:
        """Put parameters back into units of the response.

        Parameters
        ----------
        family : Family
            Distribution.
        theta : ndarray of shape (..., K)
            Parameters of standardised responses.

        Returns
        -------
        ndarray of shape (..., K)
            Parameters of responses.
        """
        if self == Units():
            return theta
        return _root(family).rescale(theta, self.scale, self.shift)

    def raw_map(self, family: Family) -> tuple[np.ndarray, np.ndarray]:
        """How raw scores change: factor and shift of each.

        Parameters
        ----------
        family : Family
            Distribution.

        Returns
        -------
        tuple of ndarray of shape (K,)
            ``raw_of_responses = factor * raw + shift``.
        """
        zero = np.zeros((1, family.n_params))
        theta = family.theta(zero)
        factor, shift = np.ones(family.n_params), np.zeros(family.n_params)
        if self == Units():
            return factor, shift
        moved, family = self.outward(family, theta), _root(family)
        for k, link in enumerate(family.links):
            if k in family.locations:
                factor[k], shift[k] = self.scale, self.shift
            elif isinstance(link, Log):
                shift[k] = np.log(moved[0, k]) - np.log(theta[0, k])
            elif isinstance(link, Identity) and k not in family.scales and family.name == "lognormal":
                shift[k] = moved[0, k] - theta[0, k]
        return factor, shift

    def score(self, family: Family, metric: str, value: float, observed: float = 1.0) -> float:
        """Put a mean score back into units of the response.

        Parameters
        ----------
        family : Family
            Distribution.
        metric : {"nll", "crps"}
            Which score.
        value : float
            Of standardised responses.
        observed : float, default=1.0
            Share of the rows that have a density; the others, censored ones, have a probability.

        Returns
        -------
        float
            Of responses; a density changes by the unit's size, a CRPS is multiplied by it.
        """
        if metric == "crps":
            return value * self.scale
        return value if family.discrete else value + observed * float(np.log(self.scale))

    def to_dict(self) -> dict[str, Any]:
        """Describe the units.

        Returns
        -------
        dict
            JSON-ready.
        """
        return asdict(self)
