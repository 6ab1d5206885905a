"""Knowledge uncertainty under shift: six tasks, three seeds, chains of ours and their peers.

``python benchmarks/shift.py --tasks covtype gas --methods "LightGBM cSGLB"`` runs what is missing from
``results/shift.json``; ``--table`` writes ``results/shift.txt`` from it. One thread, CPU seconds.

KU AUC: ROC AUC of knowledge uncertainty, in-domain test rows against shifted rows. Learning rates of
CatBoost's own SGLB are chosen by the validation log score. The chains are not tuned: the
estimators' defaults (temperature 1), with as many trees as the peers'.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import platform
import re
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import catboost
import lightgbm as lgb
import numpy as np
import sklearn
from shift_tasks import TASKS, Task, load_task, score_classes, score_means, softmax
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.neighbors import NearestNeighbors

from boostplugins import (
    BernoulliMask,
    Constant,
    CosineCycle,
    RandomPrior,
    SGLBClassifier,
    SGLBRegressor,
    VirtualEnsemble,
)
from boostplugins.metrics import ood_auc

RESULTS = Path(__file__).resolve().parent / "results"
STORE = RESULTS / "shift.json"
SEEDS = (0, 1, 2)
PARTS = ("val", "test", "ood")
RATES = (0.01, 0.03, 0.1)
Rows = dict[str, dict[str, float]]  # one method may give several rows


def _parts(task: Task, members: Callable[[np.ndarray], np.ndarray]) -> dict[str, np.ndarray]:
    return {part: members(task.X[part]) for part in PARTS}


def forest(task: Task, seed: int) -> Rows:
    """200 trees with leaves of at least 5 rows; each tree is a member."""
    kind = RandomForestClassifier if task.n_classes else RandomForestRegressor
    model = kind(200, min_samples_leaf=5, random_state=seed, n_jobs=1).fit(task.X["train"], task.y["train"])
    if task.n_classes:
        found = _parts(task, lambda X: np.stack([t.predict_proba(X) for t in model.estimators_], axis=1))
        return {"random forest": score_classes(task, found)}
    found = _parts(task, lambda X: np.stack([t.predict(X) for t in model.estimators_], axis=1))
    return {"random forest": score_means(task, found, None)}


def bagging(task: Task, seed: int) -> Rows:
    """Ten LightGBM models on bootstrap samples, stopped early on the validation rows."""
    params: dict[str, Any] = {"learning_rate": 0.05, "num_leaves": 31, "num_threads": 1, "verbosity": -1}
    params |= (
        {"objective": "multiclass", "num_class": task.n_classes} if task.n_classes else {"objective": "l2"}
    )
    rng = np.random.default_rng(seed)
    models = []
    for model in range(10):
        rows = rng.integers(0, len(task.y["train"]), len(task.y["train"]))
        data = lgb.Dataset(task.X["train"][rows], task.y["train"][rows])
        valid = data.create_valid(task.X["val"], task.y["val"])
        stop = [lgb.early_stopping(50, verbose=False)]
        models.append(lgb.train(params | {"seed": model}, data, 1000, valid_sets=[valid], callbacks=stop))
    found = _parts(task, lambda X: np.stack([m.predict(X) for m in models], axis=1))
    if task.n_classes:
        return {"bagged LightGBM": score_classes(task, found)}
    return {"bagged LightGBM": score_means(task, found, None)}


def distance(task: Task, seed: int) -> Rows:
    """Mean distance to ten standardised training rows: no model, a reference for the ranking."""
    mean, spread = np.nanmean(task.X["train"], axis=0), np.nanstd(task.X["train"], axis=0)
    spread[spread == 0] = 1.0
    near = NearestNeighbors(n_neighbors=10).fit(np.nan_to_num((task.X["train"] - mean) / spread))
    found = _parts(task, lambda X: near.kneighbors(np.nan_to_num((X - mean) / spread))[0].mean(axis=1))
    return {"kNN distance": {"ku": ood_auc(found["test"], found["ood"])}}


def _catboost(task: Task, rate: float, seed: int) -> Any:
    loss = "MultiClass" if task.n_classes else "RMSEWithUncertainty"
    params = {
        "loss_function": loss,
        "iterations": task.n_trees,
        "learning_rate": rate,
        "depth": 6,
        "border_count": 128,
        "random_strength": 100,
        "bootstrap_type": "No",
        "posterior_sampling": True,
        "random_seed": seed,
        "thread_count": 1,
        "verbose": False,
        "allow_writing_files": False,
    }
    return catboost.CatBoost(params).fit(task.X["train"], task.y["train"])


def _score_catboost(task: Task, raw: dict[str, np.ndarray], variances: bool) -> dict[str, float]:
    """Raw scores (n, M, K); the second of two is a variance, or its logarithm halved."""
    if task.n_classes:
        return score_classes(task, {part: softmax(r) for part, r in raw.items()})
    spread = {
        part: (r[..., 1] if variances else np.exp(2 * r[..., 1])).mean(axis=1) for part, r in raw.items()
    }
    return score_means(task, {part: r[..., 0] for part, r in raw.items()}, spread)


def catboost_sglb(task: Task, seed: int) -> Rows:
    """CatBoost's own SGLB: ten virtual members, and ten real models with their learning rate."""
    scores, models = {}, {}
    for rate in RATES:
        model = _catboost(task, rate, seed)
        raw = _parts(
            task,
            lambda X, model=model: model.virtual_ensembles_predict(
                X, prediction_type="VirtEnsembles", virtual_ensembles_count=10, thread_count=1
            ),
        )
        models[rate], scores[rate] = model, _score_catboost(task, raw, variances=True)
        held = Task(
            {"val": task.X["val"], "test": task.X["val"], "ood": task.X["ood"]},
            {**task.y, "test": task.y["val"]},
            task.n_classes,
            task.n_trees,
        )
        scores[rate]["chosen"] = _score_catboost(held, {**raw, "test": raw["val"]}, variances=True)["nll"]
    best = min(RATES, key=lambda rate: scores[rate]["chosen"])
    begin = time.process_time()
    ten = [models[best], *(_catboost(task, best, 100 * seed + k) for k in range(1, 10))]
    raw = _parts(task, lambda X: np.stack([m.predict(X, thread_count=1) for m in ten], axis=1))
    real = {**_score_catboost(task, raw, variances=False), "cpu": time.process_time() - begin}
    return {"CatBoost SGLB, virtual": scores[best], "CatBoost SGLB, 10 real": real}


def catboost_kgb(task: Task, seed: int) -> Rows:
    """CatBoost's Gaussian process sampler, ten samples; squared error only."""
    if task.n_classes:
        return {}
    models = catboost.sample_gaussian_process(task.X["train"], task.y["train"], samples=10, random_seed=seed)
    found = _parts(task, lambda X: np.stack([m.predict(X, thread_count=1) for m in models], axis=1))
    return {"CatBoost KGB, 10 samples": score_means(task, found, None)}


def chain(
    booster: str, kind: str, prior: bool, n_chains: int, normal: bool = False, cost: float = 0.4
) -> Callable[..., Rows]:
    """Make the method of a chain of ours; `cost` is the prior's `in_domain`."""

    def run(task: Task, seed: int) -> Rows:
        if normal and task.n_classes:
            return {}
        length = task.n_trees // 10
        schedule = {
            "SGLB": Constant(),
            "cSGLB": None,
            "cbSGLB": CosineCycle(length=length, max_scale=10.0, min_scale=1.0, exploration=0.9),
        }[kind]
        settings: dict[str, Any] = {
            "booster": booster,
            "schedule": schedule,
            "mask": BernoulliMask(0.66, random_state=seed) if kind == "cbSGLB" else None,
            "prior": RandomPrior(in_domain=cost) if prior else None,
            "n_estimators": task.n_trees,
            "n_chains": n_chains,
            "n_jobs": 1,
            "random_state": seed,
        }
        if not task.n_classes:
            settings["loss"] = "normal" if normal else "squared_error"
        begin = time.process_time()
        model = (SGLBClassifier if task.n_classes else SGLBRegressor)(**settings)
        model.fit(task.X["train"], task.y["train"])
        cpu = (time.process_time() - begin) / n_chains
        read = VirtualEnsemble.from_catboost if booster == "catboost" else VirtualEnsemble.from_lightgbm
        chains = [_parts(task, read(one).members) for one in model.models_]
        brand = "CatBoost" if booster == "catboost" else "LightGBM"
        name = f"{brand} {kind}{' normal' if normal else ''}{' + prior' if prior else ''}"
        if n_chains > 1:
            name += f", {n_chains} chains"
        return {name: {**_score_chain(task, chains), "cpu": n_chains * cpu}}

    return run


def _score_chain(task: Task, chains: list[dict[str, np.ndarray]]) -> dict[str, float]:
    raw = {part: np.concatenate([one[part] for one in chains], axis=1) for part in PARTS}
    if task.n_classes:
        return score_classes(task, {part: softmax(r) for part, r in raw.items()})
    spread = {part: np.exp(2 * r[..., 1]).mean(axis=1) for part, r in raw.items() if r.shape[2] == 2}
    return score_means(task, {part: r[..., 0] for part, r in raw.items()}, spread or None)


METHODS: dict[str, Callable[..., Rows]] = {
    "kNN distance": distance,
    "random forest": forest,
    "bagged LightGBM": bagging,
    "CatBoost SGLB": catboost_sglb,
    "CatBoost KGB": catboost_kgb,
    "LightGBM SGLB": chain("lightgbm", "SGLB", False, 1),
    "LightGBM SGLB + prior": chain("lightgbm", "SGLB", True, 1),
    "LightGBM cSGLB": chain("lightgbm", "cSGLB", False, 1),
    "LightGBM cSGLB + prior": chain("lightgbm", "cSGLB", True, 1),
    "LightGBM cbSGLB": chain("lightgbm", "cbSGLB", False, 1),
    "LightGBM cbSGLB + prior": chain("lightgbm", "cbSGLB", True, 1),
    "LightGBM cSGLB normal": chain("lightgbm", "cSGLB", False, 1, normal=True),
    "LightGBM cSGLB normal + prior": chain("lightgbm", "cSGLB", True, 1, normal=True),
    "LightGBM cSGLB, 3 chains": chain("lightgbm", "cSGLB", False, 3),
    "LightGBM cSGLB + prior, 3 chains": chain("lightgbm", "cSGLB", True, 3),
    "LightGBM cSGLB normal + prior, 3 chains": chain("lightgbm", "cSGLB", True, 3, normal=True),
    "LightGBM SGLB + prior, 3 chains": chain("lightgbm", "SGLB", True, 3),
    "CatBoost cSGLB": chain("catboost", "cSGLB", False, 1),
    "CatBoost cSGLB + prior": chain("catboost", "cSGLB", True, 1),
    "CatBoost cSGLB normal + prior": chain("catboost", "cSGLB", True, 1, normal=True),
    "CatBoost SGLB of ours": chain("catboost", "SGLB", False, 1),
    "CatBoost SGLB of ours + prior": chain("catboost", "SGLB", True, 1),
    "CatBoost cbSGLB": chain("catboost", "cbSGLB", False, 1),
    "CatBoost cbSGLB + prior": chain("catboost", "cbSGLB", True, 1),
}


def _update(change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Read, change and write the store; several processes may run."""
    RESULTS.mkdir(exist_ok=True)
    with (Path(tempfile.gettempdir()) / "boostplugins-shift.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        held = json.loads(STORE.read_text()) if STORE.exists() else {}
        change(held)
        STORE.write_text(json.dumps(held, indent=0, sort_keys=True) + "\n")
    return held


def read_store() -> dict[str, Any]:
    """Read what is stored: rows by method and task/seed."""
    return _update(lambda held: None)


def run(tasks: list[str], methods: str, seeds: list[int], again: bool) -> None:
    """Run what the store lacks."""
    for seed in seeds:
        for name in tasks:
            task = load_task(name, seed)
            for method, function in METHODS.items():
                done = read_store().get("done", {}).get(f"{name}/{seed}", {})
                if not re.fullmatch(methods, method) or (method in done and not again):
                    continue
                begin = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    rows = function(task, seed)
                cpu = time.process_time() - begin

                def change(
                    held: dict[str, Any], rows=rows, cpu=cpu, key=f"{name}/{seed}", method=method
                ) -> None:
                    held.setdefault("done", {}).setdefault(key, {})[method] = cpu
                    for row, values in rows.items():
                        kept = {k: round(float(v), 5) for k, v in ({"cpu": cpu} | values).items()}
                        held.setdefault("rows", {}).setdefault(row, {})[key] = kept

                _update(change)
                for row, values in rows.items():
                    shown = " ".join(f"{key} {value:.3f}" for key, value in values.items())
                    print(f"{name:8s} {seed} {row:40s} {shown}", flush=True)


def table() -> str:
    """Means over seeds, with what ran."""
    rows = read_store()["rows"]
    lines = [
        "Six tasks, means over seeds (their number after a slash where not 3); chains at defaults.",
        f"{platform.machine()} {platform.system()}, Python {platform.python_version()}, one thread; "
        f"catboost {catboost.__version__}, lightgbm {lgb.__version__}, scikit-learn {sklearn.__version__}, "
        f"numpy {np.__version__}",
    ]
    for title, keys, digits in (
        ("KU AUC", ("ku",), 3),
        ("accuracy or RMSE; negative log score; CPU s", ("fit", "nll", "cpu"), 3),
        ("TU AUC / PRR by TU / PRR by KU", ("tu", "prr_tu", "prr_ku"), 3),
    ):
        width = 10 if len(keys) == 1 else 20
        extra = f"{'mean':>8s}" if keys == ("ku",) else ""
        lines += ["", f"{title:40s}" + "".join(f"{name:>{width}s}" for name in TASKS) + extra]
        for row in rows:
            cells, means = [], []
            for name in TASKS:
                found = [rows[row][f"{name}/{s}"] for s in SEEDS if f"{name}/{s}" in rows[row]]
                values = [
                    float(np.mean([one.get(key, np.nan) for one in found])) if found else np.nan
                    for key in keys
                ]
                cell = " ".join(
                    "-" if np.isnan(v) else f"{v:.1f}" if key == "cpu" else f"{v:.{digits}f}"
                    for key, v in zip(keys, values)
                )
                cells.append(f"{cell + (f'/{len(found)}' if 0 < len(found) < 3 else ''):>{width}s}")
                means.append(values[0])
            extra = (
                ""
                if keys != ("ku",)
                else f"{np.mean(means):8.3f}"
                if np.all(np.isfinite(means))
                else f"{'-':>8s}"
            )
            lines.append(f"{row:40s}" + "".join(cells) + extra)
    return "\n".join(lines) + "\n"


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=TASKS)
    parser.add_argument("--methods", default=".*", help="regular expression of whole names")
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--again", action="store_true", help="run what the store holds already, too")
    parser.add_argument("--table", action="store_true", help="only write the table")
    options = parser.parse_args()
    if not options.table:
        run(options.tasks, options.methods, options.seeds, options.again)
    text = table()
    print(text)
    (RESULTS / "shift.txt").write_text(text)


if __name__ == "__main__":
    main()
