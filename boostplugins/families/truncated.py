"""Truncated families: responses outside the limits never enter the data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from boostplugins.families._common import FISHER_FLOOR, quiet
from boostplugins.families._numeric import LEVEL_WEIGHTS, LEVELS, raw_gradient
from boostplugins.families.base import Family
from boostplugins.families.normal import Normal
from boostplugins.families.support import Support
from boostplugins.links import Link

_FAR_OUT = 1e-13  # probability above the lower limit at which quantiles of the base lose their digits


@dataclass(frozen=True)
class Truncated(Family):
    r"""A family given that its response lies between `low` and `high`.

    .. math:: \log p(y) = \log f(y) - \log(F(high) - F(low))

    The Fisher information is a 24-point quadrature of the squared score, so that a fit costs some
    twenty times that of the base family.

    Parameters
    ----------
    base : Family, default=Normal()
        Continuous family.
    low, high : float
        Limits; infinite for none.

    Examples
    --------
    >>> from boostplugins.families import Normal, Truncated
    >>> half = Truncated(Normal(), low=0.0)
    >>> round(float(half.mean([0.0, 1.0])), 4)
    0.7979
    """

    base: Family = field(default_factory=Normal)
    low: float = 0.0
    high: float = np.inf

    name = "truncated"
    fisher_exact = False

    def __post_init__(self) -> None:
        if not isinstance(self.base, Family) or self.base.discrete or self.base.atoms:
            raise ValueError(f"base of Truncated must be a continuous family, got {self.base!r}")
        if not self.low < self.high:
            raise ValueError(f"low must be below high, got {self.low:g} and {self.high:g}")

    @property
    def params(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the base family's parameters."""
        return self.base.params

    @property
    def links(self) -> tuple[Link, ...]:  # type: ignore[override]
        """Links of the base family."""
        return self.base.links

    @property
    def support(self) -> Support:  # type: ignore[override]
        """Between the limits."""
        return Support(max(self.low, self.base.support.low), min(self.high, self.base.support.high))

    def theta(self, raw: ArrayLike) -> np.ndarray:
        return self.base.theta(raw)

    def raw(self, theta: ArrayLike) -> np.ndarray:
        return self.base.raw(theta)

    def check_theta(self, theta: np.ndarray) -> None:
        self.base.check_theta(theta)

    def _guess(self, y: np.ndarray, weight: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
        return self.base.init(y, weight, offset)

    @quiet
    def _log_mass(self, theta: ArrayLike) -> np.ndarray:
        """Log probability between the limits, from the tail in which it is small."""
        theta = np.asarray(theta, dtype=np.float64)
        if not np.isfinite(self.high):
            return self.base.log_sf(self.low, theta)
        if not np.isfinite(self.low):
            return self.base.log_cdf(self.high, theta)
        upper = self.base.log_sf(self.low, theta) < self.base.log_cdf(self.high, theta)
        large = np.where(upper, self.base.log_sf(self.low, theta), self.base.log_cdf(self.high, theta))
        small = np.where(upper, self.base.log_sf(self.high, theta), self.base.log_cdf(self.low, theta))
        return large + np.log(-np.expm1(np.minimum(small - large, 0.0)))

    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        shift = raw_gradient(lambda at: self._log_mass(self.base.theta(at)), raw)
        score = self.base.score_and_fisher(np.asarray(y, dtype=np.float64), raw)[0] - shift
        theta = self.base.theta(raw)
        fisher = np.zeros(raw.shape)
        for level, weight in zip(LEVELS, LEVEL_WEIGHTS):
            at = self._ppf(np.full(len(raw), level), theta)
            fisher += weight * (self._score_at(at, raw) - shift) ** 2
        return score, np.maximum(np.nan_to_num(fisher, posinf=1e30), FISHER_FLOOR)

    @quiet
    def _score_at(self, at: np.ndarray, raw: np.ndarray) -> np.ndarray:
        usable = self.base.support.contains(at)
        score = np.zeros(raw.shape)
        score[usable] = self.base.score_and_fisher(at[usable], raw[usable])[0]
        return score

    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        y = np.asarray(y, dtype=np.float64)
        inside = (y > self.low) & (y < self.high)
        density = self.base.log_pdf(y, theta)
        with np.errstate(invalid="ignore"):
            density = density - self._log_mass(theta)
        return np.where(inside & (density < np.inf), density, -np.inf)

    @quiet
    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        y = np.clip(np.asarray(y, dtype=np.float64), self.low, self.high)
        mass = np.exp(self._log_mass(theta))
        if np.isfinite(self.low):  # from the upper tail, which is exact where low lies far out
            part = self.base.sf(self.low, theta) - self.base.sf(y, theta)
        else:
            part = self.base.cdf(y, theta)
        return np.clip(np.nan_to_num(part / mass), 0.0, 1.0)

    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        return self._ppf(np.asarray(q, dtype=np.float64), np.asarray(theta, dtype=np.float64))

    @quiet
    def _ppf(self, q: np.ndarray, theta: np.ndarray) -> np.ndarray:
        mass = np.exp(self._log_mass(theta))
        bottom = self.base.cdf(self.low, theta) if np.isfinite(self.low) else 0.0
        level = np.clip(bottom + q * mass, 0.0, 1.0)
        found = self.base.ppf(level, theta)
        if np.isfinite(self.low) and not np.isfinite(self.high):
            # Far above all but a trace of the base the tail is exponential, and levels round to 1.
            hazard = np.exp(self.base.log_pdf(self.low, theta) - self.base.log_sf(self.low, theta))
            tail = self.low - np.log1p(-np.minimum(q, 1.0 - 1e-16)) / hazard
            tail = np.where(np.isfinite(tail), tail, self.low)  # nothing but the limit is within reach
            lost = (bottom > 1.0 - _FAR_OUT) | ~np.isfinite(found)
            found = np.where(lost & (q < 1.0), tail, found)
        return np.clip(found, self.low, self.high)

    def mean(self, theta: ArrayLike) -> np.ndarray:
        at = self.ppf(LEVELS, np.asarray(theta, dtype=np.float64)[..., None, :])
        return at @ LEVEL_WEIGHTS

    def var(self, theta: ArrayLike) -> np.ndarray:
        at = self.ppf(LEVELS, np.asarray(theta, dtype=np.float64)[..., None, :])
        return (at - (at @ LEVEL_WEIGHTS)[..., None]) ** 2 @ LEVEL_WEIGHTS
