"""Write what tiny fits predict: ``python -m tests.robustness.predictions file name ...``."""

from __future__ import annotations

import sys

import numpy as np

from .small_models import fitted, predictor, rows

if __name__ == "__main__":
    path, *names = sys.argv[1:]
    np.savez(path, **{name: predictor(fitted(name))(rows()) for name in names})
