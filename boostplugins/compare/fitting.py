"""One fit: a model on the training rows of a fold, its scores on the rest."""

from __future__ import annotations

import copy
import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from boostplugins.compare.forecast import Forecast, make_forecast
from boostplugins.compare.scores import CLASSIFICATION, REGRESSION
from boostplugins.metrics import ood_auc


@dataclass(frozen=True)
class Data:
    """What every fit of a comparison shares.

    Attributes
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows that the folds divide.
    y : ndarray of shape (n_samples,)
        Responses.
    shifted : array-like of shape (n_shifted, n_features) or None
        Rows that no model is trained on.
    classification : bool
        Whether responses are classes.
    custom : tuple of callable
        The user's own scores.
    """

    X: Any
    y: np.ndarray
    shifted: Any
    classification: bool
    custom: tuple[Any, ...] = ()


def take(X: Any, rows: np.ndarray) -> Any:
    """Take rows of a table.

    Parameters
    ----------
    X : array or DataFrame
        Table.
    rows : ndarray of int
        Which.

    Returns
    -------
    array or DataFrame
        Those rows.
    """
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def run_job(
    job: dict[str, Any], estimator: Any, data: Data, train: np.ndarray, test: np.ndarray
) -> dict[str, Any]:
    """Fit and score; an error becomes part of the record.

    Parameters
    ----------
    job : dict
        ``model``, ``fold`` and ``digest``.
    estimator : estimator
        Not fitted; it is not changed.
    data : Data
        Rows.
    train, test : ndarray of int
        Rows of the fold.

    Returns
    -------
    dict
        The job with ``scores``, ``error`` (None or one line), ``n_train`` and ``n_test``.
    """
    record = job | {"n_train": len(train), "n_test": len(test), "scores": {}, "error": None}
    try:
        record["scores"] = _scores(estimator, data, train, test)
    except Exception as error:
        record["error"] = describe_error(error)
    return record


def describe_error(error: BaseException) -> str:
    """Write an error in one line.

    Parameters
    ----------
    error : exception
        Error.

    Returns
    -------
    str
        Its type and the first line of its message (the last, of a message that quotes a traceback).
    """
    lines = str(error).strip().splitlines() or ["no message"]
    return f"{type(error).__name__}: {lines[-1 if 'Traceback' in lines[0] else 0]}"


def _scores(estimator: Any, data: Data, train: np.ndarray, test: np.ndarray) -> dict[str, float]:
    model = clone(estimator) if hasattr(estimator, "get_params") else copy.deepcopy(estimator)
    X_train, X_test = take(data.X, train), take(data.X, test)
    started = time.process_time()
    model.fit(X_train, data.y[train])
    fitted = time.process_time()
    forecast = make_forecast(model, X_test, data.classification)
    predicted = time.process_time()
    if len(forecast.point) != len(test):
        raise ValueError(f"predictions must have {len(test)} rows, got {len(forecast.point)}")
    known = CLASSIFICATION if data.classification else REGRESSION
    y = data.y[test]
    found = {name: score.of(y, forecast) for name, score in known.items()}
    found |= {score.__name__: float(score(y, forecast)) for score in data.custom}
    found |= _shift_scores(model, forecast, data)
    return found | {"fit_cpu": fitted - started, "predict_cpu": predicted - fitted}


def _shift_scores(model: Any, inside: Forecast, data: Data) -> dict[str, float]:
    found = {"ku_auc": math.nan, "tu_auc": math.nan}
    if data.shifted is None or inside.total is None:
        return found
    outside = make_forecast(model, data.shifted, data.classification)
    for name, low, high in (
        ("ku_auc", inside.knowledge, outside.knowledge),
        ("tu_auc", inside.total, outside.total),
    ):
        if low is None and high is None:
            continue
        largest = np.finfo(np.float64).max
        low = np.zeros(len(inside.point)) if low is None else np.minimum(low, largest)
        high = np.zeros(len(outside.point)) if high is None else np.minimum(high, largest)
        found[name] = ood_auc(low, high)
    return found
