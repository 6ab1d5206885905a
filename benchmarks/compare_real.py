"""`compare` on four real data sets of different kinds: regression, counts, a skewed target, classes.

Each has rows of another kind, held out, on which knowledge uncertainty should rise. Models have their
default settings, one thread, five folds (three for counts and classes). Needs the staged data. Beside
each text, the tidy table is written as CSV, which the README takes its figures from.

    python benchmarks/compare_real.py                  # all four, some minutes
    python benchmarks/compare_real.py concrete         # one
    python benchmarks/compare_real.py --fits FOLDER    # a broken run goes on
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import argparse
import platform
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsRestClassifier

from boostplugins import BARTClassifier
from boostplugins.compare import compare, summary
from boostplugins.datasets import load_staged

RESULTS = Path(__file__).parent / "results"
LIBRARIES = ("catboost", "lightgbm", "scikit-learn", "numba", "numpy")
COMMON = [
    "sglb-catboost", "sglb-lightgbm", "sglb-normal", "distributional", "distributional-catboost",
]  # fmt: skip
PAIRED = ["log_score", "crps", "brier", "rmse", "accuracy", "coverage_90", "width_90", "ece", "prr", "ku_auc"]
_HEAD = 4  # lines of a text that say what was run on what
OTHERS = [
    "soft-tree", "soft-forest", "soft-boosting", "usnrt", "usnrt-ensemble", "deep-ensemble", "mc-dropout",
    "hbart", "bart", "linear", "random-forest",
]  # fmt: skip


class Task(NamedTuple):
    """A data set: what it is, its rows and responses, the mask of shifted rows, and the models."""

    title: str
    load: Callable[[], tuple[pd.DataFrame, pd.Series, np.ndarray]]
    models: list[str]
    folds: int = 5
    classification: bool = False


def _concrete() -> tuple[pd.DataFrame, pd.Series, np.ndarray]:
    X, y, *_ = load_staged("concrete")
    return X, y, (X["age"] > 90).to_numpy()


def _bike() -> tuple[pd.DataFrame, pd.Series, np.ndarray]:
    X, y, *_ = load_staged("bike_hour")
    rows = np.random.default_rng(0).choice(len(y), 2000, replace=False)
    X, y = X.iloc[rows], y.iloc[rows]
    hot = (X["season"] == 3).to_numpy()
    return X.drop(columns=["season", "mnth"]), y, hot


def _rent() -> tuple[pd.DataFrame, pd.Series, np.ndarray]:
    X, y, *_ = load_staged("rent99")
    return X.drop(columns="district"), y, (X["area"] > 100).to_numpy()


def _covtype() -> tuple[pd.DataFrame, pd.Series, np.ndarray]:
    X, y, *_ = load_staged("covtype20k")
    rng, fourth = np.random.default_rng(0), (X["wilderness_area"] == 4).to_numpy()
    seen = rng.choice(np.flatnonzero(~fourth), 3000, replace=False)
    rows = np.concatenate([seen, rng.choice(np.flatnonzero(fourth), 600, replace=False)])
    X = X.iloc[rows].drop(columns="wilderness_area")
    X["soil_type"] = X["soil_type"].astype(int).astype(str).astype("category")
    return X, y.iloc[rows], fourth[rows]


TASKS = {
    "concrete": Task(
        "compressive strength of concrete; shifted: older than 90 days", _concrete, COMMON + OTHERS
    ),
    "bike_hour": Task(
        "rented bicycles an hour, 2000 hours of 17379; shifted: summer (no column names season or month)",
        _bike,
        [*COMMON[:4], "family:negative_binomial", "family:poisson", *OTHERS],
        folds=3,
    ),
    "rent99": Task(
        "Munich rents, skewed; shifted: more than 100 square metres",
        _rent,
        [*COMMON[:4], "family:gamma", "family:lognormal", *OTHERS],
    ),
    "covtype20k": Task(
        "forest cover, 6 classes in 3000 rows of areas 1 to 3; shifted: 600 rows of wilderness area 4",
        _covtype,
        ["sglb-catboost", "sglb-lightgbm", "soft-tree", "bart", "logistic", "random-forest"],
        folds=3,
        classification=True,
    ),
}  # fmt: skip


def run(name: str, fits: Path, quick: bool) -> str:
    """Compare on one data set and write the table."""
    task = TASKS[name]
    X, y, shift = task.load()
    task_name = "classification" if task.classification else "regression"
    options: dict[str, Any] = {"task": task_name, "quick": quick}
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # short chains and few iterations, on purpose
        if not (fits / name).is_dir():  # compile first, so that the clock sees fits only
            few = np.random.default_rng(0).permutation(np.flatnonzero(~shift))[:120]
            compare(_models(task), X.iloc[few], y.iloc[few], cv=2, task=task_name, quick=True)
        table = compare(
            _models(task), X, y, cv=task.folds, shift=shift, results=fits / name, verbose=True, **options
        )
    table.to_csv(RESULTS / f"compare_{name}.csv", index=False, float_format="%.9g")
    libraries = ", ".join(f"{library} {version(library)}" for library in ("boostplugins", *LIBRARIES))
    head = [
        f"{name}: {task.title}",
        f"{int((~shift).sum())} rows in {task.folds} folds, {int(shift.sum())} shifted; quick={quick}",
        f"Python {platform.python_version()}, {libraries}",
        f"{platform.machine()}, {os.cpu_count()} cores, one thread, CPU seconds; "
        f"{time.process_time() - started:.0f} s in all",
    ]
    return _text(head, table)


def retell(name: str) -> str:
    """Write the text again from the table kept as CSV, without a fit."""
    head = (RESULTS / f"compare_{name}.txt").read_text().splitlines()[:_HEAD]
    table = pd.read_csv(RESULTS / f"compare_{name}.csv")
    order = {model: number for number, model in enumerate(TASKS[name].models)}
    return _text(head, table.sort_values("model", key=lambda models: models.map(order), kind="stable"))


def _text(head: list[str], table: pd.DataFrame) -> str:
    short = summary(table)
    errors = short.pop("error") if "error" in short else pd.Series(dtype=object)
    paired = [metric for metric in PAIRED if metric in short]
    lines = [
        *head,
        "Means ± standard errors (Nadeau and Bengio); * differs from the first model by more than two.",
        "",
        _columns(short),
        "",
        f"Paired differences from {table['model'].iloc[0]} over the same folds ± standard errors:",
        summary(table, paired, differences=True).drop(columns="error", errors="ignore").to_string(),
        *(f"{model}: {text}" for model, text in errors.items() if text),
    ]
    return "\n".join(lines) + "\n"


def _models(task: Task) -> dict[str, Any]:
    """Models by name; BART knows two classes, so that more go through scikit-learn's one against the rest."""
    models: dict[str, Any] = {name: name for name in task.models}
    if task.classification:
        models["bart"] = OneVsRestClassifier(BARTClassifier(random_state=0))
    return models


def _columns(short: pd.DataFrame) -> str:
    """Two blocks of columns, so that lines stay readable."""
    half = (short.shape[1] + 1) // 2
    return "\n\n".join(part.to_string() for part in (short.iloc[:, :half], short.iloc[:, half:]))


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(TASKS), help=", ".join(TASKS))
    parser.add_argument(
        "--fits", type=Path, default=Path(tempfile.gettempdir()) / "boostplugins-compare-fits"
    )
    parser.add_argument("--quick", action="store_true", help="small models, for a first look")
    parser.add_argument(
        "--retell", action="store_true", help="texts again from the tables kept, without fits"
    )
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    for name in options.names:
        text = retell(name) if options.retell else run(name, options.fits, options.quick)
        (RESULTS / f"compare_{name}.txt").write_text(text)
        print(text)


if __name__ == "__main__":
    main()
