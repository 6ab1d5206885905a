"""Soft trees on real data beside gradient boosting of the same distribution.

Usage: python benchmarks/soft_tree_real.py [names ...]   (needs the staged data)
"""

from __future__ import annotations

import os
import platform
import sys
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numpy as np
import pandas as pd

from boostplugins.datasets import load_staged, pbp_splits
from boostplugins.estimators.distributional import DistributionalRegressor
from boostplugins.estimators.soft_tree import SoftTreeRegressor
from boostplugins.estimators.soft_tree_boosting import SoftBoostingRegressor

# Name: family, splits.
SETS = {
    "mcycle": ("normal", 3),
    "sunspots_yearly": ("normal", 1),
    "rent99": ("gamma", 2),
    "dbbmi": ("gamma", 1),
    "yacht": ("normal", 3),
    "boston": ("normal", 2),
    "energy": ("normal", 2),
    "concrete": ("normal", 2),
    "wine_red": ("normal", 2),
    "power": ("normal", 1),
}
LAGS = 12


def table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Features and target; the yearly sunspots become lags."""
    X, y, _, _ = load_staged(name)
    values = y.to_numpy(dtype=np.float64)
    if name == "sunspots_yearly":
        lags = {f"lag {j}": values[LAGS - j : len(values) - j] for j in range(1, LAGS + 1)}
        return pd.DataFrame(lags), np.sqrt(values[LAGS:] + 0.001)
    return X, values


def splits(name: str, n: int, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The literature's splits; of a series, its last fifth."""
    if name == "sunspots_yearly":
        cut = n * 4 // 5
        return [(np.arange(cut), np.arange(cut, n))]
    return [pair for pair, _ in zip(pbp_splits(n), range(count))]


def models(family: str) -> dict[str, object]:
    """Models to compare."""
    return {
        "SoftTree": SoftTreeRegressor(family),
        "SoftBoosting": SoftBoostingRegressor(family, n_estimators=100),
        "LightGBM distributional": DistributionalRegressor(
            family,
            n_estimators=500,
            validation_fraction=0.2,
            early_stopping_rounds=20,
        ),
    }


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    print(f"numpy {np.__version__}, python {platform.python_version()}, {platform.machine()}, one thread")
    print("Log score: mean log density, higher is better; CRPS: lower is better; CPU seconds a fit")
    print(f"{'data':16s} {'n':>6s} {'family':7s} splits {'model':24s} log score    CRPS   RMSE   CPU s")
    for name in sys.argv[1:] or SETS:
        family, count = SETS[name]
        X, y = table(name)
        pairs = splits(name, len(y), count)
        for label, model in models(family).items():
            rows = []
            for train, test in pairs:
                began = time.process_time()
                model.fit(X.iloc[train], y[train])
                seconds = time.process_time() - began
                dist = model.predict_dist(X.iloc[test])
                error = float(np.sqrt(np.mean((dist.mean() - y[test]) ** 2)))
                rows.append([dist.log_pdf(y[test]).mean(), dist.crps(y[test]).mean(), error, seconds])
            score, crps, error, seconds = np.mean(rows, axis=0)
            print(
                f"{name:16s} {len(y):6d} {family:7s} {len(pairs):6d} {label:24s} {score:9.4f} "
                f"{crps:8.4g} {error:7.4g} {seconds:7.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
