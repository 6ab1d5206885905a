"""Train a chain on LightGBM for an estimator: data set, parameters, training."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd

from boostplugins.checkpoints import Checkpoint
from boostplugins.lightgbm import resuming
from boostplugins.lightgbm.chain import CyclicalSGLB
from boostplugins.lightgbm.description import read_description, write_description
from boostplugins.lightgbm.reader import LightGBMReader
from boostplugins.lightgbm.user_callbacks import UserCallbacks
from boostplugins.losses import Loss
from boostplugins.masks import RowMask
from boostplugins.schedules import GradientSchedule

_MOST_LEAVES = 131_072  # LightGBM's own limit
_HEAD = b"boostplugins-lightgbm "
_CHAIN_OPTIONS = ("leaf_noise",)  # of `booster_params`: settings of the chain that only LightGBM has


def train(
    *,
    loss: Loss,
    schedule: GradientSchedule,
    mask: RowMask,
    temperature: float,
    shrink: float,
    shrink_to: str,
    noise: str,
    structure_noise: float,
    prior: Any,
    random_state: int,
    X: Any,
    y: np.ndarray,
    sample_weight: np.ndarray | None,
    categorical: Sequence[int],
    eval_set: tuple[Any, np.ndarray, np.ndarray | None] | None,
    n_estimators: int,
    learning_rate: float,
    depth: int,
    min_samples_leaf: int,
    early_stopping_rounds: int | None,
    n_jobs: int | None,
    verbose: bool | int,
    callbacks: Sequence[Any],
    booster_params: dict[str, Any],
    checkpoint: Checkpoint | None = None,
) -> lgb.Booster:
    """Train one chain.

    Parameters
    ----------
    loss, schedule, mask, temperature, shrink, shrink_to, noise, structure_noise, prior, random_state : object
        Settings of the chain, as for `CyclicalSGLB`.
    X : ndarray or DataFrame of shape (n_samples, n_features)
        Features; categorical columns hold strings.
    y : ndarray of shape (n_samples,)
        Responses; classes as 0 .. K - 1.
    sample_weight : ndarray of shape (n_samples,) or None
        Weights.
    categorical : sequence of int
        Numbers of the categorical columns.
    eval_set : tuple or None
        Features, responses and weights of held-out rows.
    n_estimators : int
        Iterations.
    learning_rate : float
        Step eps.
    depth : int
        Depth of a tree. Trees have up to ``2**depth`` leaves, that is, they grow as by levels; fewer
        ``num_leaves`` in `booster_params` make them grow by leaves.
    min_samples_leaf : int
        Least rows of a leaf.
    early_stopping_rounds : int or None
        Rounds without a better score on `eval_set` before training stops; all its trees are kept.
    n_jobs : int or None
        Threads; None for all. The model does not depend on it.
    verbose : bool or int
        Print the score on `eval_set`, every so many iterations.
    callbacks : sequence
        LightGBM's own callbacks, or objects with ``after_iteration``.
    booster_params : dict
        Further LightGBM parameters, and ``leaf_noise`` of the chain; they win.
    checkpoint : Checkpoint, optional
        File to go on from, and to keep where the training stands.

    Returns
    -------
    Booster
        Trained model.
    """
    options: dict[str, Any] = {
        "structure_noise": structure_noise,
        "leaf_noise": "independent" if noise != "none" else "shared",
    }
    options |= {name: booster_params[name] for name in _CHAIN_OPTIONS if name in booster_params}
    if options["leaf_noise"] == "shared":
        options["structure_noise"] = 1.0
    chain = CyclicalSGLB(
        loss.ready(y, sample_weight),
        schedule=schedule,
        mask=mask,
        temperature=temperature,
        shrink=shrink,
        shrink_to=shrink_to,
        noise=noise,
        prior=prior,
        random_state=random_state,
        **options,
    )
    params = chain.lightgbm_params(
        objective=chain,
        learning_rate=learning_rate,
        max_depth=depth,
        num_leaves=min(2**depth, _MOST_LEAVES) if depth < 31 else _MOST_LEAVES,
        min_data_in_leaf=min_samples_leaf,
        seed=random_state % 2**31,
        num_threads=0 if n_jobs is None or n_jobs < 0 else n_jobs,
        # Sums in one order, however many threads there are.
        deterministic=True,
        force_col_wise=True,
        verbosity=-1,
    )
    given = {name: value for name, value in booster_params.items() if name not in _CHAIN_OPTIONS}
    for name in list(params):  # LightGBM would prefer ours to an alias of the user's
        if lgb.basic._ConfigAliases.get(name) & given.keys():
            del params[name]
    params |= given
    loudness = lgb.basic._ConfigAliases.get("verbosity")
    quiet = {name: value for name, value in params.items() if name in loudness}
    held = {"free_raw_data": False, "params": quiet}
    data = lgb.Dataset(_frame(X, categorical), y, weight=sample_weight, **held)
    user = UserCallbacks(callbacks)
    clocks = user.for_lightgbm()
    if verbose and eval_set is not None:
        clocks.append(lgb.log_evaluation(int(verbose)))
    evaluation: dict[str, Any] = {}
    if eval_set is not None:
        features, labels, weight = eval_set
        valid = lgb.Dataset(_frame(features, categorical), labels, weight=weight, reference=data, **held)
        evaluation = {"valid_sets": [valid], "valid_names": ["validation"], "feval": chain.metric()}
        if early_stopping_rounds is not None:
            clocks.append(lgb.early_stopping(early_stopping_rounds, verbose=bool(verbose)))
    user.before_training()
    try:
        if checkpoint is None:
            clocks = [chain.callback(), *clocks]
            booster = lgb.train(
                params, data, n_estimators, callbacks=clocks, keep_training_booster=True, **evaluation
            )
        else:
            booster = resuming.train(chain, params, data, n_estimators, checkpoint, clocks, **evaluation)
    finally:
        user.after_training()
    # A chain is read at its cycle ends: unlike LightGBM, keep what came after the best iteration.
    booster.best_iteration = -1
    return booster.model_from_string(booster.model_to_string(num_iteration=-1)).free_dataset()


def reader(model: lgb.Booster) -> LightGBMReader:
    """Make the reader of a trained model.

    Parameters
    ----------
    model : Booster
        Trained model.

    Returns
    -------
    LightGBMReader
        Reader of its states.
    """
    return LightGBMReader(model)


def dump(model: lgb.Booster) -> bytes:
    """Write a model as LightGBM's own text, after a checksum and the chain's description.

    Parameters
    ----------
    model : Booster
        Trained model.

    Returns
    -------
    bytes
        Checksum, description and text of the model.
    """
    # A constant model carries the chain's description outside of its text.
    body = (
        json.dumps(read_description(model)).encode()
        + b"\n"
        + model.model_to_string(num_iteration=-1).encode()
    )
    return _HEAD + b"%08x\n" % zlib.crc32(body) + body


def restore(content: bytes) -> lgb.Booster:
    """Read a model that `dump` wrote.

    Parameters
    ----------
    content : bytes
        Checksum and text of the model.

    Returns
    -------
    Booster
        The model.

    Raises
    ------
    ValueError
        For bytes that are no model. LightGBM itself would end the process at damaged trees.
    """
    head, _, body = bytes(content).partition(b"\n")
    if head != _HEAD + b"%08x" % zlib.crc32(body):
        raise ValueError("the chain is no LightGBM model: its checksum does not fit")
    description, _, text = body.partition(b"\n")
    model = lgb.Booster(model_str=text.decode())
    write_description(model, json.loads(description), into_text=False)
    return model


def _frame(X: Any, categorical: Sequence[int]) -> Any:
    if not len(categorical):
        return X
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X)
    return frame.astype({frame.columns[column]: "category" for column in categorical})
