"""Three-arm spiral: what steers knowledge uncertainty far from the data.

The paper's synthetic experiment (three classes, nine collinear features): CatBoost's own SGLB as a
virtual and as a real ensemble, and chains of ours with as many trees, 3 seeds; then one setting changed
at a time from ten cycles of 100 (the estimators' default is 20 of 50), one seed. Out of domain: grid
points beyond radius 450. KU AUC: ROC AUC of knowledge uncertainty, test rows against those. "rings" is
the mean knowledge uncertainty, in nats, of test rows, of the grid's empty middle distance (350 to 450)
and beyond 450.

``python benchmarks/spiral.py`` writes ``results/spiral.txt`` from ``results/spiral.json`` and
``results/shift.json``, and runs what these lack; ``--stored`` takes the comparison as it is stored.
"""

from __future__ import annotations

import json
import platform
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import catboost
import lightgbm as lgb
import numpy as np
import shift
from shift_report import ORDER
from shift_tasks import Task, entropy, load_task, nine_features, score_classes, softmax

from boostplugins import CosineCycle, RandomPrior, SGLBClassifier, VirtualEnsemble

RESULTS = Path(__file__).resolve().parent / "results"
STORE = RESULTS / "spiral.json"
SEEDS = (0, 1, 2)
METHODS = "random forest|bagged LightGBM|(LightGBM|CatBoost) c?b?SGLB( \\+ prior)?"


def middle() -> np.ndarray:
    """Grid points between radius 350 and 450."""
    side = np.linspace(-600.0, 600.0, 60)
    grid = np.array(np.meshgrid(side, side)).reshape(2, -1).T
    radius = np.hypot(grid[:, 0], grid[:, 1])
    return nine_features(grid[(radius > 350.0) & (radius <= 450.0)])


def chain(task: Task, seed: int, booster: str = "lightgbm", **settings: Any) -> dict[str, float]:
    """Fit and score one estimator."""
    begin = time.process_time()
    defaults = {"n_estimators": task.n_trees, "random_state": seed, "booster": booster, "n_jobs": 1}
    settings = {**defaults, **settings}
    model = SGLBClassifier(**settings).fit(task.X["train"], task.y["train"])
    cpu = time.process_time() - begin
    read = VirtualEnsemble.from_catboost if booster == "catboost" else VirtualEnsemble.from_lightgbm

    def proba(X: np.ndarray) -> np.ndarray:
        return softmax(np.concatenate([read(one).members(X) for one in model.models_], axis=1))

    found = {part: proba(task.X[part]) for part in ("val", "test", "ood")}
    rings = [found["test"], proba(middle()), found["ood"]]
    knowledge = [float(np.mean(entropy(p.mean(axis=1)) - entropy(p).mean(axis=1))) for p in rings]
    names = ("ku_test", "ku_middle", "ku_far")
    return {
        **score_classes(task, found),
        "cpu": cpu,
        "members": rings[0].shape[1],
        **dict(zip(names, knowledge)),
    }


def varied() -> dict[str, dict[str, Any]]:
    """Settings of the rows: one changed at a time from ten cycles, with and without the prior."""

    def cycle(length: int = 100, high: float = 10.0, low: float = 1.0) -> CosineCycle:
        return CosineCycle(length=length, max_scale=high, min_scale=low)

    changes: dict[str, dict[str, Any]] = {
        "cycles of 100 (10 members)": {},
        "temperature 3": {"temperature": 3.0},
        "temperature 10": {"temperature": 10.0},
        "cycles of 50 (20; the default)": {"schedule": cycle(length=50)},
        "cycles of 200 (5 members)": {"schedule": cycle(length=200)},
        "scale 3 to 1": {"schedule": cycle(high=3.0)},
        "scale 30 to 1": {"schedule": cycle(high=30.0)},
        "scale 10 to 3": {"schedule": cycle(low=3.0)},
        "scale 1 (SGLB's), cycles kept": {"schedule": cycle(high=1.0)},
        "3 chains (30 members)": {"n_chains": 3},
        "leaves of 1 row": {"min_samples_leaf": 1},
        "leaves of 5 rows": {"min_samples_leaf": 5},
        "leaves of 100 rows": {"min_samples_leaf": 100},
        "no shrinkage": {"shrink": 0.0},
        "structure noise 1": {"structure_noise": 1.0},
        "one draw, structure and leaves": {"booster_params": {"leaf_noise": "shared"}},
    }
    rows = {}
    for name, change in changes.items():
        for prior, mark in ((None, "-"), ("auto", "p")):
            rows[f"{mark} {name}"] = {"schedule": cycle(), "prior": prior, **change}
    for left in (0.1, 0.2, 0.8):
        rows[f"p in-domain cost {left:g}"] = {"schedule": cycle(), "prior": RandomPrior(in_domain=left)}
    return rows


def line(name: str, runs: list[dict[str, float]]) -> str:
    """One row of a table: means over runs."""
    mean = {key: float(np.mean([run[key] for run in runs if key in run])) for run in runs for key in run}
    rings = "/".join(f"{mean.get(key, np.nan):.2f}" for key in ("ku_test", "ku_middle", "ku_far"))
    each = ",".join(f"{run['ku']:.2f}" for run in runs)
    return (
        f"{name:34s} {mean['ku']:7.3f} {each:>15s} {mean['tu']:7.3f} {mean['fit']:7.3f} {mean['nll']:7.3f} "
        f"{mean.get('cpu', np.nan):7.1f} {'' if 'nan' in rings else rings:>15s}"
    )


def main() -> None:
    """Run what is missing, print and write."""
    warnings.simplefilter("ignore")
    RESULTS.mkdir(exist_ok=True)
    if "--stored" not in sys.argv:
        shift.run(["spiral"], METHODS, list(SEEDS), again=False)
    stored = shift.read_store()["rows"]
    compared = {
        name: [stored[name][f"spiral/{seed}"] for seed in SEEDS if f"spiral/{seed}" in stored[name]]
        for name in ORDER
        if name != "kNN distance" and any(key.startswith("spiral") for key in stored.get(name, {}))
    }
    held = json.loads(STORE.read_text()) if STORE.exists() else {}
    task = load_task("spiral", 0)
    for name, settings in varied().items():
        if name not in held:
            held[name] = chain(task, 0, **settings)
            STORE.write_text(json.dumps(held, indent=0, sort_keys=True) + "\n")
            print(line(name, [held[name]]), flush=True)
    titles = ("KU AUC", 7), ("each", 15), ("TU AUC", 7), ("acc", 7), ("nll", 7), ("CPU s", 7), ("rings", 15)
    head = " ".join([" " * 34, *(f"{title:>{width}s}" for title, width in titles)])
    text = [
        "Spiral, 1000 trees (ten real models and bags: ten times as many), one thread.",
        f"{platform.machine()} {platform.system()}, Python {platform.python_version()}; catboost "
        f"{catboost.__version__}, lightgbm {lgb.__version__}, numpy {np.__version__}",
        "",
        f"Means over seeds {SEEDS}; chains at the estimators' defaults",
        head,
        *(line(name, runs) for name, runs in compared.items()),
        "",
        "One setting changed at a time from ten cycles of 100, LightGBM cSGLB, seed 0; p: with prior",
        "functions, -: without",
        head,
        *(line(name, [held[name]]) for name in varied() if name in held),
    ]
    (RESULTS / "spiral.txt").write_text("\n".join(text) + "\n")
    print("\n".join(text))


if __name__ == "__main__":
    main()
