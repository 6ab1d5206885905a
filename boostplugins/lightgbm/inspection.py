"""What a chain looks up in LightGBM's data sets and boosters."""

from __future__ import annotations

from typing import Any

import numpy as np
from lightgbm import Booster, Dataset

from boostplugins.losses import Loss


def leaf_counts(booster: Booster, iteration: int) -> list[int]:
    """Count the leaves of an iteration's trees.

    Parameters
    ----------
    booster : Booster
        A booster.
    iteration : int
        Number of the iteration within it.

    Returns
    -------
    list of int
        Leaves, one number an output.
    """
    text = booster.model_to_string(num_iteration=1, start_iteration=iteration)
    lines = text[: text.index("end of trees")].splitlines()
    return [int(line.split("=")[1]) for line in lines if line.startswith("num_leaves=")]


def has_start(data: Dataset) -> bool:
    """Tell whether rows begin with scores of their own.

    Parameters
    ----------
    data : Dataset
        Constructed data set.

    Returns
    -------
    bool
        True where any initial score is not 0.
    """
    score = data.get_init_score()
    return score is not None and bool(np.any(score))


def has_categories(data: Dataset) -> bool:
    """Tell whether any feature is categorical.

    Parameters
    ----------
    data : Dataset
        Constructed data set.

    Returns
    -------
    bool
        True for named columns, or pandas categories.
    """
    if data.pandas_categorical:
        return True
    named = data.categorical_feature
    return named not in (None, "auto", "") and len(named) > 0


def category_columns(data: Dataset) -> set[int]:
    """Find the categorical columns of a data set that keeps its rows.

    Parameters
    ----------
    data : Dataset
        Constructed data set.

    Returns
    -------
    set of int
        Numbers of the columns that are named as categorical, or are pandas categories.
    """
    kinds = getattr(data.get_data(), "dtypes", ())
    found = {i for i, kind in enumerate(kinds) if str(kind) == "category"}
    named = data.categorical_feature
    names = data.get_feature_name()
    for column in () if named in (None, "auto", "") else named:
        # LightGBM's own names have no blanks.
        found.add(names.index(column.replace(" ", "_")) if isinstance(column, str) else int(column))
    return found


def features_of(data: Dataset) -> Any:
    """Give the rows of a data set, for a random function.

    Parameters
    ----------
    data : Dataset
        Data set that keeps its rows.

    Returns
    -------
    array-like or DataFrame of shape (n_samples, n_features)
        Features as they were given.

    Raises
    ------
    ValueError
        Where LightGBM has freed them.
    """
    try:
        rows = data.get_data()
    except Exception:  # LightGBM's own error: the rows were freed
        rows = None
    if rows is None:
        raise ValueError(
            "a chain with a prior function needs the rows of its data sets: make them with "
            "lgb.Dataset(..., free_raw_data=False), or use SGLBRegressor(booster='lightgbm')"
        )
    return rows


def newton_factor(loss: Loss) -> float:
    """Give LightGBM's factor of the diagonal curvatures of K coupled class scores.

    Parameters
    ----------
    loss : Loss
        Loss.

    Returns
    -------
    float
        K / (K - 1) for K > 1 classes, else 1.
    """
    k = loss.n_outputs
    return k / (k - 1.0) if loss.classification and k > 1 else 1.0
