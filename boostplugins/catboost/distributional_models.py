"""Models of the parameters, read out of an interleaved CatBoost model."""

from __future__ import annotations

import json
from typing import Any

import catboost
import numpy as np

from boostplugins.catboost.turns import part_models
from boostplugins.families import Family, family_from_dict

METADATA_KEY = "boostplugins_distributional"


def split_model(model: catboost.CatBoost) -> tuple[Family, list[catboost.CatBoost]]:
    """Read family and parameter models out of an interleaved model.

    Parameters
    ----------
    model : catboost.CatBoost
        Model finished by `Distributional`.

    Returns
    -------
    family : Family
        Its family.
    parts : list of K catboost.CatBoost
        One model for each parameter, start value included.

    Raises
    ------
    ValueError
        For a model that was not trained by `Distributional.fit` nor finished.
    """
    held = _description(model)
    parts = part_models(model, np.ones(model.tree_count_), np.array(held["start"]))
    return family_from_dict(held["family"]), parts


def least_scores(model: catboost.CatBoost) -> np.ndarray:
    """Read the least raw scores that training kept to.

    Parameters
    ----------
    model : catboost.CatBoost
        Model finished by `Distributional`.

    Returns
    -------
    ndarray of shape (K,)
        Limits of the links, and a floor on scales.
    """
    return np.array(_description(model)["low"])


def _description(model: catboost.CatBoost) -> dict[str, Any]:
    held = dict(model.get_metadata()).get(METADATA_KEY)
    if held is None:
        raise ValueError("model must come from Distributional.fit, or be finished with loss.finish(model)")
    described: dict[str, Any] = json.loads(held)
    return described


def raw_scores(parts: list[catboost.CatBoost], X: Any, **options: Any) -> np.ndarray:
    """Predict the raw scores of all parameters.

    Parameters
    ----------
    parts : list of K catboost.CatBoost
        Models of `split_model`.
    X : array-like or Pool
        Rows.
    **options : object
        Passed to CatBoost's ``predict``, such as ``thread_count``.

    Returns
    -------
    ndarray of shape (n_samples, K)
        Raw scores.
    """
    return np.stack([part.predict(X, prediction_type="RawFormulaVal", **options) for part in parts], axis=1)
