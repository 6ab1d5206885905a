"""Noise variance of a squared error: what is left on rows that a quick model has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lightgbm as lgb
import numpy as np

_MAX_ROWS = 20_000
_MIN_ROWS = 20  # below, there is nothing to hold out: the variance of the target stands in
_LEAST = 1e-12  # of the target's variance: a noiseless target still has a finite posterior


def held_out_variance(data: lgb.Dataset) -> float:
    """Estimate the noise variance of a data set's labels.

    Parameters
    ----------
    data : Dataset
        Constructed training set; it is read, never changed, and needs no raw rows.

    Returns
    -------
    float
        Mean squared error of a quick boosted model on held-out rows (at most the labels' variance),
        in squared units of the label, > 0.
    """
    n = data.num_data()
    y = np.asarray(data.get_label(), dtype=np.float64)
    weight: Any = data.get_weight()
    mean = np.average(y, weights=weight)
    spread = float(np.average((y - mean) ** 2, weights=weight))
    least = max(_LEAST * spread, float(np.finfo(np.float32).tiny))
    if n < _MIN_ROWS or spread <= least:
        return max(spread, least)
    order = np.random.default_rng(0).permutation(n)[:_MAX_ROWS]
    cut = max(len(order) // 4, 5)
    held, used = data.subset(sorted(order[:cut].tolist())), data.subset(sorted(order[cut:].tolist()))
    if weight is not None and not (weight[order[:cut]].any() and weight[order[cut:]].any()):
        return max(spread, least)
    params = {
        "objective": "regression",
        "metric": "None",  # LightGBM's own sums a part a thread: its last bits tell their number
        "learning_rate": 0.1,
        "num_leaves": 31,
        "max_depth": 6,
        "min_data_in_leaf": max(1, min(20, len(order) // 10)),
        "seed": 0,
        # Sums in one order: LightGBM would choose it by a race of its own.
        "deterministic": True,
        "force_col_wise": True,
        "verbosity": -1,
    }
    threads = (data.get_params() or {}).get("num_threads")
    if threads:
        params["num_threads"] = threads
    stop = lgb.early_stopping(20, verbose=False)
    booster = lgb.train(params, used, 300, valid_sets=[held], feval=_mean_square, callbacks=[stop])
    variance = float(booster.best_score["valid_0"]["l2"])
    return min(max(variance, least), max(spread, least))


def _mean_square(predicted: np.ndarray, held: lgb.Dataset) -> tuple[str, float, bool]:
    label: Any = held.get_label()
    return "l2", float(np.average((predicted - label) ** 2, weights=held.get_weight())), False


def of_rows(X: Any, y: np.ndarray, weight: np.ndarray | None, categorical: Sequence[int]) -> float:
    """Estimate the noise variance of an estimator's rows.

    Parameters
    ----------
    X : ndarray or DataFrame of shape (n_samples, n_features)
        Features; categorical columns hold strings.
    y : ndarray of shape (n_samples,)
        Responses.
    weight : ndarray of shape (n_samples,) or None
        Weights.
    categorical : sequence of int
        Numbers of the categorical columns.

    Returns
    -------
    float
        Estimate, > 0.
    """
    frame = X
    if len(categorical):
        frame = X.astype({X.columns[number]: "category" for number in categorical})
    data = lgb.Dataset(
        frame, y, weight=weight, free_raw_data=False, params={"verbosity": -1, "feature_pre_filter": False}
    )
    return held_out_variance(data.construct())
