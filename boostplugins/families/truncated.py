"""Truncated families: responses outside the limits never enter the data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from boostplugins.families._between import log_between, score_between
from boostplugins.families._common import check_limits, limited, quiet, within
from boostplugins.families._invert import invert
from boostplugins.families._numeric import LEVEL_WEIGHTS, LEVELS
from boostplugins.families.base import Family
from boostplugins.families.normal import Normal
from boostplugins.families.support import Support
from boostplugins.links import Link

_FEW_DIGITS = 1e-6  # mass beside a level of the base below which the level's rounding is felt
_ROUGH = 1e-11  # the same for quantiles between which to average
_DOUBLINGS, _NEWTON = 200, 8


@dataclass(frozen=True)
class Truncated(Family):
    r"""A family given that its response lies between `low` and `high`.

    .. math:: \log p(y) = \log f(y) - \log(F(high) - F(low))

    The Fisher information is a 24-point quadrature of the squared score, so that a fit costs some
    twenty times that of the base family. Far out, where hardly any of the base is between the limits, score
    and log density are differences of large numbers, good to the rounding of the base's own.

    Parameters
    ----------
    base : Family, default=Normal()
        Continuous family.
    low : float, default=0.0
        Lower limit; ``-inf`` for none.
    high : float, default=inf
        Upper limit.

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
        if not isinstance(self.base, Family) or self.base.discrete or self.base.atoms or self.base.pairs:
            raise ValueError(f"base of Truncated must be a continuous family, got {self.base!r}")
        check_limits(self.low, self.high)

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
        """Log probability of the base between the limits."""
        return log_between(self.base, self.low, self.high, theta)

    @quiet
    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        raw = np.asarray(raw, dtype=np.float64)
        low, high = np.full(len(raw), self.low), np.full(len(raw), self.high)
        shift = score_between(self.base, low, high, raw)
        score = self.base.score_and_fisher(np.asarray(y, dtype=np.float64), raw)[0]
        theta = self.base.theta(raw)
        log_mass = self._log_mass(theta)
        fisher = np.zeros(raw.shape)
        for level, weight in zip(LEVELS, LEVEL_WEIGHTS):
            at = self._ppf(np.full(len(raw), level), theta, log_mass, _ROUGH)
            fisher += weight * (self._score_at(at, raw) - shift) ** 2
        return limited(score - shift, fisher)

    @quiet
    def _score_at(self, at: np.ndarray, raw: np.ndarray) -> np.ndarray:
        usable = self.base.support.contains(at)
        score = np.zeros(raw.shape)
        score[usable] = self.base.score_and_fisher(at[usable], raw[usable])[0]
        return score

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        y = np.asarray(y, dtype=np.float64)
        return within(self.support.contains(y), self.base.log_pdf(y, theta) - self._log_mass(theta))

    @quiet
    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        y = np.clip(np.asarray(y, dtype=np.float64), self.low, self.high)
        part = log_between(self.base, self.low, y, theta) - self._log_mass(theta)
        return np.where(y <= self.low, 0.0, np.where(y >= self.high, 1.0, np.exp(np.minimum(part, 0.0))))

    @quiet
    def sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        y = np.clip(np.asarray(y, dtype=np.float64), self.low, self.high)
        part = log_between(self.base, y, self.high, theta) - self._log_mass(theta)
        return np.where(y <= self.low, 1.0, np.where(y >= self.high, 0.0, np.exp(np.minimum(part, 0.0))))

    @quiet
    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        theta = np.asarray(theta, dtype=np.float64)
        return self._ppf(np.asarray(q, dtype=np.float64), theta, self._log_mass(theta))

    @quiet
    def _ppf(
        self, q: np.ndarray, theta: np.ndarray, log_mass: np.ndarray, least: float = _FEW_DIGITS
    ) -> np.ndarray:
        mass = np.exp(log_mass)
        level = np.clip(self.base.cdf(self.low, theta) + q * mass, 0.0, 1.0)
        found = np.array(self.base.ppf(level, theta), ndmin=1)
        # Levels of the base whose digits are lost beside the mass: search where the family's own have them.
        lost = (~(mass > least * level) | ~np.isfinite(found).reshape(level.shape)) & (q > 0) & (q < 1)
        if lost.any():
            flat = np.broadcast_to(theta, (*level.shape, theta.shape[-1]))
            found[np.atleast_1d(lost)] = self._search(
                np.broadcast_to(q, level.shape)[lost],
                flat[lost],
                np.broadcast_to(log_mass, level.shape)[lost],
            )
        inside = np.clip(found.reshape(level.shape), *self._ends())
        return np.where(q <= 0.0, self.support.low, np.where(q >= 1.0, self.support.high, inside))

    def _ends(self) -> tuple[float, float]:
        """Least and greatest float within the support."""
        support = self.support
        return float(np.nextafter(support.low, np.inf)), float(np.nextafter(support.high, -np.inf))

    def _search(self, q: np.ndarray, theta: np.ndarray, log_mass: np.ndarray) -> np.ndarray:
        """Quantiles by root search between the limits, or near the one beyond which the base ends."""
        low, high = (np.full(len(q), end) for end in self._ends())
        lower = bool(np.isfinite(self.support.low))
        if lower == bool(np.isfinite(self.support.high)):
            return invert(lambda x, rows: self.cdf(x, theta[rows]), q, low, high)
        near, far = (low, high) if lower else (high, low)
        # Length of the tail there: its probability over its density.
        step = np.exp(np.clip(log_mass - self.base.log_pdf(near, theta), -700.0, 700.0))
        found, good = self._newton(q, theta, log_mass, near, step if lower else -step)
        for _ in range(_DOUBLINGS):  # bracket what Newton's steps have not found
            if good.all():
                break
            far[~good] = near[~good] + (step[~good] if lower else -step[~good])
            share = self.cdf(far[~good], theta[~good])
            short = np.flatnonzero(~good)[share < q[~good] if lower else share > q[~good]]
            if not len(short):
                break
            step[short] *= 2.0
        left, rest = np.minimum(near, far), np.flatnonzero(~good)
        if len(rest):
            right = np.maximum(near, far)[rest]
            found[rest] = invert(lambda x, rows: self.cdf(x, theta[rest[rows]]), q[rest], left[rest], right)
        return found

    def _newton(
        self, q: np.ndarray, theta: np.ndarray, log_mass: np.ndarray, near: np.ndarray, step: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Quantiles in a tail, and which are good: Newton's steps on its log, almost a line there."""
        upper = bool(np.isfinite(self.support.low))
        log_tail = self.base.log_sf if upper else self.base.log_cdf
        target = log_mass + (np.log1p(-q) if upper else np.log(q))
        x = near + step * (log_mass - target)
        for _ in range(_NEWTON):
            x = np.clip(x, *self._ends())
            value = log_tail(x, theta)
            good = np.abs(value - target) <= 1e-10 + 4e-16 * np.abs(target)
            if good.all():
                break
            pace = np.exp(self.base.log_pdf(x, theta) - value)
            x = np.where(good, x, x + np.copysign(1.0, step) * (value - target) / pace)
        return x, good

    def sample(self, theta: ArrayLike, size: int, rng: np.random.Generator) -> np.ndarray:
        return np.clip(super().sample(theta, size, rng), *self._ends())

    def mean(self, theta: ArrayLike) -> np.ndarray:
        at = self.ppf(LEVELS, np.asarray(theta, dtype=np.float64)[..., None, :])
        return at @ LEVEL_WEIGHTS

    def var(self, theta: ArrayLike) -> np.ndarray:
        at = self.ppf(LEVELS, np.asarray(theta, dtype=np.float64)[..., None, :])
        return (at - (at @ LEVEL_WEIGHTS)[..., None]) ** 2 @ LEVEL_WEIGHTS
