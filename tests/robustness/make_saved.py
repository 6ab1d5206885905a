"""Write the files of ``tests/data/saved`` in today's format: ``python -m tests.robustness.make_saved``.

To be run once, when a format is new: the files then stand for all that users have.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from tests.robustness.small_models import MAKERS, fitted, predictor, rows

KNOWN = 12

if __name__ == "__main__":
    folder = Path(__file__).resolve().parents[1] / "data" / "saved" / sys.argv[1]
    folder.mkdir(parents=True)
    predictions = {}
    for name in MAKERS:
        model = fitted(name)
        model.save(folder / f"{name}.model")
        predictions[name] = predictor(model)(rows()[:KNOWN])
    np.savez_compressed(folder / "predictions.npz", **predictions)
