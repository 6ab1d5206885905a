"""Soft trees on real data beside gradient boosting of the same distribution.

Fits are kept in results/soft_tree_real.json, so that the table can be made in pieces;
delete the file after a change of the models.

Usage: python benchmarks/soft_tree_real.py [names ...] [--models tree boosting lightgbm catboost forest]
       [--seconds 800] [--table]   (needs the staged data)
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numpy as np
import pandas as pd

from boostplugins.datasets import load_staged, pbp_splits
from boostplugins.estimators.distributional import DistributionalRegressor
from boostplugins.estimators.soft_tree import SoftTreeRegressor
from boostplugins.estimators.soft_tree_boosting import SoftBoostingRegressor
from boostplugins.estimators.soft_tree_forest import SoftForestRegressor

STORE = Path(__file__).parent / "results" / "soft_tree_real.json"
# Name: family, splits.
SETS = {
    "rent99": ("gamma", 2),
    "dbbmi": ("gamma", 1),
    "mcycle": ("normal", 5),
    "sunspots_yearly": ("normal", 1),
    "sunspots_raw": ("normal", 1),
    "boston": ("normal", 2),
    "concrete": ("normal", 2),
    "energy": ("normal", 2),
    "kin8nm": ("normal", 1),
    "naval": ("normal", 1),
    "power": ("normal", 1),
    "protein": ("normal", 1),
    "wine_red": ("normal", 2),
    "yacht": ("normal", 3),
}
SERIES = ("sunspots_yearly", "sunspots_raw")
LAGS = 12
MOST_ROWS = 3000  # training rows of every model; all test rows are used
LABELS = {
    "tree": "SoftTree",
    "forest": "SoftForest, 10 trees",
    "boosting": "SoftBoosting",
    "lightgbm": "LightGBM distributional",
    "catboost": "CatBoost distributional",
}
Split = tuple[np.ndarray, np.ndarray]


def rows_of(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Features and target; of the yearly sunspots, lags and the square root."""
    X, y, _, _ = load_staged("sunspots_yearly" if name in SERIES else name)
    values = y.to_numpy(dtype=np.float64)
    if name in SERIES:
        root = np.sqrt(values + 0.001)
        seen = values if name == "sunspots_raw" else root
        lags = {f"lag {j}": seen[LAGS - j : len(seen) - j] for j in range(1, LAGS + 1)}
        return pd.DataFrame(lags), root[LAGS:]
    return X, values


def splits(name: str, n: int, count: int) -> list[Split]:
    """The literature's splits; of a series, its last fifth."""
    if name in SERIES:
        cut = n * 4 // 5
        return [(np.arange(cut), np.arange(cut, n))]
    return [(train[:MOST_ROWS], test) for (train, test), _ in zip(pbp_splits(n), range(count))]


def models(family: str) -> dict[str, Callable[[], Any]]:
    """Models to compare."""
    stopped = {"n_estimators": 500, "validation_fraction": 0.2, "early_stopping_rounds": 20}
    return {
        "tree": lambda: SoftTreeRegressor(family),
        "forest": lambda: SoftForestRegressor(family, n_estimators=10),
        "boosting": lambda: SoftBoostingRegressor(family, n_estimators=150),
        "lightgbm": lambda: DistributionalRegressor(family, booster="lightgbm", **stopped),
        "catboost": lambda: DistributionalRegressor(family, booster="catboost", **stopped),
    }


def fit(family: str, model: str, X: pd.DataFrame, y: np.ndarray, split: Split) -> list[float]:
    """Log score, CRPS, RMSE and CPU seconds of one fit."""
    train, test = split
    began = time.process_time()
    fitted = models(family)[model]().fit(X.iloc[train], y[train])
    seconds = time.process_time() - began
    dist = fitted.predict_dist(X.iloc[test])
    error = float(np.sqrt(np.mean((dist.mean() - y[test]) ** 2)))
    return [float(dist.log_pdf(y[test]).mean()), float(dist.crps(y[test]).mean()), error, seconds]


def read() -> dict[str, dict[str, list[float]]]:
    """Fits so far."""
    return json.loads(STORE.read_text()) if STORE.is_file() else {}


def fill(given: argparse.Namespace) -> None:
    """Fit what is missing, until the time is up."""
    warnings.simplefilter("ignore")
    SoftTreeRegressor(ridge=5.0, max_leaves=3).fit(np.arange(9.0)[:, None], np.arange(9.0) ** 2)  # compile
    began = time.monotonic()
    for model in given.models:
        for name in given.names or SETS:
            family, count = SETS[name]
            X, y = rows_of(name)
            for number, split in enumerate(splits(name, len(y), count)):
                if str(number) in read().get(f"{name} {model}", {}):
                    continue
                if time.monotonic() - began > given.seconds:
                    return
                result = fit(family, model, X, y, split)
                held = read()
                held.setdefault(f"{name} {model}", {})[str(number)] = result
                STORE.write_text(json.dumps(held, indent=1, sort_keys=True) + "\n")
                print(name, model, number, [round(value, 4) for value in result], file=sys.stderr)


def table() -> Iterator[str]:
    """Yield the lines of all fits so far."""
    import catboost
    import lightgbm

    held = read()
    yield (
        f"numpy {np.__version__}, lightgbm {lightgbm.__version__}, catboost {catboost.__version__}, "
        f"python {platform.python_version()}, {platform.machine()}, one thread, CPU seconds a fit"
    )
    yield (
        "Log score: mean log density, higher is better; CRPS: lower is better. Literature's splits; at most "
        f"{MOST_ROWS} training rows for every model (rows)."
    )
    yield (
        "Sunspots: square root by 12 lags of it (the paper), or by 12 raw counts; the last fifth of "
        "the years tests.\n"
        "Boosters: 500 rounds at most, early stopping on 20 % of the rows. Nothing is tuned.\n"
    )
    yield f"{'data':16s} {'rows':>5s} {'family':7s} splits {'model':24s} log score     CRPS    RMSE   CPU s"
    for name, (family, count) in SETS.items():
        _, y = rows_of(name)
        train = len(splits(name, len(y), count)[0][0])
        for model, label in LABELS.items():
            done = list(held.get(f"{name} {model}", {}).values())
            if not done:
                yield f"{name:16s} {train:5d} {family:7s}      0 {label:24s} not run yet"
                continue
            score, crps, error, seconds = np.mean(done, axis=0)
            yield (
                f"{name:16s} {train:5d} {family:7s} {len(done):6d} {label:24s} {score:9.4f} "
                f"{crps:8.4g} {error:7.4g} {seconds:7.2f}"
            )


def main() -> None:
    """Fill the store, print the table and keep it beside the store."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="data sets; all by default")
    parser.add_argument("--models", nargs="+", default=["tree", "lightgbm", "catboost", "boosting", "forest"])
    parser.add_argument("--seconds", type=float, default=800.0, help="seconds after which to stop")
    parser.add_argument("--table", action="store_true", help="only print")
    given = parser.parse_args()
    if not given.table:
        fill(given)
    text = "\n".join(table())
    print(text)
    STORE.with_suffix(".txt").write_text(text + "\n")


if __name__ == "__main__":
    main()
