"""What any fitted model says of some rows, in one form that all scores read."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import entr

from boostplugins.predictive import Predictive

COVERAGES = (0.5, 0.9)


@dataclass(frozen=True)
class Forecast:
    """Predictions of some rows; what a model does not say is None.

    Attributes
    ----------
    point : ndarray of shape (n_samples,)
        Means, or the most probable labels.
    dist : Predictive or None
        Distributions of numeric responses.
    proba : ndarray of shape (n_samples, n_classes) or None
        Class probabilities in the order of `classes`.
    classes : ndarray of shape (n_classes,) or None
        Labels.
    intervals : dict of float to ndarray of shape (n_samples, 2)
        Central intervals by coverage, of a model that gives no distribution.
    knowledge, total : ndarray of shape (n_samples,) or None
        Knowledge and total uncertainty: variances, or nats for classes.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.compare import Forecast
    >>> Forecast(point=np.zeros(2)).dist is None
    True
    """

    point: np.ndarray
    dist: Predictive | None = None
    proba: np.ndarray | None = None
    classes: np.ndarray | None = None
    intervals: dict[float, np.ndarray] = field(default_factory=dict)
    knowledge: np.ndarray | None = None
    total: np.ndarray | None = None


def make_forecast(model: Any, X: Any, classification: bool = False) -> Forecast:
    """Ask a fitted model for all that it can say.

    A regressor may have ``predict_dist`` (this package's interface), ``predict(X,
    return_std=True)`` (taken as a Normal), ``predict_interval(X, coverage)``, or ``predict`` alone; a
    classifier ``predict_proba`` or ``predict`` alone. ``predict_uncertainty`` is used where it exists.

    Parameters
    ----------
    model : estimator
        Fitted model.
    X : array-like of shape (n_samples, n_features)
        Rows.
    classification : bool, default=False
        Whether responses are classes.

    Returns
    -------
    Forecast
        Its predictions.

    Raises
    ------
    ValueError
        For predictions that are not finite or of the wrong shape.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import BayesianRidge
    >>> from boostplugins.compare import make_forecast
    >>> X = np.arange(20.0)[:, None]
    >>> forecast = make_forecast(BayesianRidge().fit(X, X[:, 0] % 3), X)
    >>> forecast.dist.family.name, forecast.knowledge is None
    ('normal', True)
    """
    while hasattr(model, "best_estimator_"):  # a search hides what its winner can say
        model = model.best_estimator_
    forecast = _classes(model, X) if classification else _numbers(model, X)
    for name in ("point", "proba", "knowledge", "total"):
        values = getattr(forecast, name)
        if values is not None and values.dtype.kind == "f" and np.isnan(values).any():
            raise ValueError(
                f"{name} of {type(model).__name__} must not be NaN, got {int(np.isnan(values).sum())}"
            )
    if forecast.point.ndim != 1:
        raise ValueError(f"predictions must have shape (n_samples,), got {forecast.point.shape}")
    return forecast


def takes(function: Any, argument: str) -> bool:
    """Tell whether a function knows an argument by name.

    Parameters
    ----------
    function : callable
        Function.
    argument : str
        Name.

    Returns
    -------
    bool
        True if it is in the signature; False too where there is none to be read.
    """
    try:
        return argument in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _numbers(model: Any, X: Any) -> Forecast:
    if hasattr(model, "predict_dist"):
        dist = model.predict_dist(X)
        parts = dist.uncertainty()
        return Forecast(dist.mean(), dist, knowledge=_known(parts.knowledge), total=parts.total)
    if takes(_last_step(model).predict, "return_std"):
        mean, std = (_vector(part) for part in model.predict(X, return_std=True))
        if not (std > 0).all():
            raise ValueError(f"standard deviations must be > 0, got {std.min():g} as the least")
        return Forecast(mean, Predictive("normal", np.stack([mean, std], axis=1)), total=std**2)
    point = _vector(model.predict(X))
    intervals = {}
    if hasattr(model, "predict_interval"):
        intervals = {level: np.asarray(model.predict_interval(X, level), float) for level in COVERAGES}
    return Forecast(point, intervals=intervals, **_uncertainty(model, X))


def _classes(model: Any, X: Any) -> Forecast:
    if not hasattr(model, "predict_proba"):
        return Forecast(np.asarray(model.predict(X)).reshape(-1), **_uncertainty(model, X))
    proba = np.asarray(model.predict_proba(X), dtype=np.float64)
    classes = np.asarray(model.classes_)
    if proba.ndim != 2 or proba.shape[1] != len(classes):
        raise ValueError(f"predict_proba must have shape (n_samples, {len(classes)}), got {proba.shape}")
    said = {"total": entr(proba).sum(axis=1)} | _uncertainty(model, X)
    return Forecast(classes[proba.argmax(axis=1)], proba=proba, classes=classes, **said)


def _uncertainty(model: Any, X: Any) -> dict[str, Any]:
    if not hasattr(model, "predict_uncertainty"):
        return {}
    parts = model.predict_uncertainty(X)
    return {"knowledge": _known(parts.knowledge), "total": np.asarray(parts.total)}


def _known(knowledge: Any) -> np.ndarray | None:
    """Knowledge that is 0 everywhere is that of a single model, which has none to report."""
    knowledge = np.asarray(knowledge, dtype=np.float64)
    return knowledge if (knowledge > 0).any() else None


def _last_step(model: Any) -> Any:
    """The estimator behind pipelines, which pass arguments of `predict` on to it."""
    steps = getattr(model, "steps", None)
    return _last_step(steps[-1][1]) if steps else model


def _vector(values: Any) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
