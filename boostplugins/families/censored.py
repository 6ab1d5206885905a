"""Censored families: responses recorded at a limit when they lie beyond it (Tobit)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from boostplugins.families._between import score_between
from boostplugins.families._common import check_limits, limited, quiet, within
from boostplugins.families._numeric import LEVEL_WEIGHTS, LEVELS
from boostplugins.families.base import Family
from boostplugins.families.normal import Normal
from boostplugins.families.support import Support
from boostplugins.links import Link


@dataclass(frozen=True)
class Censored(Family):
    r"""A family whose responses below `low` are recorded as `low`, above `high` as `high`.

    A response at a limit counts with the log probability of everything beyond, one between with
    its log density. Parameters are those of the base family and describe the uncensored response;
    `mean`, `var` and quantiles are of the recorded response. The limits are the same for all rows; for limits
    of each row's own, such as times at which survivors were last seen, see `IntervalCensored`.

    The Fisher information is a 24-point quadrature of the squared score, so that a fit costs some
    twenty times that of the base family.

    Parameters
    ----------
    base : Family, default=Normal()
        Continuous family.
    low : float, default=0.0
        Least value that is recorded; ``-inf`` for none.
    high : float, default=inf
        Greatest value that is recorded.

    Examples
    --------
    >>> from boostplugins.families import Censored, Normal
    >>> tobit = Censored(Normal(), low=0.0)
    >>> float(tobit.cdf(0.0, [0.0, 1.0])), round(float(tobit.mean([0.0, 1.0])), 4)
    (0.5, 0.3989)
    """

    base: Family = field(default_factory=Normal)
    low: float = 0.0
    high: float = np.inf

    name = "censored"
    fisher_exact = False

    def __post_init__(self) -> None:
        if not isinstance(self.base, Family) or self.base.discrete or self.base.atoms or self.base.pairs:
            raise ValueError(f"base of Censored must be a continuous family, got {self.base!r}")
        check_limits(self.low, self.high, "; for limits of each row's own use IntervalCensored")

    @property
    def params(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the base family's parameters."""
        return self.base.params

    @property
    def links(self) -> tuple[Link, ...]:  # type: ignore[override]
        """Links of the base family."""
        return self.base.links

    @property
    def atoms(self) -> tuple[float, ...]:  # type: ignore[override]
        """The finite limits."""
        return tuple(limit for limit in (self.low, self.high) if np.isfinite(limit))

    @property
    def support(self) -> Support:  # type: ignore[override]
        """Between the limits, limits included that have a probability."""
        inner = self.base.support
        return Support(
            max(self.low, inner.low),
            min(self.high, inner.high),
            closed_low=inner.closed_low if self.low < inner.low else self.low > inner.low,
            closed_high=inner.closed_high if self.high > inner.high else self.high < inner.high,
        )

    def theta(self, raw: ArrayLike) -> np.ndarray:
        return self.base.theta(raw)

    def raw(self, theta: ArrayLike) -> np.ndarray:
        return self.base.raw(theta)

    def check_theta(self, theta: np.ndarray) -> None:
        self.base.check_theta(theta)

    def observed(self, y: np.ndarray) -> np.ndarray:
        return (y > self.low) & (y < self.high)

    def _guess(self, y: np.ndarray, weight: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
        inside = (y > self.low) & (y < self.high) & (weight > 0) & self.base.support.contains(y)
        if not inside.any():
            inside = weight > 0
        moved = None if offset is None else offset[inside]
        return self.base.init(y[inside], weight[inside], moved)

    @quiet
    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y, raw = np.asarray(y, dtype=np.float64), np.asarray(raw, dtype=np.float64)
        score, fisher = np.zeros(raw.shape), np.zeros(raw.shape)
        theta = self.base.theta(raw)
        inside = (y > self.low) & (y < self.high)
        score[inside] = self.base.score_and_fisher(y[inside], raw[inside])[0]
        bottom, top = np.zeros(len(y)), np.ones(len(y))
        below, above = np.full(len(y), -np.inf), np.full(len(y), np.inf)
        for limit, at, tail in ((self.low, y <= self.low, "low"), (self.high, y >= self.high, "high")):
            if not np.isfinite(limit):
                continue
            ends = (below, np.full(len(y), limit)) if tail == "low" else (np.full(len(y), limit), above)
            edge = score_between(self.base, *ends, raw)
            score[at] = edge[at]
            mass = self.base.cdf(limit, theta) if tail == "low" else self.base.sf(limit, theta)
            # A product of nothing and a square that overflows is nothing.
            fisher += np.where(mass > 0, mass, 0.0)[:, None] * np.minimum(edge**2, 1e300)
            if tail == "low":
                bottom = mass
            else:
                top = 1.0 - mass
        width = np.maximum(top - bottom, 0.0)
        for level, weight in zip(LEVELS, LEVEL_WEIGHTS):
            square = self._squared_score(bottom + level * width, raw, theta)
            fisher += (weight * width)[:, None] * np.minimum(square, 1e300)
        return limited(score, fisher)

    @quiet
    def _squared_score(self, q: np.ndarray, raw: np.ndarray, theta: np.ndarray) -> np.ndarray:
        at = self.base.ppf(np.clip(q, 1e-15, 1.0 - 1e-15), theta)
        usable = self.base.support.contains(at)
        square = np.zeros(raw.shape)
        square[usable] = self.base.score_and_fisher(at[usable], raw[usable])[0] ** 2
        return square

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        y = np.asarray(y, dtype=np.float64)
        middle = np.where((y > self.low) & (y < self.high), y, self._interior())
        density = self.base.log_pdf(middle, theta)
        if np.isfinite(self.low):
            density = np.where(y == self.low, self.base.log_cdf(self.low, theta), density)
        if np.isfinite(self.high):
            density = np.where(y == self.high, self.base.log_sf(self.high, theta), density)
        return within((y >= self.low) & (y <= self.high) & np.isfinite(y), density)

    def _interior(self) -> float:
        if np.isfinite(self.low) and np.isfinite(self.high):
            return 0.5 * (self.low + self.high)
        return self.low + 1.0 if np.isfinite(self.low) else min(self.high - 1.0, 1.0)

    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        y = np.asarray(y, dtype=np.float64)
        f = self.base.cdf(y, theta)
        return np.where(y < self.low, 0.0, np.where(y >= self.high, 1.0, f))

    def sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        y = np.asarray(y, dtype=np.float64)
        above = self.base.sf(y, theta)
        return np.where(y < self.low, 1.0, np.where(y >= self.high, 0.0, above))

    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        return np.clip(self.base.ppf(q, theta), self.low, self.high)

    def mean(self, theta: ArrayLike) -> np.ndarray:
        return self._moments(theta)[0]

    def var(self, theta: ArrayLike) -> np.ndarray:
        return self._moments(theta)[1]

    @quiet
    def _moments(self, theta: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of the recorded response, by quadrature over the free part."""
        theta = np.asarray(theta, dtype=np.float64)
        bottom = self.base.cdf(self.low, theta) if np.isfinite(self.low) else np.zeros(theta.shape[:-1])
        beyond = self.base.sf(self.high, theta) if np.isfinite(self.high) else np.zeros(theta.shape[:-1])
        width = np.maximum(1.0 - bottom - beyond, 0.0)[..., None]
        at = self.ppf(np.clip(bottom[..., None] + LEVELS * width, 1e-15, 1 - 1e-15), theta[..., None, :])
        parts = [(at, LEVEL_WEIGHTS * width)]
        if np.isfinite(self.low):
            parts.append((np.full((*bottom.shape, 1), self.low), bottom[..., None]))
        if np.isfinite(self.high):
            parts.append((np.full((*bottom.shape, 1), self.high), beyond[..., None]))
        mass = sum(weight.sum(axis=-1) for _, weight in parts)
        mean = sum((weight * value).sum(axis=-1) for value, weight in parts) / mass
        square = sum((weight * (value - mean[..., None]) ** 2).sum(axis=-1) for value, weight in parts)
        return mean, square / mass

    def sample(self, theta: ArrayLike, size: int, rng: np.random.Generator) -> np.ndarray:
        return np.clip(self.base.sample(theta, size, rng), self.low, self.high)
