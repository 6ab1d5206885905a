"""Fit an estimator with checkpoints and write what it predicts: a process to be killed.

``python -m tests.robustness.killed_fit folder name seed`` prints a line before each fit and leaves
``folder/name.npy``; checkpoints stand in ``folder/name.checkpoint``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from .small_models import fitted, predictor, rows

LONGER = {
    "sglb_regressor_catboost": {"n_estimators": 60, "checkpoint_every": 1},
    "sglb_classifier_lightgbm": {"n_estimators": 60, "checkpoint_every": 2},
    "hbart": {"n_burn": 3000, "n_draws": 300, "checkpoint_every": 50},
}


def settings(name):
    return {key: value for key, value in LONGER[name].items() if not key.startswith("checkpoint")}


if __name__ == "__main__":
    folder, *names = sys.argv[1:]
    for name in names:
        print(name, flush=True)  # noqa: T201
        model = fitted(name, checkpoint=Path(folder) / f"{name}.checkpoint", **LONGER[name])
        np.save(Path(folder) / f"{name}.npy", predictor(model)(rows()))
