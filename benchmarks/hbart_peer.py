"""stochtree's variance forest on the paper's simulations; runs under a Python that has stochtree.

``python benchmarks/hbart_peer.py design seed...`` prints one line of JSON a seed.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from hbart_designs import measure, replicate
from scipy.special import ndtr
from stochtree import BARTModel


def mixture_interval(mean, sd, level=0.9):
    """Interval of equal tails of mixtures of normals (rows, draws), by halving."""
    ends = []
    for q in (0.5 * (1.0 - level), 0.5 * (1.0 + level)):
        low, high = (mean - 9.0 * sd).min(axis=1), (mean + 9.0 * sd).max(axis=1)
        for _ in range(40):
            middle = 0.5 * (low + high)
            above = ndtr((middle[:, None] - mean) / sd).mean(axis=1) > q
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        ends.append(0.5 * (low + high))
    return np.stack(ends, axis=1)


def run(design, seed):
    X, y, test, f, sd = replicate(design, seed)
    model = BARTModel()
    start = time.process_time()
    model.sample(
        X_train=X,
        y_train=y,
        num_gfr=0,
        num_burnin=250,
        num_mcmc=1000,
        general_params={"num_threads": 1, "random_seed": seed + 1},
        mean_forest_params={"num_trees": 50},
        variance_forest_params={"num_trees": 20},
    )
    seconds = time.process_time() - start
    found = model.predict(X=test, type="posterior", terms=["y_hat", "variance_forest"])
    mean, spread = found["y_hat"], np.sqrt(found["variance_forest_predictions"])
    return measure(mean.mean(axis=1), mixture_interval(mean, spread), f, sd, seconds)


if __name__ == "__main__":
    for seed in sys.argv[2:]:
        print("ROW " + json.dumps([int(seed), run(sys.argv[1], int(seed))]), flush=True)
