"""Fit an estimator with checkpoints and write what it predicts: a process to be killed.

``python -m tests.robustness.killed_fit folder name ...`` prints a line before each fit and leaves
``folder/name.npy``; checkpoints stand in ``folder/name.checkpoint``. The name "compare" compares models
under one cross-validation, whose fits are kept in ``folder/fits``.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

from boostplugins.compare import compare

from .small_models import fitted, make, predictor, response, rows

LONGER = {
    "sglb_regressor_catboost": {"n_estimators": 60, "checkpoint_every": 1},
    "sglb_classifier_lightgbm": {"n_estimators": 60, "checkpoint_every": 2},
    "hbart": {"n_burn": 3000, "n_draws": 300, "checkpoint_every": 50},
}


def settings(name):
    return {key: value for key, value in LONGER[name].items() if not key.startswith("checkpoint")}


def compared(folder=None):
    models = {name: make(name) for name in ("hnn", "mc_dropout", "bart_regressor")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = compare(models, rows(), response(), cv=4, results=folder)
    return table[table["metric"] == "rmse"].sort_values("model")["mean"].to_numpy()


def outcome(folder, name):
    if name == "compare":
        return compared(Path(folder) / "fits")
    model = fitted(name, checkpoint=Path(folder) / f"{name}.checkpoint", **LONGER[name])
    return predictor(model)(rows())


if __name__ == "__main__":
    folder, *names = sys.argv[1:]
    for name in names:
        print(name, flush=True)  # noqa: T201
        np.save(Path(folder) / f"{name}.npy", outcome(folder, name))
