"""Scores of a forecast, one number each; NaN where a model does not say what a score needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from boostplugins.compare.forecast import COVERAGES, Forecast
from boostplugins.metrics import class_ece, pit, prr
from boostplugins.metrics.calibration import percentile_error
from boostplugins.predictive import Predictive

# The CRPS of a mixture costs the square of its members, and a posterior has thousands of them.
MOST_MEMBERS = 300
# Least probability of the label seen, as in scikit-learn's log loss: one hard 0 shall not decide.
LEAST_PROBABILITY = float(np.finfo(np.float64).eps)


class Score(NamedTuple):
    """A score: what it computes and which way is better ("higher", "lower" or "nominal")."""

    of: Callable[[np.ndarray, Forecast], float]
    better: str


def thinned(dist: Predictive, most: int = MOST_MEMBERS) -> Predictive:
    """Keep evenly spaced members of a large, equally weighted mixture.

    Parameters
    ----------
    dist : Predictive
        Distribution.
    most : int, default=300
        Members to keep.

    Returns
    -------
    Predictive
        A mixture of at most so many members, or the same distribution.
    """
    if type(dist) is not Predictive or dist.n_members <= most or dist.weights is not None:
        return dist
    kept = np.linspace(0, dist.n_members - 1, most).round().astype(int)
    return Predictive(dist.family, dist.theta[:, kept])


def _log_score(y: np.ndarray, forecast: Forecast) -> float:
    return np.nan if forecast.dist is None else _mean(forecast.dist.log_pdf(y))


def _crps(y: np.ndarray, forecast: Forecast) -> float:
    if forecast.dist is None:
        return _mean(np.abs(y - forecast.point))  # the CRPS of a point
    return _mean(thinned(forecast.dist).crps(y))


def _rmse(y: np.ndarray, forecast: Forecast) -> float:
    return float(np.sqrt(np.mean((y - forecast.point) ** 2)))


def _ece(y: np.ndarray, forecast: Forecast) -> float:
    """ECE of 99 percentiles by y < q(tau) <=> F(y) < tau; steps of discrete responses are randomised."""
    if forecast.dist is None:
        return np.nan
    return percentile_error(pit(y, forecast.dist, random_state=0))


def _interval(forecast: Forecast, level: float) -> np.ndarray | None:
    if forecast.dist is not None:
        return thinned(forecast.dist).interval(level)
    return forecast.intervals.get(level)


def _coverage_at(level: float) -> Callable[[np.ndarray, Forecast], float]:
    def score(y: np.ndarray, forecast: Forecast) -> float:
        ends = _interval(forecast, level)
        return np.nan if ends is None else _mean((ends[:, 0] <= y) & (y <= ends[:, 1]))

    return score


def _width_at(level: float) -> Callable[[np.ndarray, Forecast], float]:
    def score(y: np.ndarray, forecast: Forecast) -> float:
        ends = _interval(forecast, level)
        return np.nan if ends is None else _mean(ends[:, 1] - ends[:, 0])

    return score


def _prr(y: np.ndarray, forecast: Forecast) -> float:
    if forecast.total is None:
        return np.nan
    error = (y - forecast.point) ** 2
    largest = np.finfo(np.float64).max  # a variance may be infinite and still rank its row
    return prr(error, np.minimum(forecast.total, largest))


def _place(y: np.ndarray, forecast: Forecast) -> tuple[np.ndarray, np.ndarray]:
    """Column of each label, and whether the model knows that label."""
    classes = forecast.classes
    assert classes is not None
    order = np.argsort(classes)
    at = order[np.clip(np.searchsorted(classes, y, sorter=order), 0, len(classes) - 1)]
    return at, classes[at] == y


def _of_label(y: np.ndarray, forecast: Forecast) -> np.ndarray | None:
    if forecast.proba is None:
        return None
    at, known = _place(y, forecast)
    return np.where(known, forecast.proba[np.arange(len(y)), at], 0.0)


def _class_log_score(y: np.ndarray, forecast: Forecast) -> float:
    p = _of_label(y, forecast)
    return np.nan if p is None else _mean(np.log(np.maximum(p, LEAST_PROBABILITY)))


def _brier(y: np.ndarray, forecast: Forecast) -> float:
    p = _of_label(y, forecast)
    if p is None or forecast.proba is None:
        return np.nan
    # sum_k (p_k - 1{k = y})^2, also where y is a class that the model does not know
    return _mean((forecast.proba**2).sum(axis=1) - 2.0 * p + 1.0)


def _accuracy(y: np.ndarray, forecast: Forecast) -> float:
    return _mean(y == forecast.point)


def _class_ece(y: np.ndarray, forecast: Forecast) -> float:
    if forecast.proba is None:
        return np.nan
    confidence = np.clip(forecast.proba.max(axis=1), 0.0, 1.0)
    return class_ece((y == forecast.point).astype(np.float64), confidence)


def _class_prr(y: np.ndarray, forecast: Forecast) -> float:
    if forecast.total is None:
        return np.nan
    return prr((y != forecast.point).astype(np.float64), forecast.total)


def _sets(forecast: Forecast, level: float) -> np.ndarray | None:
    """Mark the smallest set of most probable classes that holds the level: (n_samples, n_classes)."""
    if forecast.proba is None:
        return None
    order = np.argsort(-forecast.proba, axis=1, kind="stable")
    sorted_proba = np.take_along_axis(forecast.proba, order, axis=1)
    before = np.cumsum(sorted_proba, axis=1) - sorted_proba
    inside = np.zeros(forecast.proba.shape, dtype=bool)
    np.put_along_axis(inside, order, before < level, axis=1)
    return inside


def _set_coverage_at(level: float) -> Callable[[np.ndarray, Forecast], float]:
    def score(y: np.ndarray, forecast: Forecast) -> float:
        inside = _sets(forecast, level)
        if inside is None:
            return np.nan
        at, known = _place(y, forecast)
        return _mean(inside[np.arange(len(y)), at] & known)

    return score


def _set_size_at(level: float) -> Callable[[np.ndarray, Forecast], float]:
    def score(y: np.ndarray, forecast: Forecast) -> float:
        inside = _sets(forecast, level)
        return np.nan if inside is None else _mean(inside.sum(axis=1))

    return score


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values))


def _at_levels(coverage: Callable[..., Callable], width: Callable[..., Callable]) -> dict[str, Score]:
    scores: dict[str, Score] = {}
    for level in COVERAGES:
        scores[f"coverage_{level * 100:.0f}"] = Score(coverage(level), "nominal")
        scores[f"width_{level * 100:.0f}"] = Score(width(level), "lower")
    return scores


REGRESSION: dict[str, Score] = {
    "log_score": Score(_log_score, "higher"),
    "crps": Score(_crps, "lower"),
    "rmse": Score(_rmse, "lower"),
    **_at_levels(_coverage_at, _width_at),
    "ece": Score(_ece, "lower"),
    "prr": Score(_prr, "higher"),
}
CLASSIFICATION: dict[str, Score] = {
    "log_score": Score(_class_log_score, "higher"),
    "brier": Score(_brier, "lower"),
    "accuracy": Score(_accuracy, "higher"),
    **_at_levels(_set_coverage_at, _set_size_at),
    "ece": Score(_class_ece, "lower"),
    "prr": Score(_class_prr, "higher"),
}
# Those that need the shifted rows, or the clock.
OF_FITS = {"ku_auc": "higher", "tu_auc": "higher", "fit_cpu": "lower", "predict_cpu": "lower"}


def score_names(classification: bool) -> dict[str, str]:
    """List the scores of a task.

    Parameters
    ----------
    classification : bool
        Whether responses are classes.

    Returns
    -------
    dict of str to str
        Name of each and which way is better.
    """
    scores = CLASSIFICATION if classification else REGRESSION
    return {name: score.better for name, score in scores.items()} | OF_FITS
