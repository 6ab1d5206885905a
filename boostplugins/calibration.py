"""Recalibration of predictive distributions on held-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import ndtr, ndtri

from boostplugins._mixture import LEVELS
from boostplugins._validation import check_integer, check_option, check_weight
from boostplugins._warnings import warn
from boostplugins.families._crps import (
    moment_over_integers,
    panel_edges,
    panel_integral,
    sum_over_integers,
)
from boostplugins.metrics.pit import pit
from boostplugins.predictive import Predictive
from boostplugins.uncertainty import Uncertainty

# Factors beyond this range mean that something other than a scale is wrong.
_WIDEST = np.log(30.0)
# Probabilities kept away from 0 and 1, where normal quantiles are infinite.
_EDGE = 1e-15
# Levels at which conformal quantiles are exact; between them the map is linear.
_LEVELS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.99, 0.995)
# Probabilities beyond which the tails of continuous distributions and of whole numbers are cut.
_FAR, _SMALL = 1e-12, 1e-9
_FEW = 40  # held-out rows below which a warning is due


class Recalibrator:
    """Correct predictive distributions by their errors on held-out rows.

    Parameters
    ----------
    method : {"scale", "conformal"}, default="scale"
        "scale" finds the one factor of the spread with the best log score: location-scale families
        are widened about their location, others on the normal scale of their probabilities.
        "conformal" maps predicted probabilities to the shares seen: central intervals at the usual
        levels have at least their coverage for exchangeable rows, whatever the family.

    Attributes
    ----------
    factor_ : float
        Factor of the spread; 1 where predictions were calibrated ("scale" only).
    map_ : ndarray of shape (2, n_knots)
        Predicted probabilities and the shares seen below them ("conformal" only).

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins import Predictive
    >>> from boostplugins.calibration import Recalibrator
    >>> y = np.random.default_rng(0).normal(size=2000)
    >>> narrow = Predictive("normal", np.tile([0.0, 0.5], (2000, 1)))
    >>> fitted = Recalibrator("scale").fit(y, narrow)
    >>> round(fitted.factor_, 1), fitted.apply(narrow).std()[0].round(1)
    (2.0, np.float64(1.0))
    """

    def __init__(self, method: str = "scale") -> None:
        self.method = method

    def fit(self, y: ArrayLike, dist: Predictive, sample_weight: ArrayLike | None = None) -> Recalibrator:
        """Learn the correction.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Responses of rows that the model was not trained on.
        dist : Predictive
            Their predictions, of any family but those of classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.

        Returns
        -------
        Recalibrator
            This object.
        """
        check_option("method", self.method, ("scale", "conformal"))
        if dist.family.classification:
            raise ValueError(f"dist must have responses in an order, not the classes of {dist.family!r}")
        y = dist.family.responses(y)
        if dist.family.pairs and not (self.method == "scale" and dist.family.locations):
            raise ValueError(
                f"method must be 'scale', and the base a family with a location, for {dist.family!r}, whose "
                f"responses may be censored; got {self.method!r}"
            )
        if len(y) != len(dist):
            raise ValueError(f"y and dist must have as many rows, got {len(y)} and {len(dist)}")
        weight = check_weight(sample_weight, len(y))
        if len(y) < _FEW:
            warn(
                f"recalibration on {len(y)} rows is rough: intervals may be too wide or too narrow",
            )
        if self.method == "scale":
            self.factor_ = _best_factor(y, dist, weight)
        else:
            self.map_ = _conformal_map(pit(y, dist, random_state=0), weight)
        return self

    def apply(self, dist: Predictive) -> Predictive:
        """Correct predictions.

        Parameters
        ----------
        dist : Predictive
            Predictions of the same model.

        Returns
        -------
        Predictive
            Corrected ones.
        """
        self._check_fitted()
        return widen(dist, self.factor_) if self.method == "scale" else Recalibrated(dist, self.map_)

    def _check_fitted(self) -> None:
        if not hasattr(self, "factor_" if self.method == "scale" else "map_"):
            raise ValueError("this Recalibrator is not fitted yet; call fit(y, dist) first")

    def to_dict(self) -> dict[str, Any]:
        """Describe the fitted correction.

        Returns
        -------
        dict
            JSON-ready; `from_dict` reads it.
        """
        self._check_fitted()
        learnt = {"factor": self.factor_} if self.method == "scale" else {"map": self.map_.tolist()}
        return {"method": self.method, **learnt}

    @classmethod
    def from_dict(cls, held: dict[str, Any]) -> Recalibrator:
        """Rebuild a fitted correction.

        Parameters
        ----------
        held : dict
            What `to_dict` gave.

        Returns
        -------
        Recalibrator
            An equal one.
        """
        made = cls(str(held["method"]))
        if "factor" in held:
            made.factor_ = float(held["factor"])
        if "map" in held:
            made.map_ = np.array(held["map"], dtype=np.float64)
        return made


def widen(dist: Predictive, factor: float) -> Predictive:
    """Multiply the spread of predictions.

    Parameters
    ----------
    dist : Predictive
        Predictions.
    factor : float
        Factor, > 0.

    Returns
    -------
    Predictive
        Of the same kind for location-scale families, `Recalibrated` otherwise.
    """
    family = dist.family
    if family.locations:
        theta = dist.theta.copy()
        for k in family.scales:
            theta[..., k] *= factor
        return dist._with_theta(theta)
    return Recalibrated(dist, np.array([factor]))


def _best_factor(y: np.ndarray, dist: Predictive, weight: np.ndarray | None) -> float:
    def loss(log_factor: float) -> float:
        score = widen(dist, float(np.exp(log_factor))).log_pdf(y)
        return -float(np.average(np.maximum(score, -1e100), weights=weight))

    found = minimize_scalar(loss, bounds=(-_WIDEST, _WIDEST), method="bounded", options={"xatol": 1e-4})
    return float(np.exp(found.x))


def _conformal_map(u: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Pair each level with the predicted probability below which that share, and one row, lies."""
    order = np.argsort(u, kind="stable")
    mass = np.ones(len(u)) if weight is None else weight
    # The row to be predicted counts as one more, anywhere; its weight is taken to be the mean.
    share = np.cumsum(mass[order]) / (mass.sum() + mass.mean())
    knots = [(0.0, 0.0)]
    for level in _LEVELS:
        if level < 0.5:  # greatest order statistic with at most this share at or below it
            at = int(np.searchsorted(share, level * (1 + 1e-12), side="right")) - 1
        else:
            at = int(np.searchsorted(share, level * (1 - 1e-12), side="left"))
        if 0 <= at < len(u):
            value = float(np.clip(u[order[at]], 1e-12, 1.0 - 1e-12))
            if value > knots[-1][0] + 1e-12:
                knots.append((value, level))
    return np.array([*knots, (1.0, 1.0)]).T


class Recalibrated(Predictive):
    """Predictions whose probabilities are mapped: F'(y) = R(F(y)).

    Parameters
    ----------
    base : Predictive
        Predictions to correct.
    rule : ndarray of shape (1,) or (2, n_knots)
        A factor of the normal scale, R(u) = Phi(Phi^-1(u) / factor), or knots of a piecewise linear
        map.
    """

    def __init__(self, base: Predictive, rule: np.ndarray) -> None:
        self.base = base
        self.rule = np.asarray(rule, dtype=np.float64)
        self.family, self.theta, self.weights = base.family, base.theta, base.weights

    def _with_theta(self, theta: np.ndarray) -> Recalibrated:
        return Recalibrated(self.base._with_theta(theta), self.rule)

    def __repr__(self) -> str:
        return f"Recalibrated({self.base!r})"

    def _forward(self, u: np.ndarray) -> np.ndarray:
        if self.rule.ndim == 1:
            return ndtr(ndtri(np.clip(u, 0.0, 1.0)) / self.rule[0])
        return np.interp(u, self.rule[0], self.rule[1])

    def _backward(self, q: np.ndarray) -> np.ndarray:
        if self.rule.ndim == 1:
            # Far levels may round to 0 or 1, whose quantiles are infinite; only those levels' may be.
            u = ndtr(ndtri(q) * self.rule[0])
            return np.where((q > 0) & (q < 1), np.clip(u, 1e-300, 1.0 - 1e-16), u)
        return np.interp(q, self.rule[1], self.rule[0])

    def _log_slope(self, u: np.ndarray) -> np.ndarray:
        if self.rule.ndim == 1:
            z = ndtri(np.clip(u, _EDGE, 1.0 - _EDGE))
            return 0.5 * (z**2 - (z / self.rule[0]) ** 2) - np.log(self.rule[0])
        slope = np.diff(self.rule[1]) / np.diff(self.rule[0])
        place = np.clip(np.searchsorted(self.rule[0], u, side="right") - 1, 0, len(slope) - 1)
        return np.log(slope[place])

    def cdf(self, y: ArrayLike) -> np.ndarray:
        return self._forward(self.base.cdf(y))

    def sf(self, y: ArrayLike) -> np.ndarray:
        above = self.base.sf(y)
        if self.rule.ndim == 1:
            return ndtr(ndtri(np.clip(above, 0.0, 1.0)) / self.rule[0])
        return np.interp(above, *(1.0 - self.rule[:, ::-1]))

    def ppf(self, q: ArrayLike) -> np.ndarray:
        level = self._level(q)
        return self.base.ppf(self._backward(level))

    def log_pdf(self, y: ArrayLike) -> np.ndarray:
        y = np.asarray(y, dtype=np.float64)
        if self.family.discrete:
            return self._log_mass(y, y - 1.0)
        density = self.base.log_pdf(y) + self._log_slope(self.base.cdf(y))
        for atom in self.family.atoms:
            at = np.full(len(self), atom)
            density = np.where(y == atom, self._log_mass(at, np.nextafter(at, -np.inf)), density)
        return density

    def _log_mass(self, y: np.ndarray, below: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            mass = np.log(np.maximum(self.cdf(y) - self.cdf(below), 0.0))
        # Where the difference is lost to rounding, the uncorrected mass is the better answer.
        return np.where(np.isfinite(mass), mass, self.base.log_pdf(y))

    def _edges(self) -> np.ndarray:
        """Edges of panels between which F' is smooth, (n_samples, n_edges): the members' quantiles.

        Quantiles that do not exist are left out: an infinite one counts as its neighbour.
        """
        inner = self.rule[1, 1:-1] if self.rule.ndim == 2 else np.empty(0)
        levels = self._backward(np.unique([_FAR, *LEVELS, 1.0 - 1e-12, *inner]))
        theta = self.theta if self.base.is_mixture else self.theta[:, None, :]
        knots = self.family.ppf(levels[None, :, None], theta[:, None, :, :])
        marks = [knots.min(axis=2), knots.max(axis=2)]
        if len(inner):  # a piecewise linear map breaks at the mixture's own quantiles
            marks.append(np.stack([self.base.ppf(level) for level in self.rule[0, 1:-1]], axis=1))
        marks += [np.full((len(self), 1), atom) for atom in self.family.atoms]
        edges = panel_edges(*marks)
        finite = np.where(np.isfinite(edges), edges, np.nan)
        return np.clip(edges, np.nanmin(finite, axis=1)[:, None], np.nanmax(finite, axis=1)[:, None])

    def _cdf_at(self, x: np.ndarray) -> np.ndarray:
        """F' at points of shape (n_samples, m)."""
        theta = self.theta if self.base.is_mixture else self.theta[:, None, :]
        each = self.family.cdf(x[:, :, None], theta[:, None, :, :])
        return self._forward(np.average(each, axis=2, weights=self.weights))

    def _moment(self, centre: np.ndarray, power: int) -> np.ndarray:
        """Mean of (Y - centre)^power from the distribution function, of terms of one sign a side."""
        if self.family.discrete:
            low, high = self.ppf(_SMALL), self.ppf(1.0 - _SMALL)
            return moment_over_integers(
                lambda k, rows: self._with_theta(self.theta[rows])._cdf_at(k), centre, power, low, high
            )
        c = centre[:, None]
        edges = panel_edges(self._edges(), c)

        def slope(x: np.ndarray) -> np.ndarray:
            return power * (x - c) ** (power - 1) * ((x >= c) - self._cdf_at(x))

        return panel_integral(slope, edges)

    def mean(self) -> np.ndarray:
        centre = self._centre()
        return centre + self._moment(centre, 1)

    def var(self) -> np.ndarray:
        centre = self._centre()
        return self._moment(centre, 2) - self._moment(centre, 1) ** 2

    def _centre(self) -> np.ndarray:
        """A point near the middle, where the uncorrected distribution has no mean its median."""
        mean = self.base.mean()
        if self.family.discrete:
            return np.rint(np.where(np.isfinite(mean), mean, self.base.ppf(0.5)))
        return np.where(np.isfinite(mean), mean, self.base.ppf(0.5)) if not np.isfinite(mean).all() else mean

    def sample(self, size: int = 1, random_state: int | np.random.Generator | None = None) -> np.ndarray:
        size = check_integer("size", size, 0)
        rng = np.random.default_rng(random_state)
        if not size:
            return np.empty((len(self), 0))
        return np.stack([self.ppf(rng.random(len(self))) for _ in range(size)], axis=1)

    def crps(self, y: ArrayLike) -> np.ndarray:
        self._each(y)
        y = np.broadcast_to(np.asarray(y, dtype=np.float64), (len(self),))
        if self.family.discrete:
            low, high = self.ppf(_SMALL), self.ppf(1.0 - _SMALL)
            return sum_over_integers(
                lambda k, rows: self._with_theta(self.theta[rows])._cdf_at(k), y, low, high
            )
        edges = panel_edges(self._edges(), y[:, None])
        return panel_integral(lambda x: (self._cdf_at(x) - (x >= y[:, None])) ** 2, edges)

    def uncertainty(self) -> Uncertainty:
        """Split the corrected variance in the proportions of the uncorrected one.

        Returns
        -------
        Uncertainty
            Variances in squared units of the target.
        """
        plain, total = self.base.uncertainty(), self.var()
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.nan_to_num(plain.knowledge / plain.total)
        return Uncertainty(share * total, (1.0 - share) * total, total)
