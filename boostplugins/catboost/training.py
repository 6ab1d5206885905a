"""Train a chain on CatBoost for an estimator: pool, parameters, fit."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from catboost import CatBoost

from boostplugins.catboost import resuming
from boostplugins.catboost.chain import CyclicalSGLB
from boostplugins.catboost.reader import CatBoostReader
from boostplugins.catboost.turns import in_turns, trees_a_round
from boostplugins.checkpoints import Checkpoint
from boostplugins.losses import Loss
from boostplugins.masks import RowMask
from boostplugins.schedules import GradientSchedule

# Other names that CatBoost has for settings of ours: it takes one of each group.
_SYNONYMS = (
    {"learning_rate", "eta"},
    {"depth", "max_depth"},
    {"random_seed", "random_state"},
    {"iterations", "n_estimators", "num_boost_round", "num_trees"},
    {"min_data_in_leaf", "min_child_samples"},
    {"l2_leaf_reg", "reg_lambda"},
    {"verbose", "verbose_eval", "silent", "logging_level"},
)


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
) -> CatBoost:
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
        Depth of a tree.
    min_samples_leaf : int
        Least rows of a leaf. Trees grow level by level (``grow_policy="Depthwise"``): symmetric ones
        have no such limit, and empty leaves, of which nothing is known and nothing is said.
    early_stopping_rounds : int or None
        Rounds without a better score on `eval_set` before training stops.
    n_jobs : int or None
        Threads; None for all.
    verbose : bool or int
        Print progress, every so many iterations.
    callbacks : sequence
        User callbacks.
    booster_params : dict
        Further CatBoost parameters; they win.
    checkpoint : Checkpoint, optional
        File to go on from, and to keep where the training stands.

    Returns
    -------
    CatBoost
        Trained model.
    """
    chain = CyclicalSGLB(
        loss,
        schedule=schedule,
        mask=mask,
        temperature=temperature,
        shrink=shrink,
        shrink_to=shrink_to,
        noise=noise,
        structure_noise=structure_noise,
        prior=prior,
        random_state=random_state,
    )
    if in_turns(chain.loss) and early_stopping_rounds is not None:
        raise ValueError("early_stopping_rounds must be None for a family on CatBoost, which has no score")
    # Target statistics of categories go by the order of the rows: draw one.
    order = np.random.default_rng(random_state).permutation(len(y)) if len(categorical) else np.arange(len(y))
    rows = X.iloc[order] if hasattr(X, "iloc") else X[order]
    weight = None if sample_weight is None else sample_weight[order]
    options: dict[str, Any] = {"cat_features": list(categorical) or None}
    pool = chain.pool(rows, y[order], sample_weight=weight, **options)
    settings = chain.catboost_params(
        loss_function=chain,
        eval_metric=chain.metric(),
        iterations=n_estimators * trees_a_round(chain.loss),
        learning_rate=learning_rate,
        depth=depth,
        random_seed=random_state % 2**31,
        thread_count=-1 if n_jobs is None or n_jobs < 0 else n_jobs,
        allow_writing_files=False,
        verbose=int(verbose) * trees_a_round(chain.loss),
        **_leaf_rule(min_samples_leaf, in_turns(chain.loss)),
        metric_period=n_estimators * trees_a_round(chain.loss) if eval_set is None and not verbose else 1,
    )
    params = _joined(settings, booster_params)
    held_out = None if eval_set is None else chain.pool(*eval_set, **options)
    more = {"eval_set": held_out, "early_stopping_rounds": early_stopping_rounds}
    if checkpoint is not None:
        return resuming.train(chain, params, pool, checkpoint, callbacks, **more)
    return chain.fit(CatBoost(params), pool, callbacks=callbacks, **more)


def _joined(settings: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Put the user's parameters in place of ours, under whatever names."""
    for name, why in (
        ("loss_function", "the chain is the loss; use loss"),
        ("objective", "the chain is the loss; use loss"),
        ("metadata", "it says which chain the model is"),
    ):
        if name in given:
            raise ValueError(f"booster_params must not hold {name}, got {given[name]!r}: {why}")
    replaced = {name for group in _SYNONYMS if group & given.keys() for name in group}
    return {name: value for name, value in settings.items() if name not in replaced} | given


def _leaf_rule(min_samples_leaf: int, symmetric: bool) -> dict[str, Any]:
    """Symmetric trees know no least leaf; depth-wise ones do, and leave no leaf empty."""
    if symmetric and min_samples_leaf <= 1:
        return {}
    return {"grow_policy": "Depthwise", "min_data_in_leaf": min_samples_leaf}


def reader(model: CatBoost) -> CatBoostReader:
    """Make the reader of a trained model.

    Parameters
    ----------
    model : CatBoost
        Trained model.

    Returns
    -------
    CatBoostReader
        Reader of its states.
    """
    return CatBoostReader(model)


def dump(model: CatBoost) -> bytes:
    """Write a model in CatBoost's own format.

    Parameters
    ----------
    model : CatBoost
        Trained model.

    Returns
    -------
    bytes
        Content of a .cbm file.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.cbm"
        model.save_model(str(path))
        return path.read_bytes()


def restore(content: bytes) -> CatBoost:
    """Read a model in CatBoost's own format.

    Parameters
    ----------
    content : bytes
        Content of a .cbm file.

    Returns
    -------
    CatBoost
        The model.

    Raises
    ------
    ValueError
        For bytes that are no model.
    """
    try:
        return CatBoost().load_model(blob=content)
    except Exception as error:
        raise ValueError(f"the chain is no CatBoost model: {str(error).splitlines()[0]}") from None
