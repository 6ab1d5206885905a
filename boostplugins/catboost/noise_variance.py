"""Noise variance of a squared error: what is left on rows that a quick model has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from catboost import CatBoostRegressor, Pool

from boostplugins._validation import check_target
from boostplugins.catboost.binding import FitSettings
from boostplugins.catboost.callback import interruptible

_MAX_ROWS = 20_000
_MIN_ROWS = 20  # below, there is nothing to hold out: the variance of the target stands in
_LEAST = 1e-12  # of the target's variance: a noiseless target still has a finite posterior


def estimate_noise_variance(fit: FitSettings) -> float:
    """Estimate the noise variance of the fit in progress.

    Parameters
    ----------
    fit : FitSettings
        The fit; its rows are read, never changed.

    Returns
    -------
    float
        Mean squared error of a quick boosted model on held-out rows, > 0.
    """
    if isinstance(fit.X, Pool):
        pool = fit.X
    else:
        named = {
            key: fit.params.get(key)
            for key in ("cat_features", "text_features", "embedding_features")
            if fit.params.get(key) is not None
        }
        pool = Pool(fit.X, np.asarray(fit.y, dtype=np.float64).ravel(), **(named | fit.fit_features))
    return held_out_variance(pool)


def held_out_variance(pool: Any) -> float:
    """Estimate the noise variance of a pool's target.

    Parameters
    ----------
    pool : Pool
        Rows with labels.

    Returns
    -------
    float
        Mean squared error on held-out rows (at most the target's variance), in squared units of
        the target, > 0.
    """
    n = pool.num_row()
    y = check_target(pool.get_label())
    weight = np.asarray(pool.get_weight(), dtype=np.float64)
    mean = np.average(y, weights=weight)
    spread = float(np.average((y - mean) ** 2, weights=weight))
    least = max(_LEAST * spread, float(np.finfo(np.float32).tiny))
    if n < _MIN_ROWS or spread <= least:
        return max(spread, least)
    if pool.get_group_id_hash() is not None:
        raise ValueError(
            "noise_variance must be given for rows in groups, some of which are held out to estimate it "
            "otherwise; pass SquaredError(noise_variance=...)"
        )
    order = np.random.default_rng(0).permutation(n)[:_MAX_ROWS]
    cut = max(len(order) // 4, 5)
    held, used = pool.slice(sorted(order[:cut].tolist())), pool.slice(sorted(order[cut:].tolist()))
    model = CatBoostRegressor(
        iterations=300, learning_rate=0.1, depth=6, verbose=False, random_seed=0, allow_writing_files=False
    )
    try:
        with interruptible():
            model.fit(used, eval_set=held, early_stopping_rounds=20)
    except Exception:  # no usable feature, or a constant part: nothing explains the target
        return spread
    residual = np.asarray(held.get_label(), dtype=np.float64) - model.predict(held)
    variance = float(np.average(residual**2, weights=np.asarray(held.get_weight())))
    return min(max(variance, least), spread)


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
    return held_out_variance(Pool(X, y, weight=weight, cat_features=list(categorical) or None))
