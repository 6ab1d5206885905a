"""`compare`: many models, one cross-validation, one table."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, StratifiedKFold

from boostplugins import __version__
from boostplugins._validation import check_integer, check_option, check_target
from boostplugins.compare.catalogue import DEFAULT, make_model
from boostplugins.compare.fitting import Data, describe_error, run_job, take
from boostplugins.compare.scores import score_names
from boostplugins.compare.store import Store, digest_of
from boostplugins.compare.table import make_table


def compare(
    estimators: Mapping[str, Any] | Sequence[Any] | None,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    shift: Any = None,
    metrics: Sequence[Any] | None = None,
    task: str = "auto",
    groups: Any = None,
    results: str | Path | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
    quick: bool = False,
    verbose: bool = False,
) -> pd.DataFrame:
    """Fit models under one cross-validation and set their scores beside each other.

    Fits run through joblib, so that ``joblib.parallel_config(backend="dask")``, or Ray's backend,
    carries them to a cluster. A model that fails is a row with its error.

    Parameters
    ----------
    estimators : mapping of str to estimator, sequence, or None
        Models: names of `model_names`, or any estimators with ``fit`` and ``predict`` (see
        `make_forecast` for what is asked of them). The first is the reference of the paired
        differences. None for the usual ones of the task.
    X : array-like or DataFrame of shape (n_samples, n_features)
        Features.
    y : array-like of shape (n_samples,)
        Responses.
    cv : int, splitter or iterable of (train, test), default=5
        Folds; an integer shuffles, and stratifies classes.
    shift : array-like, optional
        Shifted rows, which no model is trained or tested on, for ``ku_auc`` and ``tu_auc``: a boolean
        mask of rows of X, or a table with the columns of X.
    metrics : sequence of str or callable, optional
        Scores to show, and functions ``f(y, forecast) -> float`` of your own; all by default.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto": classes if `y` is text or boolean, or an estimator is a classifier.
    groups : array-like of shape (n_samples,), optional
        Groups for `cv`.
    results : str or Path, optional
        Folder in which finished fits are kept as JSON and found again by the next call.
    n_jobs : int, optional
        Fits at a time, as joblib's.
    random_state : int, default=0
        Seed of the folds, and of the models named.
    quick : bool, default=False
        Small settings for the models named.
    verbose : bool, default=False
        Show each finished fit on standard error.

    Returns
    -------
    DataFrame
        A row for each model and score, models in the order given: ``model``, ``metric``, ``better``
        ("higher", "lower", "nominal"), ``mean`` over folds, its standard error ``se``,
        ``difference`` from the first model over the same folds and its ``difference_se``,
        ``n_folds`` finished and ``error`` (None or one line). NaN where a model does not say what a
        score needs. `summary` shows it with a row a model.

    Raises
    ------
    ValueError
        For arguments that do not fit together; what goes wrong in a fit is in the table.

    Notes
    -----
    Regression: ``log_score`` (mean log density), ``crps``, ``rmse``, ``coverage_50``, ``width_50``,
    ``coverage_90``, ``width_90``, ``ece`` (percentiles, steps of counts randomised), ``prr`` (squared
    error against total variance). Classification: ``log_score``, ``brier``, ``accuracy``, coverage and
    mean size of the smallest sets of most probable classes that hold 50 / 90 %, ``ece`` of the
    predicted class, ``prr``. ``ku_auc`` and ``tu_auc`` say how well knowledge and total uncertainty
    tell shifted rows from test rows. ``fit_cpu`` and ``predict_cpu`` are seconds of the process,
    compilation included. CRPS and intervals of large mixtures use 300 members, evenly spaced.

    Standard errors are those of Nadeau and Bengio [1]_, sd * sqrt(1 / K + n_test / n_train): folds
    share training rows.

    References
    ----------
    .. [1] Nadeau, Bengio (2003), Inference for the generalization error. Machine Learning 52.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import BayesianRidge, LinearRegression
    >>> from boostplugins.compare import compare, summary
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)); y = X[:, 0] + rng.normal(size=200)
    >>> table = compare({"bayes": BayesianRidge(), "point": LinearRegression()}, X, y, cv=4)
    >>> summary(table, metrics=["rmse", "coverage_90"]).shape
    (2, 2)
    """
    check_option("task", task, ("auto", "classification", "regression"))
    check_integer("random_state", random_state, 0)
    X, y = _table(X), np.asarray(y).reshape(-1)
    if len(X) != len(y) or not len(y):
        raise ValueError(f"X and y must have as many rows, and some, got {len(X)} and {len(y)}")
    classification = _is_classification(task, estimators, y)
    if not classification:
        y = check_target(y)
    elif pd.isna(y).any():
        raise ValueError(f"y must have a label in every row, got {int(pd.isna(y).sum())} without")
    models = _models(estimators, classification, random_state, quick)
    better, custom = _metrics(metrics, classification)
    kept, shifted = _split_shift(X, y, shift)
    if groups is not None:
        groups = np.asarray(groups)[kept]
    data = Data(take(X, kept), y[kept], shifted, classification, custom)
    splits = _splits(cv, data, groups, random_state)
    records = _run(models, data, splits, Store(results), n_jobs, verbose)
    return make_table(records, list(models), better)


def _table(X: Any) -> Any:
    if hasattr(X, "columns"):
        return X
    X = X if isinstance(X, np.ndarray) or hasattr(X, "tocsr") else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must have shape (n_samples, n_features), got {X.shape}")
    return X


def _is_classification(task: str, estimators: Any, y: np.ndarray) -> bool:
    if task != "auto":
        return task == "classification"
    if y.dtype.kind not in "iuf":
        return True
    given = estimators.values() if isinstance(estimators, Mapping) else estimators or ()
    return any(not isinstance(model, str) and _says_classifier(model) for model in given)


def _says_classifier(model: Any) -> bool:
    return is_classifier(model) if hasattr(model, "__sklearn_tags__") else hasattr(model, "predict_proba")


def _models(estimators: Any, classification: bool, seed: int, quick: bool) -> dict[str, Any]:
    """Models by name; one that cannot be made is its exception."""
    if estimators is None:
        estimators = DEFAULT["classification" if classification else "regression"]
    if isinstance(estimators, (str, bytes)) or not isinstance(estimators, (Mapping, Iterable)):
        raise TypeError(f"estimators must be a mapping or a sequence, got {estimators!r}")
    if not isinstance(estimators, Mapping):
        named: dict[str, Any] = {}
        for model in estimators:
            named[_free_name(_name(model), named)] = model
        estimators = named
    if not estimators:
        raise ValueError("estimators must name at least one model, got none")
    return {
        str(name): make_model(model, classification, seed, quick) if isinstance(model, str) else model
        for name, model in estimators.items()
    }


def _name(model: Any) -> str:
    if isinstance(model, str):
        return model
    steps = getattr(model, "steps", None)
    return _name(steps[-1][1]) if steps else type(model).__name__


def _free_name(name: str, taken: Mapping[str, Any]) -> str:
    number, free = 2, name
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    return free


def _metrics(metrics: Sequence[Any] | None, classification: bool) -> tuple[dict[str, str], tuple[Any, ...]]:
    known = score_names(classification)
    if metrics is None:
        return known, ()
    shown: dict[str, str] = {}
    custom: list[Any] = []
    wanted: Any = [metrics] if isinstance(metrics, str) or callable(metrics) else metrics
    for metric in wanted:
        if callable(metric):
            custom.append(metric)
            shown[metric.__name__] = getattr(metric, "better", "")
        elif metric in known:
            shown[metric] = known[metric]
        else:
            raise ValueError(f"metrics must be functions or of {list(known)}, got {metric!r}")
    return shown, tuple(custom)


def _split_shift(X: Any, y: np.ndarray, shift: Any) -> tuple[np.ndarray, Any]:
    """Rows to divide into folds, and the shifted ones."""
    rows = np.arange(len(y))
    if shift is None:
        return rows, None
    if np.ndim(shift) == 1:
        mask = np.asarray(shift)
        if mask.shape != (len(y),) or mask.dtype != bool:
            raise ValueError(
                f"shift must be a boolean mask of {len(y)} rows or a table, got {mask.dtype} {mask.shape}"
            )
        if mask.all() or not mask.any():
            raise ValueError(f"shift must mark some rows, and not all, got {int(mask.sum())} of {len(y)}")
        return rows[~mask], take(X, rows[mask])
    table = _table(shift)
    if table.shape[1] != X.shape[1]:
        raise ValueError(f"shift must have the {X.shape[1]} columns of X, got {table.shape[1]}")
    return rows, table


def _splits(cv: Any, data: Data, groups: Any, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        check_integer("cv", cv, 2)
        kind = StratifiedKFold if data.classification and groups is None else KFold
        cv = kind(int(cv), shuffle=True, random_state=seed)
    pairs = cv.split(data.X, data.y, groups) if hasattr(cv, "split") else cv
    found = [(_rows(train, len(data.y)), _rows(test, len(data.y))) for train, test in pairs]
    if not found:
        raise ValueError("cv must give at least one pair of training and test rows, got none")
    return found


def _rows(rows: Any, n: int) -> np.ndarray:
    rows = np.asarray(rows)
    rows = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64)
    if not len(rows) or rows.min() < 0 or rows.max() >= n:
        raise ValueError(f"cv must give row numbers below {n} (shifted rows left out), and some of each")
    return rows


def _run(
    models: Mapping[str, Any],
    data: Data,
    splits: Sequence[tuple[np.ndarray, np.ndarray]],
    store: Store,
    n_jobs: int | None,
    verbose: bool,
) -> list[dict[str, Any]]:
    shared = digest_of(__version__, data.X, data.y, data.shifted, data.classification, list(data.custom))
    records: list[dict[str, Any]] = []
    waiting = []
    say = _Progress(len(models) * len(splits), verbose)
    for fold, (train, test) in enumerate(splits):
        for name, model in models.items():
            job = {"model": name, "fold": fold, "digest": digest_of(shared, train, test, name, model)}
            if isinstance(model, Exception):
                sizes = {"n_train": len(train), "n_test": len(test)}
                record: dict[str, Any] | None = job | sizes | {"scores": {}, "error": describe_error(model)}
            else:
                record = store.get(job)
            if record is None:
                waiting.append(delayed(run_job)(job, model, data, train, test))
            else:
                records.append(record)
                say(record, kept=record["error"] is None)
    for record in _in_any_order(waiting, n_jobs):
        store.put(record)
        records.append(record)
        say(record)
    return records


def _in_any_order(jobs: list[Any], n_jobs: int | None) -> Iterator[dict[str, Any]]:
    """Results as they come, where the backend can give them so."""
    if not jobs:
        return
    backend = joblib.parallel.get_active_backend()[0]
    how = "generator_unordered" if backend.supports_return_generator else "list"
    yield from Parallel(n_jobs=n_jobs, return_as=how)(jobs)


class _Progress:
    """A line for each finished fit, on standard error."""

    def __init__(self, total: int, verbose: bool) -> None:
        self.total, self.verbose, self.done = total, verbose, 0

    def __call__(self, record: dict[str, Any], kept: bool = False) -> None:
        self.done += 1
        if not self.verbose:
            return
        how = "kept from before" if kept else f"{record['scores'].get('fit_cpu', 0.0):.1f} s CPU"
        what = record["error"] or how
        sys.stderr.write(f"{self.done} of {self.total}: {record['model']}, fold {record['fold']}: {what}\n")
        sys.stderr.flush()
