"""Honest uncertainty for CatBoost and LightGBM."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

__version__ = "0.1.0"

# Where each public name lives; loaded on first use, so that importing the package stays quick and
# either booster may be absent.
_PUBLIC = {
    "BARTRegressor": "estimators.bart",
    "BARTClassifier": "estimators.bart_classifier",
    "HBARTRegressor": "estimators.hbart",
    "HBARTRegressorCV": "estimators.hbart_cv",
    "BernoulliMask": "masks",
    "Constant": "schedules",
    "CosineCycle": "schedules",
    "DistributionalRegressor": "estimators.distributional",
    "MixingWarning": "estimators._bart_base",
    "NoMask": "masks",
    "OrthogonalPolynomials": "hbart.polynomials",
    "RandomPrior": "priors",
    "Uncertainty": "uncertainty",
    "Predictive": "predictive",
    "Recalibrator": "calibration",
    "VirtualEnsemble": "virtual_ensemble",
    "Linear": "soft_trees.structured",
    "Smooth": "soft_trees.structured",
    "SoftBoostingRegressor": "estimators.soft_tree_boosting",
    "SoftForestRegressor": "estimators.soft_tree_forest",
    "SoftTreeClassifier": "estimators.soft_tree_classifier",
    "SoftTreeRegressor": "estimators.soft_tree",
    "HNNRegressor": "estimators.hnn",
    "MCDropoutRegressor": "estimators.mc_dropout",
    "USNRTRegressor": "estimators.usnrt",
    "SGLBClassifier": "estimators.sglb",
    "SGLBRegressor": "estimators.sglb",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    here = (name for name, item in globals().items() if isinstance(item, ModuleType) and name[0] != "_")
    return sorted([*_PUBLIC, *here, "__doc__", "__version__"])
