"""LightGBM settings under which a chain is the one asked for."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import Any

# LightGBM's other names of the parameters that a chain looks at.
_ALIASES: dict[str, tuple[str, ...]] = {
    "boosting": ("boosting_type", "boost"),
    "lambda_l1": ("reg_alpha", "l1_regularization"),
    "lambda_l2": ("reg_lambda", "lambda", "l2_regularization"),
    "learning_rate": ("shrinkage_rate", "eta"),
    "linear_tree": ("linear_trees",),
    "is_unbalance": ("unbalance", "unbalanced_sets"),
    "max_delta_step": ("max_tree_output", "max_leaf_output"),
    "metric": ("metrics", "metric_types"),
    "monotone_constraints": ("mc", "monotone_constraint", "monotonic_cst"),
    "num_class": ("num_classes",),
    "num_machines": ("num_machine",),
    "machines": ("workers", "nodes"),
    "local_listen_port": ("local_port", "port"),
    "num_threads": ("num_thread", "nthread", "nthreads", "n_jobs"),
}
_DEFAULTS: dict[str, Any] = {
    "boosting": "gbdt",
    "learning_rate": 0.1,
    "num_class": 1,
    "num_machines": 1,
    "cat_l2": 10.0,
}
# Largest shrink * learning rate * iterations: scores are kept in units that grow by its exponential,
# and LightGBM rounds leaf values below 1e-35 to 0.
MAX_DECAY = 45.0
_RANK_METRICS = frozenset({"auc", "average_precision"})  # do not mind a constant added to the scores


def find(params: Mapping[str, Any], name: str) -> Any:
    """Look a parameter up under any of its names.

    Parameters
    ----------
    params : mapping
        LightGBM's parameters.
    name : str
        Main name.

    Returns
    -------
    object
        Value, or LightGBM's default (None where there is none).
    """
    for key in (name, *_ALIASES.get(name, ())):
        if params.get(key) is not None:
            return params[key]
    return _DEFAULTS.get(name)


def thread_count(params: Mapping[str, Any]) -> int:
    """Count the threads that LightGBM will use.

    Parameters
    ----------
    params : mapping
        LightGBM's parameters.

    Returns
    -------
    int
        ``num_threads``, or what OpenMP takes by default.
    """
    asked = find(params, "num_threads")
    if asked is not None and int(asked) > 0:
        return int(asked)
    told = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return int(told) if told.isdigit() and int(told) > 0 else os.cpu_count() or 1


def _is_zero(value: Any) -> bool:
    return value is None or float(value) == 0.0


def _is_off(value: Any) -> bool:
    return value in (None, False, 0, "false", "0")


# What leaves need to be plain means: parameter, test of its value, what it must be.
_RULES: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("lambda_l1", _is_zero, "must be 0: leaves are means; the prior is the chain's shrink"),
    ("lambda_l2", _is_zero, "must be 0: leaves are means; the prior is the chain's shrink"),
    ("path_smooth", _is_zero, "must be 0: leaves are means"),
    ("max_delta_step", lambda value: value is None or float(value) <= 0, "must be 0: leaves are means"),
    ("linear_tree", _is_off, "must be off: leaves are means"),
    ("monotone_constraints", lambda value: not value, "must be empty: noise does not keep them"),
    ("is_unbalance", _is_off, "must be off: LightGBM passes it over; give rows weights"),
    (
        "scale_pos_weight",
        lambda value: value is None or float(value) == 1.0,
        "must be 1: LightGBM passes it over; give rows weights",
    ),
    ("use_quantized_grad", _is_off, "must be off: leaves are means of the directions as they are"),
    (
        "boosting",
        lambda value: value not in ("rf", "random_forest"),
        "must not be a random forest: it averages trees, a chain adds them one after another",
    ),
)


def check_settings(
    params: Mapping[str, Any],
    n_outputs: int,
    noisy: bool,
    decay: float,
    has_categories: bool,
    evaluates: bool,
) -> None:
    """Refuse settings under which the chain would not be the one asked for.

    Parameters
    ----------
    params : mapping
        LightGBM's parameters.
    n_outputs : int
        Raw scores a row.
    noisy : bool
        Whether the chain draws noise.
    decay : float
        Shrink rate times learning rate times iterations.
    has_categories : bool
        Whether any feature is categorical.
    evaluates : bool
        Whether LightGBM will score data sets with its own metrics.

    Raises
    ------
    ValueError
        Naming the first parameter at fault, its value and the remedy.
    """
    check_leaves(params, has_categories)
    rate = float(find(params, "learning_rate"))
    if not (math.isfinite(rate) and rate > 0):
        raise ValueError(f"learning_rate must be > 0, got {rate:g}")
    found = int(find(params, "num_class"))
    if found != n_outputs:
        raise ValueError(
            f"num_class must be {n_outputs}, the raw scores of the loss, got {found}; pass "
            "**chain.lightgbm_params(), and n_classes with the loss (Softmax(n_classes=3))"
        )
    if noisy and find(params, "boosting") == "dart":
        raise ValueError(
            "boosting='dart' rewrites earlier trees, so that a chain's past states are lost; use 'gbdt', or "
            "temperature=math.inf for boosting without noise"
        )
    if decay > MAX_DECAY:
        raise ValueError(
            f"shrink * learning_rate * iterations must be at most {MAX_DECAY:g}, got {decay:.4g}: LightGBM "
            "rounds the earliest leaves to 0 beyond; use a smaller shrink or a shorter chain"
        )
    if evaluates:
        _check_metric(find(params, "metric"), n_outputs)


def check_leaves(params: Mapping[str, Any], has_categories: bool) -> None:
    """Refuse settings under which leaves are no means; any of them may be reset during a training.

    Parameters
    ----------
    params : mapping
        LightGBM's parameters.
    has_categories : bool
        Whether any feature is categorical.

    Raises
    ------
    ValueError
        Naming the first parameter at fault, its value and the remedy.
    """
    for name, allowed, why in _RULES:
        value = find(params, name)
        if not allowed(value):
            raise ValueError(f"{name} {why}, got {value!r}; pass **chain.lightgbm_params()")
    if has_categories and not _is_zero(find(params, "cat_l2")):
        raise ValueError(
            f"cat_l2 must be 0: it shrinks leaves below categorical splits, got {find(params, 'cat_l2')!r}; "
            "pass **chain.lightgbm_params()"
        )


def _check_metric(metric: Any, n_outputs: int) -> None:
    names = metric.split(",") if isinstance(metric, str) else list(metric or ())
    for name in names:
        plain = str(name).strip().lower()
        if plain in ("", "none", "null", "custom", "na") or (plain in _RANK_METRICS and n_outputs == 1):
            continue
        raise ValueError(
            f"metric must be 'None', got {name!r}: LightGBM's own metrics see its internal scores, without "
            "the chain's start and shrink; pass **chain.lightgbm_params() and feval=chain.metric() "
            "(eval_metric= in the scikit-learn interface)"
        )
