"""Contributions and importances of the mean of a chain's members."""

from __future__ import annotations

from typing import Any

import numpy as np
from lightgbm import Booster

from boostplugins.lightgbm.reader import LightGBMReader


def contributions(reader: LightGBMReader, X: Any, ends: np.ndarray) -> np.ndarray:
    """Share the mean of some states among the features (SHAP values).

    Parameters
    ----------
    reader : LightGBMReader
        Reader of the chain.
    X : ndarray or DataFrame of shape (n_samples, n_features)
        Rows.
    ends : ndarray of shape (n_members,)
        Increasing numbers of iterations.

    Returns
    -------
    ndarray of shape (n_samples, n_features + 1, n_outputs)
        Contributions; the last is the base value.
    """
    rows, outputs = reader.rows(X), reader.n_outputs
    scales = np.array([reader.scale(int(end)) for end in ends])
    shares = np.zeros((rows.shape[0], outputs, reader.booster.num_feature() + 1))
    previous = 0
    for member, end in enumerate(np.asarray(ends).tolist()):
        trees = reader.trees_before(end)
        if trees > previous:
            part = reader.booster.predict(
                rows, start_iteration=previous, num_iteration=trees - previous, pred_contrib=True
            )
            # Every later member holds these trees too.
            shares += np.reshape(part, shares.shape) * (scales[member:].sum() / len(scales))
            previous = trees
    shares[:, :, -1] += (1.0 - scales).mean() * reader.kept_start
    return shares.transpose(0, 2, 1)


def importances(reader: LightGBMReader, ends: np.ndarray) -> np.ndarray:
    """Total gain of each feature for each raw score.

    Parameters
    ----------
    reader : LightGBMReader
        Reader of the chain.
    ends : ndarray of shape (n_members,)
        Ignored: gains are those of all trees.

    Returns
    -------
    ndarray of shape (n_outputs, n_features)
        Gains.
    """
    return gains(reader.booster, reader.n_outputs)


def gains(booster: Booster, n_outputs: int) -> np.ndarray:
    """Total gain of each feature for each output.

    Parameters
    ----------
    booster : Booster
        Trained model.
    n_outputs : int
        Trees a round.

    Returns
    -------
    ndarray of shape (n_outputs, n_features)
        Gains.
    """
    total = np.zeros((n_outputs, booster.num_feature()))
    table = booster.trees_to_dataframe()
    splits = table[table["split_gain"].notna()]
    names = {name: i for i, name in enumerate(booster.feature_name())}
    feature = splits["split_feature"].map(names).to_numpy(dtype=np.intp)
    np.add.at(
        total, (splits["tree_index"].to_numpy() % n_outputs, feature), splits["split_gain"].to_numpy(float)
    )
    return total
