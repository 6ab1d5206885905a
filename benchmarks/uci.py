# ruff: noqa: E501 (rows of tables)
"""UCI-9 on the published splits: log score, CRPS and RMSE of DistributionalRegressor.

One setting for all data sets and both boosters, chosen on held-out parts of the training rows of
split 0 of the small sets: five cross-fitted models, each stopped early on the fold that it has not
seen, their mixture recalibrated by one factor. Test rows are used once, to score.

The published splits are 20, of protein 5; a row says how many were run. Rows of data sets that are
not named by --data are kept from earlier runs of the same setting.

Run: python benchmarks/uci.py [--booster lightgbm catboost] [--data NAMES] [--splits N] [--jobs N] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import json
import platform
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from boostplugins import DistributionalRegressor
from boostplugins.datasets import load_staged, pbp_splits

SETTING = {
    "family": "normal",
    "n_estimators": 1000,
    "learning_rate": 0.1,
    "depth": 5,
    "step": "natural",
    "early_stopping_rounds": 30,
    "n_folds": 5,
    "calibration": "scale",
    "n_jobs": 1,
}
# Published NLL and RMSE (WGBoost's table 1, which reprints the originals).
PUBLISHED = {
    "boston": {
        "NGBoost": (2.43, 2.94),
        "MC dropout": (2.46, 2.97),
        "deep ensembles": (2.41, 3.28),
        "WGBoost": (2.47, 2.78),
    },
    "concrete": {
        "NGBoost": (3.04, 5.06),
        "MC dropout": (3.04, 5.23),
        "deep ensembles": (3.06, 6.03),
        "WGBoost": (2.83, 4.15),
    },
    "energy": {
        "NGBoost": (0.60, 0.46),
        "MC dropout": (1.99, 1.66),
        "deep ensembles": (1.38, 2.09),
        "WGBoost": (0.53, 0.42),
    },
    "kin8nm": {
        "NGBoost": (-0.49, 0.16),
        "MC dropout": (-0.95, 0.10),
        "deep ensembles": (-1.20, 0.09),
        "WGBoost": (-0.44, 0.15),
    },
    "naval": {
        "NGBoost": (-5.34, 0.00),
        "MC dropout": (-3.80, 0.01),
        "deep ensembles": (-5.63, 0.00),
        "WGBoost": (-5.47, 0.00),
    },
    "power": {
        "NGBoost": (2.79, 3.79),
        "MC dropout": (2.80, 4.02),
        "deep ensembles": (2.79, 4.11),
        "WGBoost": (2.60, 3.19),
    },
    "protein": {
        "NGBoost": (2.81, 4.33),
        "MC dropout": (2.89, 4.36),
        "deep ensembles": (2.83, 4.71),
        "WGBoost": (2.70, 4.09),
    },
    "wine_red": {
        "NGBoost": (0.91, 0.63),
        "MC dropout": (0.93, 0.62),
        "deep ensembles": (0.94, 0.64),
        "WGBoost": (0.95, 0.61),
    },
    "yacht": {
        "NGBoost": (0.20, 0.50),
        "MC dropout": (1.55, 1.11),
        "deep ensembles": (1.18, 1.58),
        "WGBoost": (0.16, 0.48),
    },
}
SPLITS = {"protein": 5}  # published splits, 20 of the others
NAMES = ("yacht", "energy", "boston", "concrete", "wine_red", "power", "kin8nm", "naval", "protein")


def run_split(name: str, booster: str, number: int, train: np.ndarray, test: np.ndarray) -> list[float]:
    """Log score, CRPS, RMSE, coverage, rounds and CPU seconds of one split."""
    warnings.simplefilter("ignore")
    X, y, _, _ = load_staged(name)
    X, y = X.to_numpy(dtype=np.float64), y.to_numpy(dtype=np.float64)
    begin = time.process_time()
    model = DistributionalRegressor(booster=booster, random_state=number, **SETTING).fit(X[train], y[train])
    dist = model.predict_dist(X[test])
    error, ends = dist.mean() - y[test], dist.interval(0.9)
    covered = ((ends[:, 0] <= y[test]) & (y[test] <= ends[:, 1])).mean()
    rounds = float(np.mean(model.n_rounds_))
    scores = -dist.log_pdf(y[test]).mean(), dist.crps(y[test]).mean(), np.sqrt((error**2).mean())
    return [*map(float, scores), float(covered), rounds, time.process_time() - begin]


def run(name: str, booster: str, splits: int, jobs: int) -> dict[str, object]:
    """Score one data set over its splits."""
    _, y, _, _ = load_staged(name)
    pairs = list(pbp_splits(len(y), SPLITS.get(name, 20)))[:splits]
    found = np.array(
        Parallel(n_jobs=jobs)(
            delayed(run_split)(name, booster, number, *pair) for number, pair in enumerate(pairs)
        )
    )
    nll, crps, rmse, covered, rounds, _ = found.mean(axis=0)
    return {
        "data": name,
        "booster": booster,
        "splits": len(found),
        "nll": nll,
        "nll_se": found[:, 0].std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else float("nan"),
        "crps": crps,
        "rmse": rmse,
        "cov90": covered,
        "rounds": rounds,
        "cpu_seconds": found[:, 5].sum(),
        "nll_of_splits": found[:, 0].tolist(),
    }


def machine() -> str:
    """Describe where this ran."""
    names = ("boostplugins", "lightgbm", "catboost", "numpy", "numba")
    found = []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except Exception:
            found.append(f"{name} (source)")
    return f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}, {', '.join(found)}, 1 thread"


def earlier(path: Path) -> list[dict[str, object]]:
    """Rows of an earlier run of the same setting."""
    if not path.is_file():
        return []
    held = json.loads(path.read_text())
    return held["rows"] if held["setting"] == SETTING else []


def table(rows: list[dict[str, object]]) -> str:
    """Lay out the results beside the published numbers."""
    lines = [machine(), f"setting: {SETTING}", ""]
    lines.append(
        f"{'data':9s} {'booster':9s} {'splits':>6s} {'NLL':>8s} {'s.e.':>6s} {'CRPS':>8s} {'RMSE':>8s} {'cov90':>6s} "
        f"{'rounds':>6s} {'CPU s':>7s} | published NLL: NGBoost  MC-drop  DeepEns  WGBoost"
    )
    for row in rows:
        known = PUBLISHED[str(row["data"])]
        lines.append(
            f"{row['data']:9s} {row['booster']:9s} {row['splits']:3d}/{SPLITS.get(str(row['data']), 20):2d} {row['nll']:8.3f} {row['nll_se']:6.3f} "
            f"{row['crps']:8.4g} {row['rmse']:8.4g} {row['cov90']:6.3f} {row['rounds']:6.0f} {row['cpu_seconds']:7.1f} | "
            + "  ".join(
                f"{known[who][0]:7.2f}" for who in ("NGBoost", "MC dropout", "deep ensembles", "WGBoost")
            )
        )
    lines.append("")
    for booster in dict.fromkeys(str(row["booster"]) for row in rows):
        mine = [row for row in rows if row["booster"] == booster]
        for who in ("NGBoost", "deep ensembles", "WGBoost"):
            wins = [row for row in mine if float(row["nll"]) < PUBLISHED[str(row["data"])][who][0]]  # type: ignore[arg-type]
            lines.append(f"{booster}: mean NLL better than {who}'s published on {len(wins)} of {len(mine)}")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--booster", nargs="+", default=["lightgbm", "catboost"])
    parser.add_argument("--data", nargs="+", default=list(NAMES), choices=NAMES)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with one thread")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for booster in options.booster:
        for name in options.data:
            new = run(name, booster, options.splits, options.jobs)
            rows = earlier(options.out / f"uci_{booster}.json")
            rows = sorted(
                [*(row for row in rows if row["data"] != name), new],
                key=lambda row: NAMES.index(str(row["data"])),
            )
            print(table([new]).splitlines()[4], flush=True)
            held = {"machine": machine(), "setting": SETTING, "rows": rows}
            (options.out / f"uci_{booster}.json").write_text(json.dumps(held, indent=1))
            (options.out / f"uci_{booster}.txt").write_text(table(rows))


if __name__ == "__main__":
    main()
