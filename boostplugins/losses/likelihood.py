"""Negative log likelihood of any family: what lets a chain sample every parameter of a distribution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from boostplugins.families import family_from_dict, get_family
from boostplugins.families._steps import MAX_SCORE, MAX_STEP, cut_steps
from boostplugins.links import Identity
from boostplugins.losses.base import Loss
from boostplugins.uncertainty import Uncertainty

# Range of raw scores about the best constant's: scales from e^-7 to 10 times that of the responses,
# other parameters on log and logit scales by factors of e^10.
_BELOW, _ABOVE, _ELSEWHERE = 7.0, 2.3, 10.0
# Least information of a row that steps and noise go by: of parameters on log and logit scales, and of
# locations relative to the start. Below it, where a row says hardly anything (the dispersion of counts
# that have none, the rate behind zeros only), steps would grow without limit; shrinkage, which is in the
# same units, then keeps the parameter near its start.
_LEAST, _LEAST_OF_START = 0.1, 0.01
_FAR = 1e6  # of locations, in units of the responses' noise: only to keep numbers finite


@dataclass(frozen=True)
class FamilyLikelihood(Loss):
    r"""Negative log likelihood of a response of any family, raw scores on its links' scales.

    The direction is the score over the Fisher information, row by row, and the preconditioner the
    inverse of that information: one unit of every raw score is the noise of one row, in any units
    of the response, and a learning rate means the same for every parameter of every family.

    Information below 0.1 of parameters on log and logit scales counts as 0.1.

    Where the information of a parameter does not depend on its own raw score (locations and scales,
    a Gamma's or an Exponential's mean) temperature 1 is the posterior under a flat prior of the raw
    scores. Where it does (the log mean of counts), it is the posterior under a prior proportional to
    that information, worth one row in each leaf: for Poisson counts a flat prior of the mean itself.

    Under a flat prior the posterior of a leaf of few rows may be improper: give leaves some tens of
    rows, and the chain some shrinkage; the limits of the raw scores are the last guard.

    Parameters
    ----------
    family : str or Family, default="normal"
        Distribution of the response.
    limits : tuple of (float, float), optional
        Least and greatest raw score of each parameter; scores beyond them count as the ends. By
        default they are set about the best constant of the responses.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.losses import FamilyLikelihood
    >>> FamilyLikelihood("poisson").direction(np.array([3.0]), np.array([[0.0]]))
    array([[2.]])
    """

    family: Any = "normal"
    limits: tuple[tuple[float, float], ...] | None = None

    name: ClassVar[str] = "likelihood"

    def __post_init__(self) -> None:
        given = self.family
        family = family_from_dict(given) if isinstance(given, dict) else get_family(given)
        object.__setattr__(self, "family", family)
        if self.limits is None:
            return
        limits = tuple((float(low), float(high)) for low, high in self.limits)
        if len(limits) != family.n_params or not all(low < high for low, high in limits):
            raise ValueError(
                f"limits must be {family.n_params} pairs of increasing numbers for family {family.name}, "
                f"got {self.limits}"
            )
        object.__setattr__(self, "limits", limits)

    @property
    def n_outputs(self) -> int:
        """Raw scores a row: the family's parameters."""
        return self.family.n_params

    @property
    def classification(self) -> bool:  # type: ignore[override]
        """Whether the family's responses are classes."""
        return self.family.classification

    def value(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        y, raw = self.rows(y, raw)
        return -self.family.log_pdf(y, self.family.theta(raw))

    def gradient(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        return -self.family.score_and_fisher(*self.rows(y, raw))[0]

    def hessian(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        return self.family.score_and_fisher(*self.rows(y, raw))[1]

    def direction(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        return self.direction_and_noise(y, raw)[0]

    def noise_scale(self, raw: np.ndarray) -> np.ndarray:
        y = np.full(len(raw), self._typical)
        fisher = self.family.score_and_fisher(y, self.limited(raw))[1]
        return 1.0 / np.sqrt(np.maximum(fisher, self._least))

    def direction_and_noise(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        score, fisher = self.family.score_and_fisher(*self.rows(y, raw))
        np.maximum(fisher, self._least, out=fisher)
        free = np.array([not isinstance(link, Identity) for link in self.family.links])
        cut_steps(score, fisher, free, MAX_SCORE, MAX_STEP)
        return score, 1.0 / np.sqrt(fisher)

    def rows(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Responses and raw scores of rows as the family takes them.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            What the booster holds as labels.
        raw : ndarray of shape (n_samples, n_outputs)
            Raw scores.

        Returns
        -------
        tuple of ndarray
            Responses and limited raw scores.
        """
        return np.asarray(y, dtype=np.float64), self.limited(raw)

    def limited(self, raw: np.ndarray) -> np.ndarray:
        """Raw scores within their limits.

        Parameters
        ----------
        raw : ndarray of shape (..., n_outputs)
            Raw scores.

        Returns
        -------
        ndarray of shape (..., n_outputs)
            The same, cut at the limits.
        """
        if self.limits is None:
            return np.asarray(raw, dtype=np.float64)
        low, high = np.array(self.limits).T
        return np.clip(raw, low, high)

    def theta(self, raw: np.ndarray) -> np.ndarray:
        """Parameters of the family.

        Parameters
        ----------
        raw : ndarray of shape (..., n_outputs)
            Raw scores.

        Returns
        -------
        ndarray of shape (..., n_outputs)
            Parameters.
        """
        return self.family.theta(self.limited(raw))

    def ready(self, y: np.ndarray, weight: np.ndarray | None = None) -> FamilyLikelihood:
        family = self.family.ready(y)
        if self.limits is not None:
            return self if family == self.family else replace(self, family=family)
        limits = []
        best = self.start(y, weight)
        noise = replace(self, family=family).noise_scale(best[None, :])[0]
        for k, (link, start) in enumerate(zip(family.links, best)):
            below, above = (_BELOW, _ABOVE) if k in family.scales and family.locations else (_ELSEWHERE,) * 2
            if k in family.locations:
                below = above = _FAR * noise[k]
            limits.append(
                (max(float(link.low), float(start - below)), min(float(link.high), float(start + above)))
            )
        return replace(self, family=family, limits=tuple(limits))

    def start(self, y: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
        return self.family.ready(y).init(np.asarray(y, dtype=np.float64), weight)

    def prior_units(self, y: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
        """Units of the prior functions: the noise of a location; 0, for none, on other scales.

        On a log scale a prior function would multiply the response far from the data without limit.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Responses.
        weight : ndarray of shape (n_samples,), optional
            Weights.

        Returns
        -------
        ndarray of shape (n_outputs,)
            Standard deviation of the response's noise at the best constant, where there is a location.
        """
        units = np.zeros(self.n_outputs)
        noise = self.noise_scale(self.start(y, weight)[None, :])[0]
        for k in self.family.locations:
            units[k] = noise[k]
        return units

    def response(self, raw: np.ndarray) -> np.ndarray:
        theta = self.theta(raw)
        return self.family.probabilities(theta) if self.classification else self.family.mean(theta)

    def uncertainty(self, members: np.ndarray) -> Uncertainty:
        theta = self.theta(members)
        if self.classification:
            return Uncertainty.from_probabilities(self.family.probabilities(theta))
        return Uncertainty.from_moments(self.family.mean(theta), self.family.var(theta))

    def check_labels(self, y: np.ndarray) -> None:
        self.family.ready(y).check_support(y, "label")

    def to_dict(self) -> dict[str, Any]:
        limits = None if self.limits is None else [list(pair) for pair in self.limits]
        return {"name": self.name, "family": self.family.to_dict(), "limits": limits}

    @property
    def _least(self) -> np.ndarray:
        """Least information of each parameter that the preconditioner goes by."""
        least = np.full(self.n_outputs, _LEAST)
        for k in self.family.locations:
            noise = np.inf if self.limits is None else (self.limits[k][1] - self.limits[k][0]) / (2.0 * _FAR)
            least[k] = _LEAST_OF_START / noise**2
        return least

    @property
    def _typical(self) -> float:
        """A response within the support; the Fisher information does not depend on it."""
        low, high = self.family.support.low, self.family.support.high
        if np.isfinite(low):
            if self.family.support.closed_low:
                return low
            return 0.5 * (low + high) if np.isfinite(high) else low + 1.0
        return high - 1.0 if np.isfinite(high) else 0.0
