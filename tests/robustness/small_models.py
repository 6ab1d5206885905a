"""One tiny instance of every public estimator, for tests of files, threads and interruptions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import boostplugins
from boostplugins import CosineCycle

N_ROWS = 60


def rows() -> np.ndarray:
    """Two features on a lattice: no random numbers, the same bits with any NumPy."""
    grid = np.arange(N_ROWS)
    return np.stack([grid * 7 % N_ROWS, grid * 11 % N_ROWS], axis=1) / N_ROWS


def response() -> np.ndarray:
    """Noisy response: its spread grows with the second feature."""
    X = rows()
    wave = np.arange(N_ROWS) * 5 % 13 / 13.0 - 0.5
    return 3.0 * X[:, 0] + (0.2 + X[:, 1]) * wave


def labels(n_classes: int = 2) -> np.ndarray:
    """Classes named by words."""
    names = np.array(["ash", "birch", "cedar"])
    return names[np.digitize(response(), np.quantile(response(), np.arange(1, n_classes) / n_classes))]


def _sglb(booster: str, **settings: Any) -> dict[str, Any]:
    small = {"n_estimators": 6, "depth": 2, "schedule": CosineCycle(length=3), "min_samples_leaf": 5}
    return small | {"booster": booster, "n_jobs": 1, "prior": None} | settings


_TREES = {"n_trees": 3, "n_burn": 5, "n_draws": 6, "n_chains": 2, "random_state": 0}
_NETWORK = {"max_epochs": 4, "patience": 2}
_LEAVES = {"split_hidden": (4,), "leaf_hidden": (4,), "min_samples_leaf": 15}
ONE_MODEL = dict.fromkeys(("n_folds", "validation_fraction", "early_stopping_rounds", "calibration"))
_FOLDED = {**ONE_MODEL, "n_folds": 2, "calibration": "scale"}

MAKERS: dict[str, tuple[str, dict[str, Any]]] = {
    "sglb_classifier_catboost": ("SGLBClassifier", _sglb("catboost")),
    "sglb_classifier_lightgbm": ("SGLBClassifier", _sglb("lightgbm")),
    "sglb_regressor_catboost": ("SGLBRegressor", _sglb("catboost", n_chains=2)),
    "sglb_regressor_lightgbm": ("SGLBRegressor", _sglb("lightgbm", prior="auto")),
    "distributional_catboost": (
        "DistributionalRegressor",
        {"booster": "catboost", "n_estimators": 4, "depth": 2, "n_jobs": 1, **ONE_MODEL},
    ),
    "distributional_lightgbm": (
        "DistributionalRegressor",
        {"booster": "lightgbm", "n_estimators": 4, "depth": 2, "n_jobs": 1, **_FOLDED},
    ),
    "soft_tree": ("SoftTreeRegressor", {"max_leaves": 3, "random_state": 0}),
    "soft_forest": ("SoftForestRegressor", {"n_estimators": 2, "max_leaves": 3, "random_state": 0}),
    "soft_boosting": ("SoftBoostingRegressor", {"n_estimators": 3, "random_state": 0}),
    "soft_classifier": ("SoftTreeClassifier", {"max_leaves": 3, "random_state": 0}),
    "usnrt": (
        "USNRTRegressor",
        {**_LEAVES, **_NETWORK},
    ),
    "hnn": ("HNNRegressor", {"hidden": (4,), **_NETWORK}),
    "mc_dropout": ("MCDropoutRegressor", {"n_draws": 3, "hidden": (4,), **_NETWORK}),
    "bart_regressor": ("BARTRegressor", _TREES),
    "bart_classifier": ("BARTClassifier", _TREES),
    "hbart": ("HBARTRegressor", _TREES),
    "hbart_forest": ("HBARTRegressor", {**_TREES, "variance": "forest", "n_variance_trees": 2}),
    "hbart_cv": ("HBARTRegressorCV", {"param_grid": {"k": [2.0, 3.0]}, "cv": 2}),
}


def make(name: str, **more: Any) -> Any:
    """Make the unfitted estimator of a name."""
    kind, settings = MAKERS[name]
    if kind == "HBARTRegressorCV":
        settings = {"estimator": boostplugins.HBARTRegressor(**_TREES), **settings}
    return getattr(boostplugins, kind)(**settings | more)


def target(name: str) -> np.ndarray:
    """Labels for classifiers, of three classes for one of them; numbers for the rest."""
    if "Classifier" not in MAKERS[name][0]:
        return response()
    return labels(3 if name == "sglb_classifier_lightgbm" else 2)


def fitted(name: str, **more: Any) -> Any:
    """Fit the estimator of a name, without its warnings of small samples."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(name, **more).fit(rows(), target(name))


def predictor(model: Any) -> Callable[[Any], np.ndarray]:
    """Numbers a model predicts: its probabilities, or quantiles and mean."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba
    return lambda X: np.column_stack([model.predict(X), model.predict_interval(X)])
