"""Models that a comparison knows by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from sklearn.base import BaseEstimator


class Entry(NamedTuple):
    """A model: its class in `boostplugins.estimators`, settings, and smaller ones for a quick look."""

    kind: str
    settings: dict[str, Any]
    quick: dict[str, Any]


_TREES = {"n_estimators": 200}
# Boosted likelihoods grow too sure without held-out rows; each fold's model keeps some.
_STOPPED = {"n_folds": 5, "early_stopping_rounds": 30}
_ROUNDS = {"n_estimators": 150, "learning_rate": 0.1, "n_folds": 3, "early_stopping_rounds": 15}
_BART = {"n_trees": 30, "n_burn": 100, "n_draws": 100, "n_chains": 2}
_FOREST = {"n_estimators": 8, "ridge": 0.1, "max_leaves": 12}
_NETWORKS = {"max_epochs": 60}

_REGRESSION: dict[str, Entry] = {
    "sglb-catboost": Entry("sglb.SGLBRegressor", {"booster": "catboost", "n_jobs": 1}, _TREES),
    "sglb-lightgbm": Entry("sglb.SGLBRegressor", {"booster": "lightgbm", "n_jobs": 1}, _TREES),
    "sglb-normal": Entry(
        "sglb.SGLBRegressor", {"loss": "normal", "booster": "lightgbm", "n_jobs": 1}, _TREES
    ),
    "distributional": Entry(
        "distributional.DistributionalRegressor", {"booster": "lightgbm", **_STOPPED}, _ROUNDS
    ),
    "distributional-catboost": Entry(
        "distributional.DistributionalRegressor", {"booster": "catboost", **_STOPPED}, _ROUNDS
    ),
    "soft-tree": Entry("soft_tree.SoftTreeRegressor", {}, {"ridge": 0.1, "max_leaves": 16}),
    "soft-forest": Entry("soft_tree_forest.SoftForestRegressor", {}, _FOREST),
    "soft-boosting": Entry("soft_tree_boosting.SoftBoostingRegressor", {}, {"n_estimators": 60}),
    "usnrt": Entry("usnrt.USNRTRegressor", {}, _NETWORKS),
    "usnrt-ensemble": Entry("usnrt.USNRTRegressor", {"n_members": 5}, _NETWORKS | {"n_members": 3}),
    "deep-ensemble": Entry("hnn.HNNRegressor", {"n_members": 5}, _NETWORKS | {"n_members": 3}),
    "mc-dropout": Entry("mc_dropout.MCDropoutRegressor", {}, _NETWORKS),
    "hbart": Entry("hbart.HBARTRegressor", {}, _BART),
    "bart": Entry("bart.BARTRegressor", {}, _BART),
}
_CLASSIFICATION: dict[str, Entry] = {
    "sglb-catboost": Entry("sglb.SGLBClassifier", {"booster": "catboost", "n_jobs": 1}, _TREES),
    "sglb-lightgbm": Entry("sglb.SGLBClassifier", {"booster": "lightgbm", "n_jobs": 1}, _TREES),
    "soft-tree": Entry("soft_tree_classifier.SoftTreeClassifier", {}, {"ridge": 0.1, "max_leaves": 16}),
    "bart": Entry("bart_classifier.BARTClassifier", {}, _BART),
}
# What `compare` fits when it is told nothing.
DEFAULT: dict[str, tuple[str, ...]] = {
    "regression": (
        "sglb-catboost", "sglb-lightgbm", "distributional", "distributional-catboost", "soft-tree",
        "soft-forest", "soft-boosting", "usnrt", "usnrt-ensemble", "hbart", "bart", "linear",
    ),
    "classification": (
        "sglb-catboost", "sglb-lightgbm", "soft-tree", "bart", "logistic", "random-forest",
    ),
}  # fmt: skip


def model_names(classification: bool = False) -> list[str]:
    """List the models that `compare` knows by name.

    Parameters
    ----------
    classification : bool, default=False
        Whether responses are classes.

    Returns
    -------
    list of str
        Names. In regression ``family:NAME`` and ``family-catboost:NAME`` are known too, for any
        family of `boostplugins.families`, such as ``family:gamma``.

    Examples
    --------
    >>> from boostplugins.compare import model_names
    >>> "logistic" in model_names(classification=True)
    True
    """
    ours = _CLASSIFICATION if classification else _REGRESSION
    return [*ours, *_baselines(classification)]


def make_model(name: str, classification: bool = False, random_state: int = 0, quick: bool = False) -> Any:
    """Make a model by its name.

    Parameters
    ----------
    name : str
        One of `model_names`.
    classification : bool, default=False
        Whether responses are classes.
    random_state : int, default=0
        Seed.
    quick : bool, default=False
        Small settings.

    Returns
    -------
    estimator
        Not fitted; or, where the model cannot be made on this machine, the exception that says why.

    Raises
    ------
    ValueError
        For an unknown name.

    Examples
    --------
    >>> from boostplugins.compare import make_model
    >>> make_model("family:gamma").family
    'gamma'
    """
    entry = (_CLASSIFICATION if classification else _REGRESSION).get(name) or _family(name, classification)
    baseline = _baselines(classification).get(name)
    if entry is None and baseline is None:
        known = model_names(classification)
        near = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"unknown model {name!r}{hint}; known: {', '.join(known)}")
    try:
        if entry is None:
            assert baseline is not None
            return baseline(random_state)
        module, _, kind_name = entry.kind.partition(".")
        kind = getattr(import_module(f"boostplugins.estimators.{module}"), kind_name)
        return kind(**(entry.settings | (entry.quick if quick else {})), random_state=random_state)
    except Exception as error:
        return error


def _family(name: str, classification: bool) -> Entry | None:
    how, _, family = name.partition(":")
    booster = {"family": "lightgbm", "family-catboost": "catboost"}.get(how)
    if classification or booster is None or not family:
        return None
    settings = {"booster": booster, "family": family, **_STOPPED}
    return Entry("distributional.DistributionalRegressor", settings, _ROUNDS)


def _baselines(classification: bool) -> dict[str, Callable[[int], BaseEstimator]]:
    if classification:
        return {"logistic": _logistic, "random-forest": _forest_classifier}
    return {"linear": _linear, "random-forest": _forest_regressor}


def _linear(seed: int) -> BaseEstimator:
    from sklearn.linear_model import BayesianRidge

    return _encoded(BayesianRidge())


def _logistic(seed: int) -> BaseEstimator:
    from sklearn.linear_model import LogisticRegression

    return _encoded(LogisticRegression(max_iter=2000))


def _forest_regressor(seed: int) -> BaseEstimator:
    from sklearn.ensemble import RandomForestRegressor

    return _encoded(RandomForestRegressor(random_state=seed))


def _forest_classifier(seed: int) -> BaseEstimator:
    from sklearn.ensemble import RandomForestClassifier

    return _encoded(RandomForestClassifier(random_state=seed))


def _encoded(model: BaseEstimator) -> BaseEstimator:
    """Put one-hot categories and standardised, filled numbers in front of a model of scikit-learn."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

    numbers = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
    levels = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer(
        (levels, make_column_selector(dtype_exclude="number")),
        (numbers, make_column_selector(dtype_include="number")),
    )
    return make_pipeline(FunctionTransformer(_as_frame), columns, model)


def _as_frame(X: Any) -> Any:
    """Give plain arrays the column names that the selection by type asks for."""
    import pandas as pd

    return X if hasattr(X, "columns") else pd.DataFrame(X).rename(columns=str)
