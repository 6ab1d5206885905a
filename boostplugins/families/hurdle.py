"""Hurdle families: zero or not first, then a response above zero."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from boostplugins.families._common import FISHER_FLOOR, quiet
from boostplugins.families._invert import invert_integer
from boostplugins.families._zeros import WithZeros
from boostplugins.families.base import Family
from boostplugins.families.gamma import Gamma
from boostplugins.links import LOGIT_LIMIT


@dataclass(frozen=True)
class Hurdle(WithZeros):
    r"""Zero with probability pi, otherwise a draw of the base family that is not zero.

    .. math:: P(0) = \pi, \qquad p(y) = (1 - \pi) \frac{f(y)}{1 - f(0)}, \quad y > 0

    The share of zeros is orthogonal to the base's parameters.

    Parameters
    ----------
    base : Family, default=Gamma()
        Family of positive responses, or of counts.

    Examples
    --------
    >>> from boostplugins.families import get_family
    >>> zaga = get_family("ZAGA")
    >>> zaga, float(zaga.mean([2.0, 1.0, 0.25]))
    (Hurdle(base=Gamma()), 1.5)
    """

    base: Family = field(default_factory=Gamma)

    name = "hurdle"

    def __post_init__(self) -> None:
        good = isinstance(self.base, Family) and not self.base.classification and not self.base.atoms
        if not good or self.base.pairs or self.base.support.low < 0:
            raise ValueError(
                f"base of Hurdle must be a family of positive responses or counts, got {self.base!r}"
            )

    def _guess(self, y: np.ndarray, weight: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
        positive = (y > 0) & (weight > 0)
        share = float(np.clip(np.average(y == 0, weights=weight), 0.5 / len(y), 1.0 - 0.5 / len(y)))
        logit = np.log(share / (1.0 - share))
        if not positive.any():
            return np.append(self.base.init(np.ones(len(y)), weight, offset), logit)
        part = None if offset is None else offset[positive]
        return np.append(self.base.init(y[positive], weight[positive], part), logit)

    def _none(self, inner: np.ndarray) -> np.ndarray:
        """Probability of a zero under the base family."""
        if not self.base.discrete:
            return np.zeros(np.asarray(inner).shape[:-1])
        return np.exp(self.base.log_pdf(0.0, inner))

    def _some(self, inner: np.ndarray) -> np.ndarray:
        """Probability of no zero under the base family."""
        if not self.base.discrete:
            return np.ones(np.asarray(inner).shape[:-1])
        return np.maximum(-np.expm1(self.base.log_pdf(0.0, inner)), np.finfo(float).tiny)

    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y = np.asarray(y, dtype=np.float64)
        logit = np.clip(raw[:, -1], -LOGIT_LIMIT, LOGIT_LIMIT)
        pi, rest = expit(logit), expit(-logit)
        inner = np.ascontiguousarray(raw[:, :-1])
        above = y > 0
        score, fisher = np.empty(raw.shape), np.empty(raw.shape)
        base_score, base_fisher = self.base.score_and_fisher(np.where(above, y, 1.0), inner)
        if self.base.discrete:
            at_zero, _ = self.base.score_and_fisher(np.zeros(len(y)), inner)
            theta = self.base.theta(inner)
            none, some = self._none(theta)[:, None], self._some(theta)[:, None]
            odds = none / some
            base_score = base_score + odds * at_zero
            exact = (base_fisher - none * at_zero**2) / some - (odds * at_zero) ** 2
            # Where hardly any count exceeds 1 the difference cancels; keep it positive.
            base_fisher = np.maximum(exact, 1e-6 * base_fisher)
        score[:, :-1] = np.where(above[:, None], base_score, 0.0)
        score[:, -1] = np.where(above, -pi, rest)
        fisher[:, :-1] = rest[:, None] * base_fisher
        fisher[:, -1] = pi * rest
        return score, np.maximum(fisher, FISHER_FLOOR)

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        inner, pi = self.split(theta)
        y = np.asarray(y, dtype=np.float64)
        density = (
            self.base.log_pdf(np.where(y == 0, 1.0, y), inner) + np.log1p(-pi) - np.log(self._some(inner))
        )
        return np.where(y == 0, np.log(pi), np.where(y > 0, density, -np.inf))

    @quiet
    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        inner, pi = self.split(theta)
        y = np.asarray(y, dtype=np.float64)
        # From the upper tail where hardly a count is above zero: the lower one rounds to 1 there.
        above, some = self.base.sf(np.maximum(y, 0.0), inner), self._some(inner)
        part = np.where(above < 0.5, 1.0 - above / some, (self.base.cdf(y, inner) - self._none(inner)) / some)
        if self.base.discrete:
            part = np.where(y < 1, 0.0, part)  # which rounding may miss
        return np.where(y < 0, 0.0, pi + (1.0 - pi) * np.clip(part, 0.0, 1.0))

    @quiet
    def sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        inner, pi = self.split(theta)
        y = np.asarray(y, dtype=np.float64)
        part = self.base.sf(np.maximum(y, 0.0), inner) / self._some(inner)
        return np.where(y < 0, 1.0, (1.0 - pi) * np.clip(part, 0.0, 1.0))

    @quiet
    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        inner, pi = self.split(theta)
        q = np.asarray(q, dtype=np.float64)
        level = np.clip((q - pi) / (1.0 - pi), 0.0, 1.0)
        found = self.base.ppf(np.clip(self._none(inner) + level * self._some(inner), 0.0, 1.0), inner)
        if self.base.discrete:  # rounding of the level can land one count to either side
            found = np.where(self.cdf(found, theta) < q * (1 - 1e-15), found + 1.0, np.maximum(found, 1.0))
            found = np.where((found > 1) & (self.cdf(found - 1.0, theta) >= q), found - 1.0, found)
            found = self._rare(q, level, inner, found)
        return np.where(q <= pi, 0.0, found)

    def _rare(self, q: np.ndarray, level: np.ndarray, inner: np.ndarray, found: np.ndarray) -> np.ndarray:
        """Quantiles of counts that are hardly ever above zero, whose levels round to 1 in the base."""
        rare = (self._some(inner) < 1e-6) & (q < 1.0) & (level > 0)
        if not rare.any():
            return found
        rare, level, found = np.broadcast_arrays(rare, level, found)
        flat = np.broadcast_to(inner, (*found.shape, inner.shape[-1]))[rare]
        found, ones = np.array(found), np.ones(len(flat))

        def above_zero(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
            return np.where(x < 1, 0.0, 1.0 - self.base.sf(x, flat[rows]) / self._some(flat[rows]))

        found[rare] = np.maximum(invert_integer(above_zero, level[rare], ones, ones), 1.0)
        return found

    def mean(self, theta: ArrayLike) -> np.ndarray:
        inner, pi = self.split(theta)
        return (1.0 - pi) * self.base.mean(inner) / self._some(inner)

    def var(self, theta: ArrayLike) -> np.ndarray:
        inner, pi = self.split(theta)
        mean, some = self.base.mean(inner), (1.0 - pi) / self._some(inner)
        return some * (self.base.var(inner) + mean**2) - (some * mean) ** 2

    def sample(self, theta: ArrayLike, size: int, rng: np.random.Generator) -> np.ndarray:
        if self.base.discrete:
            return super().sample(theta, size, rng)
        inner, pi = self.split(theta)
        draw = self.base.sample(inner, size, rng)
        return np.where(rng.random(draw.shape) < pi[..., None], 0.0, draw)
