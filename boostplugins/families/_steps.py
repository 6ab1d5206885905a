"""What a booster is given for one round: gradients and curvatures made of score and Fisher information."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from boostplugins._jit import njit
from boostplugins._validation import check_option, check_real
from boostplugins.families.base import Family
from boostplugins.links import Identity

# Largest standardised score |s| / sqrt(fisher) of one row: a Normal reaches it at 5.4 standard
# deviations in log sigma, so that one outlier cannot throw a whole leaf.
MAX_SCORE = 20.0
# Largest step |s| / fisher of one row on a log or logit scale, where it is used as a target itself.
# Both limits are of scores where the information of a row is below 1: the few events of a rare count
# are all that tells its rate, and cutting their scores would bias it without end.
MAX_STEP = 10.0
# Least scale of location-scale families, relative to that of the best constant: where responses
# repeat or have no noise, the likelihood has no maximum.
SCALE_FLOOR = 1e-4

# A row's curvature of zero would make 0 / 0 of a leaf; float32 knows nothing smaller that is normal, and
# nothing larger than the other, of which sums are not infinite.
_LEAST, _MOST = np.float32(1e-30), np.float32(1e30)
# Weights beyond are brought down to it together: single precision would make infinities of them, and beside
# them the ridge has no say anyway.
_HEAVIEST = 1e20

_NAMED = {"fisher": 1.0, "natural": 0.0}


def step_exponent(step: str | float) -> float:
    """Read a step rule as its exponent.

    Parameters
    ----------
    step : {"fisher", "natural"} or float in [0, 1]
        Rows count by the Fisher information to this power: 1 is "fisher", 0 "natural".

    Returns
    -------
    float
        Exponent.
    """
    if isinstance(step, str):
        if step not in _NAMED:
            raise ValueError(f"step must be 'fisher', 'natural' or a number in [0, 1], got {step!r}")
        return _NAMED[step]
    return check_real("step", step, 0.0, 1.0, remedy="1 is 'fisher', 0 is 'natural'")


def limits(family: Family, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Range of raw scores that a fit keeps to.

    Parameters
    ----------
    family : Family
        Distribution.
    start : ndarray of shape (K,)
        Raw scores of the best constant.

    Returns
    -------
    tuple of ndarray of shape (K,)
        Least and greatest raw scores: the links' limits, and a floor on scales.
    """
    low = np.array([link.low for link in family.links])
    high = np.array([link.high for link in family.links])
    if family.locations:
        for k in family.scales:
            low[k] = max(low[k], start[k] + np.log(SCALE_FLOOR))
    return low, high


class Steps:
    """Gradients and curvatures of one training set, computed round by round.

    Parameters
    ----------
    family : Family
        Distribution.
    y : ndarray of shape (n_samples,)
        Responses.
    weight : ndarray of shape (n_samples,) or None
        Weights.
    offset : ndarray of shape (n_samples,) or None
        Known part of the first raw score.
    exponent : float
        See `step_exponent`.
    """

    def __init__(
        self,
        family: Family,
        y: np.ndarray,
        weight: np.ndarray | None,
        offset: np.ndarray | None,
        exponent: float,
    ) -> None:
        self.family = family
        self.y = y if family.pairs else np.ascontiguousarray(y, dtype=np.float64)
        self.weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
        if self.weight.max() > _HEAVIEST:
            self.weight = self.weight / self.weight.max() * _HEAVIEST
        self.offset = offset
        self.start = family.init(self.y, weight, offset)
        self.low, self.high = limits(family, self.start)
        self.exponent = exponent
        self._last: np.ndarray | None = None
        # Fisher information of a location has the response's units, that of the start takes them off.
        self.unit = np.ones(len(self.start))
        at_start = family.score_and_fisher(self.y[:1], self.start[None, :])[1][0]
        for k in family.locations:
            self.unit[k] = at_start[k] ** -exponent
        # What censored rows lack: all rows alike, so that rows that were lucky do not count for less.
        self.share = family.seen(self.y, self.start)
        self.unit_free = np.array([not isinstance(link, Identity) for link in family.links])

    def terms(self, raw: np.ndarray, sign: float, out: tuple[np.ndarray, np.ndarray]) -> None:
        """Fill gradients and curvatures.

        Parameters
        ----------
        raw : ndarray of shape (n_samples, K)
            Raw scores.
        sign : float
            -1 for boosters that descend a loss, 1 for those that climb.
        out : tuple of two ndarray of shape (n_samples, K)
            Where the (signed) gradients and the curvatures go.
        """
        self.block(raw, slice(None), sign, out)

    def descend(
        self, preds: np.ndarray, offset: np.ndarray | float, rate: float, out: tuple[np.ndarray, np.ndarray]
    ) -> list[tuple[int, float]]:
        """Fill gradients for a booster that forgets the step of a tree without a split.

        LightGBM gives such a tree the value 0. A parameter that all rows want to move alike, as the
        scale where the mean fits, would stay where it is for ever; here its constant moves instead,
        by the step that the lone leaf would have made.

        Parameters
        ----------
        preds : ndarray of shape (n_samples, K)
            Sums of the trees, without start value and offset.
        offset : ndarray of shape (n_samples,) or float
            Offset of the first raw score, where `preds` has none.
        rate : float
            Learning rate.
        out : tuple of two ndarray of shape (n_samples, K)
            Where gradients and curvatures go.

        Returns
        -------
        list of tuple of int and float
            Parameters whose last tree did not split, and the steps made instead.
        """
        self._terms_at(preds, offset, out)
        moved: list[tuple[int, float]] = []
        if self._last is not None and self._last.shape == preds.shape:
            for k in range(preds.shape[1]):
                if np.array_equal(preds[:, k], self._last[:, k]):
                    total = float(out[1][:, k].sum(dtype=np.float64))
                    step = -rate * float(out[0][:, k].sum(dtype=np.float64)) / max(total, 1e-300)
                    self.start[k] += step
                    moved.append((k, step))
        if moved:
            self._terms_at(preds, offset, out)
        self._last = np.array(preds, order="F")
        return moved

    def _terms_at(
        self, preds: np.ndarray, offset: np.ndarray | float, out: tuple[np.ndarray, np.ndarray]
    ) -> None:
        raw = preds + self.start
        raw[:, 0] += offset
        self.terms(raw, -1.0, out)
        np.clip(out[0], -_MOST, _MOST, out=out[0])
        np.clip(out[1], _LEAST, _MOST, out=out[1])

    def block(self, raw: np.ndarray, rows: Any, sign: float, out: tuple[np.ndarray, np.ndarray]) -> None:
        """Fill gradients and curvatures of some rows.

        Parameters
        ----------
        raw : ndarray of shape (n_rows, K)
            Raw scores of these rows.
        rows : slice or ndarray of int
            Which they are.
        sign : float
            As for `terms`.
        out : tuple of two ndarray of shape (n_rows, K)
            As for `terms`.
        """
        clipped = np.clip(raw, self.low, self.high)
        score, fisher = self.family.score_and_fisher(self.y[rows], clipped)
        if self.share is not None:
            fisher = fisher * self.share
        settings = (self.exponent, sign, MAX_SCORE, MAX_STEP)
        limits = (self.low, self.high, self.unit_free, self.unit)
        _finish(score, fisher, raw, self.weight[rows], limits, settings, *out)


@njit
def _finish(score, fisher, raw, weight, limits, settings, gradient, curvature):  # type: ignore[no-untyped-def]
    low, high, unit_free, unit = limits
    exponent, sign, max_score, max_step = settings
    for k in range(raw.shape[1]):
        for i in range(raw.shape[0]):
            s, f = score[i, k], fisher[i, k]
            size = max(f, 1.0) if unit_free[k] else f
            if s * s > max_score * max_score * size:
                s = np.copysign(max_score * np.sqrt(size), s)
            if (raw[i, k] <= low[k] and s < 0.0) or (raw[i, k] >= high[k] and s > 0.0):
                s = 0.0
            w = weight[i] * unit[k]
            if exponent == 1.0:
                gradient[i, k] = sign * w * s
                curvature[i, k] = w * f
                continue
            step = s / f
            if unit_free[k]:
                cap = max_step * max(1.0, 1.0 / f)
                step = min(max(step, -cap), cap)
            if exponent > 0.0:  # a power costs more than all the rest
                w *= f**exponent
            gradient[i, k] = sign * w * step
            curvature[i, k] = w


@njit
def cut_steps(score, fisher, unit_free, max_score, max_step):  # type: ignore[no-untyped-def]
    """Turn scores into steps, score over Fisher information, cut as above; in place."""
    for k in range(score.shape[1]):
        for i in range(score.shape[0]):
            s, f = score[i, k], fisher[i, k]
            cap = max_score * np.sqrt(max(f, 1.0) if unit_free[k] else f)
            step = min(max(s, -cap), cap) / f
            if unit_free[k]:
                cap = max_step * max(1.0, 1.0 / f)
                step = min(max(step, -cap), cap)
            score[i, k] = step


Metric = Callable[[Family, np.ndarray, np.ndarray], np.ndarray]


def negative_log_score(family: Family, y: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Negative log density of each row.

    Parameters
    ----------
    family : Family
        Distribution.
    y : ndarray of shape (n_samples,)
        Responses.
    theta : ndarray of shape (n_samples, K)
        Parameters.

    Returns
    -------
    ndarray of shape (n_samples,)
        Nats, lower is better.
    """
    return -family.log_pdf(y, theta)


def crps_score(family: Family, y: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """CRPS of each row.

    Parameters
    ----------
    family : Family
        Distribution.
    y : ndarray of shape (n_samples,)
        Responses.
    theta : ndarray of shape (n_samples, K)
        Parameters.

    Returns
    -------
    ndarray of shape (n_samples,)
        Scores, lower is better.
    """
    return family.crps(y, theta)


def check_metric(metric: str, family: Family | None = None) -> str:
    """Check the name of a score.

    Parameters
    ----------
    metric : {"nll", "crps"}
        Name.
    family : Family, optional
        Distribution that it is to score.

    Returns
    -------
    str
        The name.

    Raises
    ------
    ValueError
        For other names, and for the CRPS of responses that may be censored.
    """
    check_option("metric", metric, tuple(METRICS))
    if family is not None and family.pairs and metric == "crps":
        raise ValueError("metric must be 'nll' for censored responses, got 'crps', which they have not")
    return metric


METRICS: dict[str, Metric] = {"nll": negative_log_score, "crps": crps_score}
