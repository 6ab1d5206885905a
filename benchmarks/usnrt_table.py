"""The USNRT paper's protocol on those of its data sets that are at hand, beside its published rows.

``python benchmarks/usnrt_table.py --sets naval --methods networks --seeds 0 1`` runs what is missing from
``results/usnrt_table.json``; ``--table`` writes ``results/usnrt_table.txt`` from it. One thread, CPU
seconds.

80/20 splits; 20 % of the training rows held out; Adam at 0.01 with batches of 64, at most 1000 epochs;
ECE, TCE, sharpness, RMSE and NLL times 100, in units of the target's standard deviation. One training
serves all calibrations of the same networks: each is found from what the fit held out.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import platform
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from threadpoolctl import threadpool_limits
from usnrt_report import table
from usnrt_tasks import TASKS, categories, load_task

from boostplugins import DistributionalRegressor, HBARTRegressor, Predictive
from boostplugins.estimators._networks import PairRegressor
from boostplugins.estimators.hnn import HNNRegressor
from boostplugins.estimators.mc_dropout import MCDropoutRegressor
from boostplugins.estimators.usnrt import USNRTRegressor
from boostplugins.metrics import ece, nll, sharpness, tce
from boostplugins.usnrt import pair
from boostplugins.usnrt.calibration import CALIBRATIONS, Correction, correct
from boostplugins.usnrt.encoding import TableEncoder

RESULTS = Path(__file__).resolve().parent / "results"
STORE = RESULTS / "usnrt_table.json"
MEMBERS = 5
HBART_ROWS = 2000
WIDTHS = 500  # test rows that the sharpness of a mixture is averaged over
EXACT = 1e-4  # errors below this, in units of the target's standard deviation, count as none
CACHE: Path | None = None  # folder of trained networks
Rows = dict[str, dict[str, float]]
Held = tuple[np.ndarray, np.ndarray]  # residuals and variances that a pair of networks held out


@dataclass(frozen=True)
class Split:
    """One split of one data set."""

    name: str
    X: pd.DataFrame
    y: np.ndarray
    rows: np.ndarray
    test: np.ndarray
    seed: int
    units: tuple[int, int, int]  # hidden units: 8 d, 4 d, 2 d, as far as the cap allows

    @classmethod
    def load(cls, name: str, seed: int) -> Split:
        X, y = load_task(name)
        order = np.random.default_rng(seed).permutation(len(y))
        cut = int(0.8 * len(y))
        most = TASKS[name].units
        units = tuple(min(factor * X.shape[1], most * factor // 8) for factor in (8, 4, 2))
        return cls(name, X, y, order[:cut], order[cut:], seed, units)

    def score(self, dist: Predictive, begin: float, **more: float) -> dict[str, float]:
        """The scores, times 100, in units of the target's standard deviation over the training rows."""
        y, unit = self.y[self.test], self.y[self.rows].std()
        # Quantiles of mixtures have no closed form: their widths are averaged over fewer rows.
        plain = dist.family.name == "normal" and not dist.is_mixture
        found = {
            "ece": ece(y, dist),
            "tce": tce(y, dist),
            "sharpness": sharpness(dist if plain else dist[:WIDTHS]) / unit,
            "rmse": np.sqrt(np.mean((y - dist.mean()) ** 2)) / unit,
            "nll": nll(y, dist) - np.log(unit),
            "crps": float(np.mean(dist.crps(y))) / unit,
        }
        found = {key: 100.0 * float(value) for key, value in found.items()}
        return found | {"seconds": time.process_time() - begin} | more


@contextmanager
def recorded() -> Iterator[list[Held]]:
    """Keep what every pair of a fit holds out: its residuals and variances, in the order of training."""
    held: list[Held] = []

    def keep(kind: str | None, residual: np.ndarray, variance: np.ndarray) -> Correction:
        held.append((residual, variance))
        return Correction()

    pair.correct = keep
    try:
        yield held
    finally:
        pair.correct = correct


def calibrated(model: PairRegressor, held: list[Held], kind: str | None) -> None:
    """Give a fitted model's pairs the correction of a kind of calibration."""
    rest = iter(held)
    model.members_ = [
        replace(
            member, pairs=tuple(replace(each, correction=correct(kind, *next(rest))) for each in member.pairs)
        )
        for member in model.members_
    ]


def held_scores(held: list[Held], kind: str | None) -> dict[str, float]:
    """ECE and NLL of a kind of calibration on the held-out rows alone: found on half of each leaf's rows,
    scored on the other half, both ways. What the default is chosen by.
    """
    probability, density = [], []
    for residual, variance in held:
        order = np.random.default_rng(0).permutation(len(residual))
        halves = order[::2], order[1::2]
        for fit, check in (halves, halves[::-1]):
            found = correct(kind, residual[fit], variance[fit])
            sd = np.sqrt(variance[check] * found.factor)[:, None]
            mean, width = np.array([[0.0], [1.0]]) if found.shape is None else found.shape
            theta = np.stack([sd * mean, np.maximum(sd * width, EXACT)], axis=2)
            dist = Predictive("normal", theta)
            probability.append(dist.cdf(residual[check]))
            density.append(dist.log_pdf(residual[check]))
    levels = np.arange(1, 100) / 100.0
    below = np.searchsorted(np.sort(np.concatenate(probability)), levels) / sum(map(len, probability))
    error = np.abs(below - levels).mean()
    return {"held_ece": 100.0 * float(error), "held_nll": -100.0 * float(np.concatenate(density).mean())}


def trained(split: Split, name: str, model: PairRegressor) -> tuple[PairRegressor, list[Held], float]:
    """Train, or read what an earlier run trained and `--cache` kept; what was held out; CPU seconds."""
    stem = f"{split.name}_{split.seed}_{name}_{model.n_members}".replace(" ", "_")
    path = None if CACHE is None else CACHE / f"{stem}.npz"
    if path is not None and path.exists():
        with np.load(path.with_suffix(".held.npz")) as file:
            cuts = np.cumsum(file["sizes"])[:-1]
            held = list(zip(np.split(file["residual"], cuts), np.split(file["variance"], cuts)))
            return type(model).load(path), held, float(file["seconds"])
    begin = time.process_time()
    with recorded() as held:
        model.fit(split.X.iloc[split.rows], split.y[split.rows])
    seconds = time.process_time() - begin
    if path is not None:
        model.save(path)
        residual, variance = (np.concatenate(parts) for parts in zip(*held))
        sizes = [len(part[0]) for part in held]
        arrays = {"residual": residual, "variance": variance, "sizes": sizes, "seconds": seconds}
        np.savez(path.with_suffix(".held.npz"), **arrays)
    return model, held, seconds


def network_rows(split: Split, name: str, model: PairRegressor) -> Rows:
    """Train once; score every calibration of the networks, alone and, if several, together."""
    model, held, seconds = trained(split, name, model)
    begin, members = time.process_time(), len(model.members_)
    found = {}
    for kind in CALIBRATIONS:
        calibrated(model, held, kind)
        dist = model.predict_dist(split.X.iloc[split.test])
        label = name if kind is None else f"{name} + {kind}"
        label = label if members == 1 else f"{label} x{members}"
        wrong = np.abs(dist.mean() - split.y[split.test])
        more = {
            "leaves": np.mean([len(member.pairs) for member in model.members_]),
            "exact": 100.0 * np.mean(wrong < EXACT * split.y[split.rows].std()),
        }
        found[label] = split.score(dist, begin, **more) | held_scores(held, kind) | {"seconds": seconds}
    return found


def usnrt(split: Split, members: int = 1, **params: Any) -> USNRTRegressor:
    """Our tree with the paper's sizes, as far as the cap allows."""
    return USNRTRegressor(
        members,
        split_hidden=split.units[:2],
        leaf_hidden=split.units[1:],
        calibration="scale",  # any: it is recorded, not applied
        random_state=split.seed,
        **params,
    )


def hnn(split: Split, members: int = 1) -> HNNRegressor:
    """The paper's first baseline."""
    return HNNRegressor(members, hidden=split.units[:2], calibration="scale", random_state=split.seed)


def networks(split: Split) -> Rows:
    """The tree and the plain pair of networks."""
    return network_rows(split, "USNRT", usnrt(split)) | network_rows(split, "HNN", hnn(split))


def paper_test(split: Split) -> Rows:
    """The tree grown by the paper's rule."""
    return network_rows(split, "USNRT, paper's test", usnrt(split, split_test="levene"))


def ensembles(split: Split) -> Rows:
    """Five trees, and five pairs of networks: a deep ensemble."""
    return network_rows(split, "USNRT", usnrt(split, MEMBERS)) | network_rows(
        split, "HNN", hnn(split, MEMBERS)
    )


def dropout(split: Split) -> Rows:
    """Monte Carlo dropout, smaller than the paper's [8d, 16d, 4d] and with fewer dropped units."""
    begin = time.process_time()
    model = MCDropoutRegressor(
        50, hidden=split.units[:2], dropout=0.2, max_epochs=60, patience=10, random_state=split.seed
    ).fit(split.X.iloc[split.rows], split.y[split.rows])
    return {"MC dropout": split.score(model.predict_dist(split.X.iloc[split.test]), begin)}


def forest_dist(forest: Any, inputs: np.ndarray) -> Predictive:
    """Normals by the law of total variance over trees: leaf means and leaf variances."""
    mean, second = np.zeros(len(inputs)), np.zeros(len(inputs))
    for tree in forest.estimators_:
        leaf = tree.apply(inputs)
        value = tree.tree_.value[leaf, 0, 0]
        mean += value / len(forest.estimators_)
        second += (tree.tree_.impurity[leaf] + value**2) / len(forest.estimators_)
    return Predictive("normal", np.stack([mean, np.sqrt(np.maximum(second - mean**2, 1e-16))], axis=1))


def forests(split: Split) -> Rows:
    """Extra trees and random forest: depth 6 or 12 by held-out likelihood, 50 trees, 0.7 of the features."""
    categorical = categories(split.X)
    X = split.X.astype(object) if categorical else split.X.to_numpy(np.float64)
    encoder = TableEncoder.fit(X.iloc[split.rows] if categorical else X[split.rows], categorical)
    inputs = encoder.inputs(encoder.table(X), np.float32)
    check, fit = split.rows[: len(split.rows) // 5], split.rows[len(split.rows) // 5 :]
    found = {}
    for name, kind in (("ExTra", ExtraTreesRegressor), ("RF", RandomForestRegressor)):
        begin = time.process_time()
        tried = []
        for depth in (6, 12):
            forest = kind(50, max_depth=depth, max_features=0.7, random_state=split.seed)
            forest.fit(inputs[fit], split.y[fit])
            tried.append((nll(split.y[check], forest_dist(forest, inputs[check])), depth, forest))
        best = min(tried, key=lambda found: found[0])[2]
        found[name] = split.score(forest_dist(best, inputs[split.test]), begin)
    return found


def boosted(split: Split, booster: str) -> Rows:
    """Our boosted Normal: early stopping and one factor of the spread from a fifth of the rows."""
    begin = time.process_time()
    model = DistributionalRegressor(
        "normal",
        booster=booster,
        n_estimators=400 if booster == "lightgbm" else 200,
        learning_rate=0.1,
        depth=5,
        early_stopping_rounds=30,
        validation_fraction=0.2,
        refit=False,
        calibration="scale",
        n_jobs=1,
        random_state=split.seed,
    ).fit(split.X.iloc[split.rows], split.y[split.rows])
    return {f"boosted Normal, {booster}": split.score(model.predict_dist(split.X.iloc[split.test]), begin)}


def lightgbm(split: Split) -> Rows:
    """Our distributional boosting on LightGBM."""
    return boosted(split, "lightgbm")


def catboost(split: Split) -> Rows:
    """Our distributional boosting on CatBoost."""
    return boosted(split, "catboost")


def hbart(split: Split) -> Rows:
    """HBART with a forest of the variance, trained on the first 2,000 training rows."""
    begin = time.process_time()
    rows = split.rows[:HBART_ROWS]
    model = HBARTRegressor(
        50, n_burn=150, n_draws=50, n_chains=1, variance="forest", random_state=split.seed
    ).fit(split.X.iloc[rows], split.y[rows])
    test = split.X.iloc[split.test]
    return {f"HBART, {HBART_ROWS:,} rows": split.score(model.predict_dist(test), begin)}


METHODS: dict[str, Callable[[Split], Rows]] = {
    "networks": networks,
    "forests": forests,
    "paper_test": paper_test,
    "ensembles": ensembles,
    "dropout": dropout,
    "lightgbm": lightgbm,
    "catboost": catboost,
    "hbart": hbart,
}


def machine() -> str:
    """Describe the processor and the versions."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    packages = ("boostplugins", "numba", "numpy", "scikit-learn", "lightgbm", "catboost")
    found = ", ".join(f"{package} {version(package)}" for package in packages)
    cpu = names[0] if names else platform.processor()
    return f"{cpu}, one thread; Python {platform.python_version()}, {found}"


def stored() -> dict[str, Any]:
    """What earlier runs found: set, method, seed, row."""
    return json.loads(STORE.read_text()) if STORE.exists() else {"machine": machine(), "sets": {}}


def keep(name: str, method: str, seed: int, rows: Rows) -> None:
    """Add to the store, which other runs may be writing too."""
    with open(Path(tempfile.gettempdir()) / "usnrt_table.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        held = stored()
        held["machine"] = machine()
        rounded = {label: {key: round(v, 4) for key, v in row.items()} for label, row in rows.items()}
        held["sets"].setdefault(name, {}).setdefault(method, {})[str(seed)] = rounded
        STORE.write_text(json.dumps(held, indent=1) + "\n")


def run(sets: list[str], methods: list[str], seeds: list[int], again: bool) -> None:
    """Run what is missing."""
    for seed in seeds:
        for name in sets:
            for method in methods:
                if not again and str(seed) in stored()["sets"].get(name, {}).get(method, {}):
                    continue
                begin = time.process_time()
                with warnings.catch_warnings(), threadpool_limits(1):
                    warnings.simplefilter("ignore")  # of chains too short to mix: the report says so
                    keep(name, method, seed, METHODS[method](Split.load(name, seed)))
                print(f"{name} {method} {seed}: {time.process_time() - begin:.0f} CPU s", flush=True)


def main() -> None:
    """Run and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=list(TASKS), choices=TASKS)
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=METHODS)
    parser.add_argument("--seeds", nargs="*", type=int, default=list(range(5)))
    parser.add_argument("--again", action="store_true", help="run what the store holds already, too")
    parser.add_argument("--table", action="store_true", help="only write the table")
    parser.add_argument("--cache", type=Path, help="folder that keeps networks, to score them again")
    options = parser.parse_args()
    global CACHE
    CACHE = options.cache
    if not options.table:
        run(options.sets, options.methods, options.seeds, options.again)
    text = table(stored())
    print(text)
    (RESULTS / "usnrt_table.txt").write_text(text)


if __name__ == "__main__":
    main()
