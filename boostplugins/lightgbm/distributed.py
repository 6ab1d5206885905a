"""What a chain takes from all rows, gathered before the machines train on their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from boostplugins._validation import check_target, check_weight
from boostplugins.losses import SquaredError

if TYPE_CHECKING:
    from boostplugins.lightgbm.chain import CyclicalSGLB


def settle(chain: CyclicalSGLB, y: Any, sample_weight: Any = None) -> CyclicalSGLB:
    """Fix a chain's start value and loss.

    Parameters
    ----------
    chain : CyclicalSGLB
        The chain.
    y : dask collection or array-like of shape (n_samples,)
        Responses of all rows.
    sample_weight : dask collection or array-like of shape (n_samples,), optional
        Weights.

    Returns
    -------
    CyclicalSGLB
        A chain that needs no rows but its own machine's.

    Raises
    ------
    ValueError
        For a squared error without a noise variance.
    """
    if isinstance(chain.loss, SquaredError) and chain.loss.noise_variance is None:
        raise ValueError(
            "noise_variance must be given on several machines, which could not agree on an estimate; use "
            "SquaredError(noise_variance=...)"
        )
    labels = check_target(_gather(y))
    weight = check_weight(None if sample_weight is None else _gather(sample_weight), len(labels))
    chain.loss.check_labels(labels)
    settled = object.__new__(type(chain))
    vars(settled).update(vars(chain))
    settled.loss = chain.loss.ready(labels, weight)
    settled.start = tuple(float(value) for value in settled.loss.start(labels, weight))
    return settled


def fit(
    chain: CyclicalSGLB,
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    callbacks: Sequence[Any],
    options: Any,
) -> Any:
    """Fit a Dask model on a chain: settled on all rows, without empty parts.

    Parameters
    ----------
    chain : CyclicalSGLB
        The chain.
    model : DaskLGBMRegressor or DaskLGBMClassifier
        Unfitted model.
    X, y, sample_weight : dask collections
        Rows, in the same parts; the weights may be None.
    callbacks : sequence
        Further LightGBM callbacks.
    options : dict
        Further arguments of ``model.fit``.

    Returns
    -------
    DaskLGBMRegressor or DaskLGBMClassifier
        The fitted model.
    """
    settled = chain.distributed(y, sample_weight)
    groups = _groups(y, by_class=hasattr(model, "predict_proba"))
    X, y = _regroup(X, groups), _regroup(y, groups)
    sample_weight = None if sample_weight is None else _regroup(sample_weight, groups)
    model.set_params(objective=settled)
    return model.fit(X, y, sample_weight=sample_weight, callbacks=[settled.callback(), *callbacks], **options)


def _groups(y: Any, by_class: bool) -> list[list[tuple[int, int]]]:
    """Join parts, given as (number, rows), so that none is empty and, if asked, each holds every class.

    LightGBM fails on a machine that has only empty parts, and its classifier numbers the classes of
    each machine by itself.
    """
    import dask

    found = dask.compute(*[dask.delayed(_look)(part, by_class) for part in _parts(y)])
    wanted = set().union(*[classes for _, classes in found])
    groups: list[list[tuple[int, int]]] = []
    group: list[tuple[int, int]] = []
    held: set[Any] = set()
    for number, (size, classes) in enumerate(found):
        if size:
            group.append((number, size))
            held |= classes
        if group and held >= wanted:
            groups.append(group)
            group, held = [], set()
    if group:
        groups[-1].extend(group)
    return groups


def _look(part: Any, by_class: bool) -> tuple[int, set[Any]]:
    return len(part), set(np.unique(np.asarray(part)).tolist()) if by_class else set()


def _parts(collection: Any) -> list[Any]:
    return list(np.asarray(collection.to_delayed(), dtype=object).ravel())


def _regroup(collection: Any, groups: list[list[tuple[int, int]]]) -> Any:
    parts = _parts(collection)
    if len(groups) == len(parts):
        return collection
    if hasattr(collection, "rechunk"):
        if np.isnan(collection.chunks[0]).any():
            collection = collection.compute_chunk_sizes()
        sizes = tuple(sum(size for _, size in group) for group in groups)
        return collection.rechunk({0: sizes})
    import dask
    import dask.dataframe as frames
    import pandas as pd

    joined = [dask.delayed(pd.concat)([parts[number] for number, _ in group]) for group in groups]
    return frames.from_delayed(joined, meta=collection._meta)


def _gather(column: Any) -> np.ndarray:
    if hasattr(column, "compute"):
        column = column.compute()
    return np.asarray(column)
