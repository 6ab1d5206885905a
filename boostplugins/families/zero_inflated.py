"""Zero-inflated families: counts with more zeros than their distribution allows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from boostplugins.families._common import FISHER_FLOOR, quiet
from boostplugins.families._zeros import WithZeros
from boostplugins.families.base import Family
from boostplugins.families.poisson import Poisson
from boostplugins.links import LOGIT_LIMIT


@dataclass(frozen=True)
class ZeroInflated(WithZeros):
    r"""Zero with probability pi, otherwise a draw of the base family, which may be zero too.

    .. math:: P(0) = \pi + (1 - \pi) f(0), \qquad p(y) = (1 - \pi) f(y), \quad y > 0

    Parameters
    ----------
    base : Family, default=Poisson()
        Family of counts.

    Examples
    --------
    >>> from boostplugins.families import get_family
    >>> zip_ = get_family("ZIP")
    >>> zip_, float(zip_.mean([2.0, 0.25]))
    (ZeroInflated(base=Poisson()), 1.5)
    """

    base: Family = field(default_factory=Poisson)

    name = "zero_inflated"

    def __post_init__(self) -> None:
        if not isinstance(self.base, Family) or not self.base.discrete or self.base.classification:
            raise ValueError(
                f"base of ZeroInflated must be a family of counts, got {self.base!r}; see Hurdle"
            )

    def _guess(self, y: np.ndarray, weight: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
        positive = (y > 0) & (weight > 0)
        if not positive.any():
            return np.append(self.base.init(y, weight, offset), 0.0)
        part = None if offset is None else offset[positive]
        raw = self.base.init(y[positive], weight[positive], part)
        shift = np.zeros((len(y), len(raw)))
        shift[:, 0] = 0.0 if offset is None else offset
        zero = np.exp(self.base.log_pdf(0.0, self.base.theta(shift + raw)))
        excess = np.average((y == 0) - zero, weights=weight) / max(
            np.average(1.0 - zero, weights=weight), 1e-9
        )
        share = float(np.clip(excess, 0.02, 0.98))
        return np.append(raw, np.log(share / (1.0 - share)))

    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y = np.asarray(y, dtype=np.float64)
        logit = np.clip(raw[:, -1], -LOGIT_LIMIT, LOGIT_LIMIT)
        pi, rest = expit(logit), expit(-logit)
        inner = np.ascontiguousarray(raw[:, :-1])
        at_zero, _ = self.base.score_and_fisher(np.zeros(len(y)), inner)
        score, fisher = np.empty(raw.shape), np.empty(raw.shape)
        base_score, base_fisher = self.base.score_and_fisher(y, inner)
        none = np.exp(self.base.log_pdf(0.0, self.base.theta(inner)))
        zero = pi + rest * none
        share = rest * none / zero  # probability that a zero is one of the base family's
        pull = pi * rest * (1.0 - none) / zero
        empty = y == 0
        score[:, :-1] = np.where(empty[:, None], share[:, None] * at_zero, base_score)
        score[:, -1] = np.where(empty, pull, -pi)
        fisher[:, -1] = zero * pull**2 + rest * (1.0 - none) * pi**2
        # E s s' of the base, with its zeros' part replaced by that of all zeros.
        lost = (rest * none * (1.0 - share))[:, None] * at_zero**2
        # A count beyond the first digit's loss keeps a thousandth: never zero or below.
        fisher[:, :-1] = np.maximum(rest[:, None] * base_fisher - lost, 1e-3 * rest[:, None] * base_fisher)
        return score, np.maximum(fisher, FISHER_FLOOR)

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        inner, pi = self.split(theta)
        y = np.asarray(y, dtype=np.float64)
        density = self.base.log_pdf(y, inner) + np.log1p(-pi)
        return np.where(y == 0, np.logaddexp(np.log(pi), density), density)

    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        inner, pi = self.split(theta)
        y = np.asarray(y, dtype=np.float64)
        return np.where(y < 0, 0.0, pi + (1.0 - pi) * self.base.cdf(y, inner))

    def sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        inner, pi = self.split(theta)
        return np.where(np.asarray(y) < 0, 1.0, (1.0 - pi) * self.base.sf(y, inner))

    @quiet
    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        inner, pi = self.split(theta)
        q = np.asarray(q, dtype=np.float64)
        level = np.clip((q - pi) / (1.0 - pi), 0.0, 1.0)
        found = self.base.ppf(np.where(q <= pi, 0.0, level), inner)
        # Rounding of the level can land one count to either side.
        found = np.where(self.cdf(found, theta) < q * (1 - 1e-15), found + 1.0, found)
        return np.where(self.cdf(found - 1.0, theta) >= q, np.maximum(found - 1.0, 0.0), found)

    def mean(self, theta: ArrayLike) -> np.ndarray:
        inner, pi = self.split(theta)
        return (1.0 - pi) * self.base.mean(inner)

    def var(self, theta: ArrayLike) -> np.ndarray:
        inner, pi = self.split(theta)
        return (1.0 - pi) * (self.base.var(inner) + pi * self.base.mean(inner) ** 2)

    def sample(self, theta: ArrayLike, size: int, rng: np.random.Generator) -> np.ndarray:
        inner, pi = self.split(theta)
        draw = self.base.sample(inner, size, rng)
        return np.where(rng.random(draw.shape) < pi[..., None], 0.0, draw)
