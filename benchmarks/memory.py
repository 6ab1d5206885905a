"""Peak memory and CPU time of every estimator, by rows, with a stated few trees.

Each model runs in a process of its own, on one thread, the smaller sizes first: Friedman #1 with 10
features and a spread that depends on them (two classes: above the median). "fit" is the largest
resident size so far less that before all data, when imports are done and kernels compiled; "predict"
the same after intervals (or probabilities) of all training rows. Both hold the data. Trees and
iterations are few: memory hardly depends on them, time is proportional to them.

Run: ``python benchmarks/memory.py [WORD...]``: only the models whose name holds a word are run again,
the others are taken from benchmarks/results/memory.json. The table is kept in
benchmarks/results/memory.txt.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results"
SMALL, MIDDLE, LARGE = 10_000, 100_000, 1_000_000
CHAIN = {"n_estimators": 10, "n_jobs": 1, "prior": None}
ONE = dict.fromkeys(("n_folds", "validation_fraction", "early_stopping_rounds", "calibration"))
BOOSTED = {"n_estimators": 10, "n_jobs": 1, **ONE}
NETWORK = {"max_epochs": 2}
TREES = {"n_trees": 20, "n_burn": 5, "n_draws": 20, "n_chains": 1, "random_state": 0}
MODELS = {
    "SGLBRegressor, LightGBM, 10 iterations": ("SGLBRegressor", {**CHAIN, "booster": "lightgbm"}, LARGE),
    "SGLBClassifier, LightGBM, 10 iterations": ("SGLBClassifier", {**CHAIN, "booster": "lightgbm"}, LARGE),
    "SGLBRegressor, CatBoost, 10 iterations": ("SGLBRegressor", {**CHAIN, "booster": "catboost"}, MIDDLE),
    "SGLBClassifier, CatBoost, 10 iterations": ("SGLBClassifier", {**CHAIN, "booster": "catboost"}, MIDDLE),
    "DistributionalRegressor, LightGBM, 10 rounds": ("DistributionalRegressor", BOOSTED, LARGE),
    "DistributionalRegressor, CatBoost, 10 rounds": (
        "DistributionalRegressor",
        {**BOOSTED, "booster": "catboost"},
        MIDDLE,
    ),
    "SoftTreeRegressor, 4 leaves": ("SoftTreeRegressor", {"max_leaves": 4}, MIDDLE),
    "SoftTreeClassifier, 4 leaves": ("SoftTreeClassifier", {"max_leaves": 4}, SMALL),
    "SoftForestRegressor, 2 trees of 4 leaves": (
        "SoftForestRegressor",
        {"n_estimators": 2, "max_leaves": 4},
        SMALL,
    ),
    "SoftBoostingRegressor, 3 rounds": ("SoftBoostingRegressor", {"n_estimators": 3}, MIDDLE),
    "USNRTRegressor, 2 epochs": ("USNRTRegressor", NETWORK, SMALL),
    "HNNRegressor, 2 epochs": ("HNNRegressor", NETWORK, MIDDLE),
    "MCDropoutRegressor, 2 epochs, 20 draws": ("MCDropoutRegressor", {**NETWORK, "n_draws": 20}, MIDDLE),
    "BARTRegressor, 20 trees, 25 iterations": ("BARTRegressor", TREES, MIDDLE),
    "BARTClassifier, 20 trees, 25 iterations": ("BARTClassifier", TREES, MIDDLE),
    "HBARTRegressor, 20 trees, 25 iterations": ("HBARTRegressor", TREES, MIDDLE),
}


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 10))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, f + np.exp(X[:, 5]) * rng.standard_normal(n)


def peak():
    """Largest resident size of this process so far, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name):
    import boostplugins

    warnings.simplefilter("ignore")
    kind, settings, most = MODELS[name]
    make = getattr(boostplugins, kind)

    def work(rows, base):
        X, y = data(rows)
        y = (y > np.median(y)).astype(int) if "Classifier" in kind else y
        start = time.process_time()
        model = make(**settings).fit(X, y)
        fitted, fit_cpu = peak(), time.process_time() - start
        (model.predict_proba if "Classifier" in kind else model.predict_interval)(X)
        predict_cpu = time.process_time() - start - fit_cpu
        return {
            "fit": fitted - base,
            "predict": peak() - base,
            "fit_cpu": fit_cpu,
            "predict_cpu": predict_cpu,
        }

    work(300, 0.0)  # imports, and compiles
    base = peak()
    for n in (SMALL, MIDDLE, LARGE):
        if n <= most:
            print("ROW " + json.dumps({"name": name, "n": n, **work(n, base)}), flush=True)


def run(name):
    done = subprocess.run(
        [sys.executable, __file__, "--measure", name],
        env=os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    rows = [json.loads(line[4:]) for line in done.stdout.splitlines() if line.startswith("ROW ")]
    if done.returncode:
        print(name, (done.stderr.splitlines() or ["killed"])[-1], flush=True)
    return rows


def table(rows):
    packages = ("boostplugins", "numpy", "numba", "catboost", "lightgbm")
    versions = ", ".join(f"{name} {version_of(name)}" for name in packages)
    width = max(map(len, MODELS)) + 2
    lines = [
        __doc__.split("\n\nRun:")[0],
        "",
        f"{platform.machine()}, Python {platform.python_version()}, {versions}",
        "",
        " " * width + "     rows  data MB   fit MB  predict MB  fit CPU s  predict CPU s",
    ]
    for name in MODELS:
        for row in sorted((row for row in rows if row["name"] == name), key=lambda row: row["n"]):
            start = f"{name:{width}}{row['n']:>9}{row['n'] * 11 * 8 / 2**20:>9.1f}"
            memory = f"{row['fit']:>9.0f}{row['predict']:>12.0f}"
            lines.append(f"{start}{memory}{row['fit_cpu']:>11.1f}{row['predict_cpu']:>15.1f}")
    lines += [
        "",
        "More rows than shown are not what an estimator is meant for: time ends it, not memory.",
    ]
    return "\n".join(lines) + "\n"


def version_of(name):
    try:
        return version(name)
    except Exception:
        return "(source)"


def main(words):
    store = RESULTS / "memory.json"
    rows = json.loads(store.read_text()) if store.exists() else []
    for name in MODELS:
        if words and not any(word.lower() in name.lower() for word in words):
            continue
        rows = [held for held in rows if held["name"] != name] + run(name)
        store.write_text(json.dumps(rows, indent=1) + "\n")
        (RESULTS / "memory.txt").write_text(table(rows))
        print(name, "done", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2])
    else:
        main(sys.argv[1:])
