"""Contributions and importances of the mean of a chain's members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from catboost import CatBoost, Pool

from boostplugins.catboost.reader import CatBoostReader

_TOLERANCE = 1e-6  # of sums of contributions, relative to the largest raw score


def contributions(reader: CatBoostReader, X: Any, ends: np.ndarray) -> np.ndarray:
    """Share the mean of some states among the features (SHAP values).

    Parameters
    ----------
    reader : CatBoostReader
        Reader of the chain.
    X : ndarray or DataFrame of shape (n_samples, n_features)
        Rows.
    ends : ndarray of shape (n_members,)
        Numbers of iterations.

    Returns
    -------
    ndarray of shape (n_samples, n_features + 1, n_outputs)
        Contributions; the last is the base value.
    """
    return shares_of(reader.average(ends), reader.pool(X))


def shares_of(parts: Sequence[CatBoost], pool: Pool, **options: Any) -> np.ndarray:
    """Share the raw predictions of several models among the features (SHAP values).

    Parameters
    ----------
    parts : sequence of K CatBoost
        Models of the raw scores.
    pool : Pool
        Rows.
    **options : dict
        Further arguments of CatBoost's own function, such as ``thread_count``.

    Returns
    -------
    ndarray of shape (n_samples, n_features + 1, K)
        Contributions; the last is the base value.

    Raises
    ------
    ValueError
        Where CatBoost's values do not sum to its prediction, as for many depth-wise trees.
    """
    shares = np.empty((pool.num_row(), pool.num_col() + 1, len(parts)))
    for k, part in enumerate(parts):
        shares[:, :, k] = part.get_feature_importance(pool, type="ShapValues", **options)
        raw = part.predict(pool, prediction_type="RawFormulaVal")
        if np.abs(shares[:, :, k].sum(axis=1) - raw).max(initial=0.0) > _TOLERANCE * max(
            1.0, np.abs(raw).max()
        ):
            raise ValueError(
                "contributions must sum to the prediction, but CatBoost's do not for trees that are not "
                'symmetric; use booster="lightgbm", or min_samples_leaf=None, with which trees are symmetric'
            )
    return shares


def importances(reader: CatBoostReader, ends: np.ndarray) -> np.ndarray:
    """Importance of each feature for each raw score.

    Parameters
    ----------
    reader : CatBoostReader
        Reader of the chain.
    ends : ndarray of shape (n_members,)
        Numbers of iterations.

    Returns
    -------
    ndarray of shape (n_outputs, n_features)
        CatBoost's prediction value changes.
    """
    parts: list[CatBoost] = reader.average(ends)
    return np.stack([part.get_feature_importance(type="PredictionValuesChange") for part in parts])
