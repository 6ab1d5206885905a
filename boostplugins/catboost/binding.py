"""What a chain learns about the fit that it is about to steer.

CatBoost hands an objective neither parameters nor callbacks nor the number of rows. It copies the
objective at the start of every fit, though, and the copy is made within
``CatBoost._prepare_train_params``, whose frame knows them all. Reading that frame lets contradictory
settings raise before any training, and gives every fit a state of its own.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from catboost import Pool

from boostplugins.catboost.pool import ChainPool

_COPIERS = ("copy", "boostplugins.catboost.chain", "boostplugins.catboost.metadata")
_DEFAULT_LEARNING_RATE = 0.03  # CatBoost's own for custom losses


@dataclass(frozen=True)
class FitSettings:
    """Parameters and data of the fit in progress.

    Attributes
    ----------
    params : dict
        CatBoost's parameters under their canonical names.
    n_rows : int
        Training rows.
    pool : ChainPool or None
        The training pool where it names its rows.
    callbacks : sequence
        Callbacks passed to ``fit``.
    has_categories : bool
        Whether any feature is categorical or text.
    has_baseline : bool
        Whether the rows carry a baseline.
    init_model : object
        Model to continue from, or None.
    y : object
        Responses as passed to ``fit``, None for a pool.
    X : object
        Features as passed to ``fit``.
    fit_features : dict
        Categorical, text and embedding features and weights named in ``fit``.
    """

    params: dict[str, Any]
    n_rows: int
    pool: ChainPool | None
    callbacks: Sequence[Any]
    has_categories: bool
    has_baseline: bool
    init_model: Any
    y: Any
    X: Any
    fit_features: dict[str, Any]

    @property
    def learning_rate(self) -> float:
        """Learning rate as CatBoost stores it, a float32 number."""
        return float(np.float32(self.params.get("learning_rate", _DEFAULT_LEARNING_RATE)))

    @property
    def shuffled(self) -> bool:
        """Whether CatBoost changes the order of the rows."""
        if self.params.get("boosting_type") == "Ordered":
            return True
        return self.has_categories and not self.params.get("has_time")

    @property
    def structure_rows(self) -> int:
        """Rows that CatBoost asks for before it chooses a tree's splits.

        Plain boosting asks for each row once. Ordered boosting keeps a model for each prefix of the
        rows, of lengths that grow by `fold_len_multiplier`, and asks for the rows of each.
        """
        n = self.n_rows
        if self.params.get("boosting_type") != "Ordered":
            return n
        body = min(100, n // 50) if n > 500 else 1
        total = 0
        while total == 0 or body < n:
            body = min(math.ceil(body * self.params.get("fold_len_multiplier", 2.0)), n)
            total += body
        return total

    @property
    def shrink(self) -> float:
        """Model shrink rate as CatBoost stores it, a float32 number."""
        return float(np.float32(self.params.get("model_shrink_rate") or 0.0))


def find_fit() -> FitSettings | None:
    """Find the CatBoost fit that is copying the caller.

    Returns
    -------
    FitSettings or None
        None where the copy is made for another reason, such as ``get_params``.
    """
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") in _COPIERS:
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None or frame.f_code.co_name != "_prepare_train_params":
        return None
    if frame.f_globals.get("__name__") != "catboost.core":
        return None
    held = frame.f_locals
    X, y = held["X"], held["y"]
    if isinstance(X, (str, Path)):
        raise ValueError(f"X must hold the rows of a chain, got {str(X)!r}; fit on catboost.Pool({str(X)!r})")
    params = held["self"]._get_canonized_params()
    is_pool = isinstance(X, Pool)
    named = [
        held[f"{kind}_features"] or params.get(f"{kind}_features") for kind in ("cat", "text", "embedding")
    ]
    if is_pool:
        categories = bool(X.get_cat_feature_indices() or X.get_text_feature_indices())
    else:
        categories = any(features is not None and len(features) > 0 for features in named)
    return FitSettings(
        params=params,
        n_rows=X.num_row() if is_pool else len(y),
        pool=X if isinstance(X, ChainPool) else None,
        callbacks=as_sequence(held["callbacks"]),
        has_categories=categories,
        has_baseline=held["baseline"] is not None
        or (is_pool and X.num_row() > 0 and X.get_baseline().size > 0),
        init_model=held["init_model"],
        y=y,
        X=X,
        fit_features={
            name: held[name]
            for name in ("cat_features", "text_features", "embedding_features")
            if held[name] is not None
        },
    )


def as_sequence(callbacks: Any) -> Sequence[Any]:
    """Take callbacks as CatBoost does.

    Parameters
    ----------
    callbacks : object
        None, a callback, or several.

    Returns
    -------
    sequence
        Callbacks.
    """
    if callbacks is None:
        return ()
    return callbacks if isinstance(callbacks, (list, tuple)) else (callbacks,)


def check_settings(fit: FitSettings, n_outputs: int, noise: str, keeps: bool = False) -> None:
    """Refuse settings under which the chain would not be the one asked for.

    Parameters
    ----------
    fit : FitSettings
        The fit in progress.
    n_outputs : int
        Raw scores a row.
    noise : {"objective", "catboost", "none"}
        Who draws the Langevin noise.
    keeps : bool, default=False
        Whether the chain's clock knows of CatBoost's snapshots.

    Raises
    ------
    ValueError
        Naming the first parameter at fault, its value and the remedy.
    """
    params = fit.params
    for name, allowed, why in _RULES:
        value = params.get(name, _DEFAULTS.get(name))
        if not allowed(value):
            raise ValueError(f"{name} {why}, got {value!r}; pass **loss.catboost_params() to the model")
    if not fit.learning_rate > 0:
        raise ValueError(f"learning_rate must be > 0, got {fit.learning_rate:g}")
    for name in ("class_weights", "auto_class_weights"):
        if fit.pool is not None and params.get(name) not in (None, "None"):
            raise ValueError(
                f"{name} must be unset on a chain's pool, whose labels name their rows, got "
                f"{params[name]!r}; pass sample_weight to loss.pool"
            )
    langevin = bool(params.get("langevin")) or bool(params.get("posterior_sampling"))
    if langevin and noise != "catboost":
        raise ValueError(
            "langevin and posterior_sampling must be off: the objective draws the noise; drop them, or use "
            'CyclicalSGLB(noise="catboost") for the booster\'s own noise'
        )
    if noise == "catboost" and not params.get("langevin"):
        raise ValueError('noise="catboost" needs langevin=True; pass **loss.catboost_params() to the model')
    if fit.init_model is not None:
        raise ValueError("init_model must be None: a chain is not continued; train one longer chain")
    if params.get("save_snapshot") and not keeps:
        raise ValueError(
            "save_snapshot must be off: a resumed fit loses the chain's clock; use "
            "boostplugins.catboost.train_with_checkpoints"
        )
    if fit.shrink > 0 and fit.has_baseline:
        raise ValueError("baseline cannot go with shrink > 0, which would not reach it; use shrink=0")
    if fit.shrink > 0 and params.get("use_best_model"):
        raise ValueError("use_best_model must be False with shrink > 0: a truncated chain has other states")
    if fit.shuffled and fit.pool is None:
        raise ValueError(
            "CatBoost shuffles rows with boosting_type='Ordered', or with categorical features and no "
            "has_time, so that masks and noise would miss their rows; train on loss.pool(X, y, "
            "cat_features=..., sample_weight=...), or pass **loss.catboost_params(), which keeps their order"
        )
    if n_outputs > 1 and fit.pool is None and params.get("thread_count") != 1:
        raise ValueError(
            "thread_count must be 1 for several outputs (rows are counted as they come), got "
            f"{params.get('thread_count')!r}; pass **loss.catboost_params(), or train on loss.pool(X, y, ...)"
        )


# Rules a chain needs: parameter, test of its value, what it must be. Absent parameters have
# CatBoost's own defaults.
_DEFAULTS: dict[str, Any] = {
    "l2_leaf_reg": 3.0,
    "leaf_estimation_iterations": 1,
    "model_shrink_mode": "Constant",
}
_RULES: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    (
        "task_type",
        lambda value: value in (None, "CPU"),
        "must be 'CPU': CatBoost runs no Python objective or callback on a GPU",
    ),
    ("thread_count", lambda value: value != 0, "must be -1 or at least 1: CatBoost ends the process at 0"),
    (
        "min_data_in_leaf",
        lambda value: value is None or value >= 1,
        "must be at least 1: CatBoost ends the process at 0",
    ),
    ("leaf_estimation_method", lambda value: value == "Gradient", "must be 'Gradient': leaves are means"),
    ("leaf_estimation_iterations", lambda value: value in (None, 1), "must be 1: one step a tree"),
    ("l2_leaf_reg", lambda value: value == 0, "must be 0: the prior is the chain's shrink"),
    ("model_shrink_mode", lambda value: value in (None, "Constant"), "must be 'Constant'"),
    ("eval_fraction", lambda value: not value, "must be 0: the split hides the rows; pass eval_set"),
    ("boost_from_average", lambda value: not value, "must be off: the loss has its own start"),
)
