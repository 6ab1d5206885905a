"""What `shift.py` compares: chains of ours and their peers, each a function of a task and a seed."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import catboost
import lightgbm as lgb
import numpy as np
from shift_tasks import Task, score_classes, score_means, softmax
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

PARTS = ("val", "test", "ood")
RATES = (0.01, 0.03, 0.1)
TEMPERATURES = (1.0, 3.0, 10.0, 30.0)
HESSBOOST = "BOOSTPLUGINS_HESSBOOST_PYTHON"  # names the interpreter that has hessboost
Rows = dict[str, dict[str, float]]  # one method may give several rows
Raw = dict[str, np.ndarray]


def parts_of(task: Task, members: Callable[[np.ndarray], np.ndarray]) -> Raw:
    """Predict validation, test and shifted rows."""
    return {part: members(task.X[part]) for part in PARTS}


def forest(task: Task, seed: int) -> Rows:
    """200 trees with leaves of at least 5 rows; each tree is a member."""
    kind = RandomForestClassifier if task.n_classes else RandomForestRegressor
    begin = time.process_time()
    model = kind(200, min_samples_leaf=5, random_state=seed, n_jobs=1).fit(task.X["train"], task.y["train"])
    cpu = time.process_time() - begin
    if task.n_classes:
        found = parts_of(task, lambda X: np.stack([t.predict_proba(X) for t in model.estimators_], axis=1))
        return {"random forest": {**score_classes(task, found), "cpu": cpu}}
    found = parts_of(task, lambda X: np.stack([t.predict(X) for t in model.estimators_], axis=1))
    return {"random forest": {**score_means(task, found, None), "cpu": cpu}}


def bagging(task: Task, seed: int) -> Rows:
    """Ten LightGBM models on bootstrap samples, stopped early on the validation rows."""
    params: dict[str, Any] = {"learning_rate": 0.05, "num_leaves": 31, "num_threads": 1, "verbosity": -1}
    params |= (
        {"objective": "multiclass", "num_class": task.n_classes} if task.n_classes else {"objective": "l2"}
    )
    rng = np.random.default_rng(seed)
    models = []
    begin = time.process_time()
    for model in range(10):
        rows = rng.integers(0, len(task.y["train"]), len(task.y["train"]))
        data = lgb.Dataset(task.X["train"][rows], task.y["train"][rows])
        valid = data.create_valid(task.X["val"], task.y["val"])
        stop = [lgb.early_stopping(50, verbose=False)]
        models.append(lgb.train(params | {"seed": model}, data, 1000, valid_sets=[valid], callbacks=stop))
    cpu = time.process_time() - begin
    found = parts_of(task, lambda X: np.stack([m.predict(X) for m in models], axis=1))
    scored = score_classes(task, found) if task.n_classes else score_means(task, found, None)
    return {"bagged LightGBM": {**scored, "cpu": cpu}}


def distance(task: Task, seed: int) -> Rows:
    """Mean distance to ten standardised training rows: no model, a reference for the ranking."""
    mean, spread = np.nanmean(task.X["train"], axis=0), np.nanstd(task.X["train"], axis=0)
    spread[spread == 0] = 1.0
    near = NearestNeighbors(n_neighbors=10).fit(np.nan_to_num((task.X["train"] - mean) / spread))
    found = parts_of(task, lambda X: near.kneighbors(np.nan_to_num((X - mean) / spread))[0].mean(axis=1))
    return {"kNN distance": {"ku": ood_auc(found["test"], found["ood"])}}


def _on_validation(task: Task) -> Task:
    """The task whose test rows are the validation rows: to choose settings by."""
    X = {"val": task.X["val"], "test": task.X["val"], "ood": task.X["ood"]}
    return Task(X, {**task.y, "test": task.y["val"]}, task.n_classes, task.n_trees)


def _chosen(task: Task, raw: dict[float, Raw], score: Callable[[Task, Raw], dict[str, float]]) -> float:
    """Setting with the best validation log score."""
    held = _on_validation(task)
    return min(raw, key=lambda key: score(held, {**raw[key], "test": raw[key]["val"]})["nll"])


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


def _score_variances(task: Task, raw: Raw) -> dict[str, float]:
    """Score CatBoost's virtual members: the second of two outputs is a variance."""
    if task.n_classes:
        return score_classes(task, {part: softmax(r) for part, r in raw.items()})
    spread = {part: r[..., 1].mean(axis=1) for part, r in raw.items()}
    return score_means(task, {part: r[..., 0] for part, r in raw.items()}, spread)


def score_raw(task: Task, raw: Raw) -> dict[str, float]:
    """Score members' raw scores, (n, M, K); the second of two in regression is a log standard deviation."""
    if task.n_classes:
        return score_classes(task, {part: softmax(r) for part, r in raw.items()})
    spread = {part: np.exp(2 * r[..., 1]).mean(axis=1) for part, r in raw.items() if r.shape[2] == 2}
    return score_means(task, {part: r[..., 0] for part, r in raw.items()}, spread or None)


def catboost_own(task: Task, seed: int) -> Rows:
    """CatBoost's own SGLB: ten virtual members, and ten real models with their learning rate."""
    models, raw, cpu = {}, {}, {}
    for rate in RATES:
        begin = time.process_time()
        model = models[rate] = _catboost(task, rate, seed)
        cpu[rate] = time.process_time() - begin
        raw[rate] = parts_of(
            task,
            lambda X, model=model: model.virtual_ensembles_predict(
                X, prediction_type="VirtEnsembles", virtual_ensembles_count=10, thread_count=1
            ),
        )
    best = _chosen(task, raw, _score_variances)
    begin = time.process_time()
    ten = [models[best], *(_catboost(task, best, 100 * seed + k) for k in range(1, 10))]
    ten_cpu = time.process_time() - begin + cpu[best]
    last = parts_of(task, lambda X: np.stack([m.predict(X, thread_count=1) for m in ten], axis=1))
    return {
        "CatBoost's own SGLB, virtual": {**_score_variances(task, raw[best]), "cpu": cpu[best]},
        "CatBoost's own SGLB, 10 real": {**score_raw(task, last), "cpu": ten_cpu},
    }


def catboost_kgb(task: Task, seed: int) -> Rows:
    """CatBoost's Gaussian process sampler, ten samples; squared error only."""
    if task.n_classes:
        return {}
    begin = time.process_time()
    models = catboost.sample_gaussian_process(task.X["train"], task.y["train"], samples=10, random_seed=seed)
    cpu = time.process_time() - begin
    found = parts_of(task, lambda X: np.stack([m.predict(X, thread_count=1) for m in models], axis=1))
    return {"CatBoost KGB, 10 samples": {**score_means(task, found, None), "cpu": cpu}}


def _hessboost(task: Task, members: int, params: dict[str, Any]) -> tuple[Raw, float]:
    with tempfile.TemporaryDirectory() as folder:
        data, settings, out = (Path(folder) / name for name in ("data.npz", "settings.json", "out.npz"))
        arrays = {f"X_{part}": task.X[part] for part in ("train", *PARTS)}
        np.savez(data, y_train=task.y["train"], **arrays)
        asked = {"n_classes": task.n_classes, "rounds": task.n_trees, "members": members, "params": params}
        settings.write_text(json.dumps(asked))
        script = Path(__file__).with_name("shift_hessboost.py")
        command = [os.environ[HESSBOOST], str(script), str(data), str(settings), str(out)]
        subprocess.run(command, check=True, cwd=folder)
        with np.load(out) as found:
            return {part: found[part].astype(np.float64) for part in PARTS}, float(found["cpu"])


def hessboost(task: Task, seed: int) -> Rows:
    """hessboost's SGLB: learning rate of its sampler, or temperature of plain Langevin noise, chosen."""
    if HESSBOOST not in os.environ:
        print(f"hessboost is left out: {HESSBOOST} names no interpreter that has it", flush=True)
        return {}
    sampler = {
        rate: _hessboost(task, 10, {"posterior_sampling": True, "eta": rate, "seed": seed}) for rate in RATES
    }
    langevin = {"langevin": True, "eta": 0.1, "model_shrink_rate": 1.0 / (2 * len(task.y["train"]))}
    hot = {
        beta: _hessboost(task, 10, {**langevin, "diffusion_temperature": beta, "seed": seed})
        for beta in TEMPERATURES
    }
    rows = {}
    for name, runs in (("posterior sampling", sampler), ("SGLB", hot)):
        best = _chosen(task, {key: raw for key, (raw, _) in runs.items()}, score_raw)
        raw, cpu = runs[best]
        rows[f"hessboost {name}, virtual"] = {**score_raw(task, raw), "cpu": cpu}
    ten = [
        _hessboost(task, 0, {**langevin, "diffusion_temperature": best, "seed": 100 * seed + k})
        for k in range(10)
    ]
    raw = {part: np.concatenate([one[part] for one, _ in ten], axis=1) for part in PARTS}
    rows["hessboost SGLB, 10 real"] = {**score_raw(task, raw), "cpu": sum(cpu for _, cpu in ten)}
    return rows


def chain(
    booster: str, kind: str, prior: bool, n_chains: int, normal: bool = False, cost: float = 0.4
) -> Callable[..., Rows]:
    """Make the method of a chain of ours; `cost` is the prior's `in_domain`.

    Several chains give two rows: the first chain of several is the one chain of the same seed.
    """

    def run(task: Task, seed: int) -> Rows:
        if normal and task.n_classes:
            return {}
        settings: dict[str, Any] = {
            "booster": booster,
            "schedule": Constant() if kind == "SGLB" else None,
            "prior": RandomPrior(in_domain=cost) if prior else None,
            "n_estimators": task.n_trees,
            "n_chains": n_chains,
            "n_jobs": 1,
            "random_state": seed,
        }
        if kind == "cbSGLB":
            settings["schedule"] = CosineCycle(length=min(task.n_trees // 10, 50), exploration=0.9)
            settings["mask"] = BernoulliMask(0.66, random_state=seed)
        if not task.n_classes:
            settings["loss"] = "normal" if normal else "squared_error"
        begin = time.process_time()
        model = (SGLBClassifier if task.n_classes else SGLBRegressor)(**settings)
        model.fit(task.X["train"], task.y["train"])
        cpu = time.process_time() - begin
        read = VirtualEnsemble.from_catboost if booster == "catboost" else VirtualEnsemble.from_lightgbm
        chains = [parts_of(task, read(one).members) for one in model.models_]
        name = chain_name(booster, kind, prior, normal)
        rows = {name: {**score_raw(task, chains[0]), "cpu": cpu / n_chains}}
        if n_chains > 1:
            raw = {part: np.concatenate([one[part] for one in chains], axis=1) for part in PARTS}
            rows[f"{name}, {n_chains} chains"] = {**score_raw(task, raw), "cpu": cpu}
        return rows

    return run


def chain_name(booster: str, kind: str, prior: bool, normal: bool = False) -> str:
    """Name of a row."""
    brand = "CatBoost" if booster == "catboost" else "LightGBM"
    return f"{brand} {kind}{' normal' if normal else ''}{' + prior' if prior else ''}"


def _chains() -> dict[str, Callable[..., Rows]]:
    found = {}
    for booster in ("lightgbm", "catboost"):
        forms = [(kind, prior, False) for kind in ("SGLB", "cSGLB", "cbSGLB") for prior in (False, True)]
        forms += [("cSGLB", False, True), ("cSGLB", True, True)]
        for kind, prior, normal in forms:
            name = chain_name(booster, kind, prior, normal)
            # Three chains first: they give the row of one, too.
            found[f"{name}, 3 chains"] = chain(booster, kind, prior, 3, normal)
            found[name] = chain(booster, kind, prior, 1, normal)
    return found


METHODS: dict[str, Callable[..., Rows]] = {
    "kNN distance": distance,
    "random forest": forest,
    "bagged LightGBM": bagging,
    "CatBoost's own SGLB": catboost_own,
    "CatBoost KGB": catboost_kgb,
    "hessboost": hessboost,
    **_chains(),
}
