"""Families seen through limits of each row's own: survival times, detection limits, binned responses."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from boostplugins.families._between import log_between, score_between
from boostplugins.families._common import LEAST_LOG, limited, quiet
from boostplugins.families._intervals import as_intervals, read_intervals
from boostplugins.families._numeric import LEVEL_WEIGHTS, LEVELS
from boostplugins.families._start import best_constant
from boostplugins.families.base import Family
from boostplugins.families.normal import Normal
from boostplugins.families.support import Support
from boostplugins.links import Link

# Least share of the information that censored rows are taken to hold, and the rows that it is taken from.
_LEAST_SHARE, _ROWS = 0.01, 500


@dataclass(frozen=True)
class IntervalCensored(Family):
    r"""A family whose responses are known to lie between two limits, which each row has for itself.

    Responses are pairs (lower, upper), as an array of two columns: equal entries for a response that
    was observed, ``inf`` above for one that is right-censored (a survival time beyond the end of the
    study), ``-inf``, or the support's end, below for a left-censored one, and two numbers for an
    interval. A structured array of scikit-survival's kind, (event, time), is taken too; a vector holds
    observed responses only.

    .. math:: \log L = \begin{cases} \log f(y) & \text{observed} \\
              \log (F(upper) - F(lower)) & \text{otherwise} \end{cases}

    Parameters and predictions are those of the base family, that is of the response itself, not of what
    was recorded: ``predict_dist(X).cdf(t)`` is the probability of an event by the time t. Limits must tell
    nothing else about the response (non-informative censoring).

    The curvature is the base family's Fisher information, as if nothing were censored: the rule by which
    rows are weighed must not depend on what happened to them. Fits allow for what censored rows lack on
    the whole, see `seen`.

    Parameters
    ----------
    base : Family, default=Normal()
        Continuous family.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.families import Exponential, IntervalCensored
    >>> survival = IntervalCensored(Exponential())
    >>> time, event = np.array([2.0, 5.0]), np.array([True, False])
    >>> y = np.column_stack([time, np.where(event, time, np.inf)])
    >>> survival.log_pdf(survival.responses(y), [[4.0], [4.0]]).round(3)
    array([-1.886, -1.25 ])
    """

    base: Family = field(default_factory=Normal)

    name = "interval_censored"
    pairs = True

    def __post_init__(self) -> None:
        if not isinstance(self.base, Family) or self.base.discrete or self.base.atoms or self.base.pairs:
            raise ValueError(f"base of IntervalCensored must be a continuous family, got {self.base!r}")

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
        """That of the base family."""
        return self.base.support

    @property
    def locations(self) -> tuple[int, ...]:  # type: ignore[override]
        """Those of the base family."""
        return self.base.locations

    @property
    def scales(self) -> tuple[int, ...]:  # type: ignore[override]
        """Those of the base family."""
        return self.base.scales

    @property
    def fisher_exact(self) -> bool:  # type: ignore[override]
        """Of observed responses: as the base family."""
        return self.base.fisher_exact

    @property
    def equivariance(self) -> str | None:
        return self.base.equivariance

    def rescale(self, theta: ArrayLike, scale: float, shift: float = 0.0) -> np.ndarray:
        try:
            return self.base.rescale(theta, scale, shift)
        except ValueError:
            raise ValueError(f"family {self.name} does not follow y -> {scale:g} y + {shift:g}") from None

    def theta(self, raw: ArrayLike) -> np.ndarray:
        return self.base.theta(raw)

    def raw(self, theta: ArrayLike) -> np.ndarray:
        return self.base.raw(theta)

    def check_theta(self, theta: np.ndarray) -> None:
        self.base.check_theta(theta)

    def responses(self, y: ArrayLike, name: str = "y") -> np.ndarray:
        return read_intervals(y, name)

    def check_support(self, y: ArrayLike, name: str = "y") -> None:
        rows = as_intervals(y)
        observed, support = rows["lower"] == rows["upper"], self.base.support
        support.check(rows["lower"][observed], name, f"family {self.name}")
        empty = (rows["upper"] <= support.low) | (rows["lower"] >= support.high)
        if (empty & ~observed).any():
            first = rows[empty & ~observed][0]
            raise ValueError(
                f"{name} must reach into the {support} of family {self.name}, got {first['lower']:g} and "
                f"{first['upper']:g} ({int((empty & ~observed).sum())} rows outside); drop them"
            )

    def points(self, y: np.ndarray) -> np.ndarray:
        rows = as_intervals(y)
        low, high = rows["lower"], rows["upper"]
        closed = np.isfinite(low) & np.isfinite(high)
        middle = np.where(closed, low, 0.0) * 0.5 + np.where(closed, high, 0.0) * 0.5
        middle = np.where(low == high, low, middle)
        return np.where(closed, middle, np.where(np.isfinite(low), low, high))

    def observed(self, y: np.ndarray) -> np.ndarray:
        rows = as_intervals(y)
        return rows["lower"] == rows["upper"]

    def init(
        self, y: np.ndarray, weight: np.ndarray | None = None, offset: np.ndarray | None = None
    ) -> np.ndarray:
        rows = as_intervals(y)
        weight = np.ones(len(rows)) if weight is None else np.asarray(weight, dtype=np.float64)
        points = self.points(rows)
        usable = self.base.support.contains(points) & (weight > 0)
        self._check_bounds(rows[weight > 0])
        if (usable & self.observed(rows)).all():
            return self.base.init(points, weight, offset)
        if not usable.any():
            points, usable = np.ones(len(rows)), np.ones(len(rows), dtype=bool)
        part = None if offset is None else np.asarray(offset, dtype=np.float64)[usable]
        guess = self.base.init(points[usable], weight[usable], part)
        return best_constant(self, rows, weight, guess, offset)

    def _check_bounds(self, rows: np.ndarray) -> None:
        """Refuse rows whose likelihood only grows as the distribution runs off to one side."""
        known, support = self.observed(rows), self.base.support
        for end, bounded in (
            ("above", rows["upper"] < support.high),
            ("below", rows["lower"] > support.low),
        ):
            if not (known | bounded).any():
                raise ValueError(
                    f"y must have an observed row, or one with a finite limit {end} within the {support} of "
                    f"family {self.name}, got none in {len(rows)} rows: the likelihood has no maximum"
                )

    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows, raw = as_intervals(y), np.asarray(raw, dtype=np.float64)
        known = rows["lower"] == rows["upper"]
        if known.all():
            return self.base.score_and_fisher(rows["lower"], raw)
        # Information does not depend on the response: any within the support will do for censored rows.
        middle = np.where(known, rows["lower"], 0.0)
        middle[~known] = self.base.ppf(0.5, self.base.theta(raw[~known]))
        usable = self.base.support.contains(middle)
        score, fisher = np.zeros(raw.shape), np.ones(raw.shape)
        score[usable], fisher[usable] = self.base.score_and_fisher(middle[usable], raw[usable])
        hidden = ~known
        score[hidden] = score_between(self.base, rows["lower"][hidden], rows["upper"][hidden], raw[hidden])
        return limited(score, fisher)

    def fisher_matrix(self, raw: np.ndarray) -> np.ndarray:
        return self.base.fisher_matrix(raw)

    @quiet
    def seen(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray | None:
        r"""Share of the full information that the rows hold, at one set of parameters.

        A row known to lie in an interval I lacks what the score varies by within:
        :math:`1 - P(I)\, Var(s \mid I) / E s^2`, by a 24-point quadrature.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Responses; the share is taken from at most 500 of them.
        raw : ndarray of shape (K,)
            Raw scores.

        Returns
        -------
        ndarray of shape (K,)
            Shares in [0.01, 1].
        """
        rows = as_intervals(y)
        rows = rows[:: max(len(rows) // _ROWS, 1)]
        at = np.tile(raw, (len(rows), 1))
        theta = self.base.theta(at)
        low, high = self.base.cdf(rows["lower"], theta), self.base.cdf(rows["upper"], theta)
        width = np.maximum(high - low, 0.0)
        first, second = np.zeros(at.shape), np.zeros(at.shape)
        for level, weight in zip(LEVELS, LEVEL_WEIGHTS):
            inside = self.base.ppf(np.clip(low + level * width, 1e-15, 1.0 - 1e-15), theta)
            usable = self.base.support.contains(inside)
            score = np.zeros(at.shape)
            score[usable] = self.base.score_and_fisher(inside[usable], at[usable])[0]
            first += weight * score
            second += weight * score**2
        lost = (width[:, None] * (second - first**2))[~self.observed(rows)].sum(axis=0) / len(rows)
        full = self.score_and_fisher(rows[:1], at[:1])[1][0]
        return np.clip(np.nan_to_num(1.0 - lost / full, nan=1.0), _LEAST_SHARE, 1.0)

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        theta = np.asarray(theta, dtype=np.float64)
        rows = as_intervals(y)
        if (rows["lower"] == rows["upper"]).all():
            return self.base.log_pdf(rows["lower"], theta)
        low, high, _ = np.broadcast_arrays(rows["lower"], rows["upper"], theta[..., 0])
        flat = np.broadcast_to(theta, (*low.shape, theta.shape[-1]))
        known = low == high
        density = np.empty(low.shape)
        density[known] = self.base.log_pdf(low[known], flat[known])
        hidden = log_between(self.base, low[~known], high[~known], flat[~known])
        support = self.base.support
        possible = (high[~known] > support.low) & (low[~known] < support.high)
        density[~known] = np.where(possible, np.maximum(hidden, LEAST_LOG), -np.inf)
        return density

    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        return self.base.cdf(y, theta)

    def sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        return self.base.sf(y, theta)

    def log_cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        return self.base.log_cdf(y, theta)

    def log_sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        return self.base.log_sf(y, theta)

    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        return self.base.ppf(q, theta)

    def mean(self, theta: ArrayLike) -> np.ndarray:
        return self.base.mean(theta)

    def var(self, theta: ArrayLike) -> np.ndarray:
        return self.base.var(theta)

    def sample(self, theta: ArrayLike, size: int, rng: np.random.Generator) -> np.ndarray:
        return self.base.sample(theta, size, rng)

    def crps(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        rows = as_intervals(y)
        if not (rows["lower"] == rows["upper"]).all():
            raise ValueError("crps needs observed responses, got censored ones; use the log score for these")
        return self.base.crps(rows["lower"], theta)
