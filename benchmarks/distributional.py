# ruff: noqa: E501 (rows of tables)
"""Distributional boosting: time, memory and scores on a Normal and a Gamma problem.

Each method runs in a process of its own, one thread, 300 rounds of depth 3 at rate 0.05, at least
20 rows a leaf, no early stopping; times are CPU seconds, the JIT is warm. "defaults" is what
DistributionalRegressor does when it is told the family alone, "calibrated" adds a recalibration where
the defaults have none. Peers are found in virtual environments under the folder given by --peers and
left out, with a note, where they are not. Rows that are not asked for are kept from earlier runs.

Run: python benchmarks/distributional.py [--n 5000 20000] [--problem NAMES] [--method NAMES] [--seeds N]
     [--peers FOLDER] [--out FOLDER]
"""

from __future__ import annotations

import argparse
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

ROUNDS, RATE, DEPTH, LEAF = 300, 0.05, 3, 20
N_TEST = 10_000
# Which environment a method needs; None is this one.
METHODS = {
    "ours, LightGBM": None,
    "ours, LightGBM, fisher": None,
    "ours, CatBoost": None,
    "ours, LightGBM, defaults": None,
    "ours, LightGBM, calibrated": None,
    "ours, CatBoost, defaults": None,
    "minimal LightGBM objective": None,
    "CatBoost RMSEWithUncertainty": None,
    "NGBoost": "ngblgb",
    "ngboost-lightning": "ngblgb",
    "LightGBMLSS": "lss",
    "XGBoostLSS": "lss",
}


def problem(name: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw features, responses and true parameters (mean and log sd, or log mean and log shape)."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 1.0, (n, 10))
    # Friedman's function for the first parameter; two main effects for the second.
    first = 2.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 4.0 * (X[:, 2] - 0.5) ** 2 + 2.0 * X[:, 3] + X[:, 4]
    second = 1.5 * X[:, 5] - 1.0 * X[:, 3]
    if name == "normal":
        truth = np.stack([first, second], axis=1)
        return X, first + np.exp(second) * rng.normal(size=n), truth
    truth = np.stack([0.5 * first, 0.5 + second], axis=1)
    shape = np.exp(truth[:, 1])
    return X, np.maximum(rng.gamma(shape, np.exp(truth[:, 0]) / shape), 1e-12), truth


def scores(name: str, y: np.ndarray, raw: np.ndarray) -> dict[str, float]:
    """NLL, CRPS and 90 % coverage of (mean, log sd) or (log mean, log shape); numpy and scipy only."""
    from scipy import special, stats

    if name == "normal":
        sd = np.exp(raw[:, 1])
        z = (y - raw[:, 0]) / sd
        nll = -stats.norm.logpdf(z) + raw[:, 1]
        crps = sd * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
        ends = raw[:, :1] + sd[:, None] * stats.norm.ppf([0.05, 0.95])
    else:
        mean, shape = np.exp(raw[:, 0]), np.exp(raw[:, 1])
        other = stats.gamma(shape, scale=mean / shape)
        nll = -other.logpdf(y)
        crps = y * (2 * other.cdf(y) - 1) - mean * (2 * stats.gamma.cdf(y, shape + 1, scale=mean / shape) - 1)
        crps = crps - mean / shape / special.beta(0.5, shape)
        ends = np.stack([other.ppf(0.05), other.ppf(0.95)], axis=1)
    inside = (ends[:, 0] <= y) & (y <= ends[:, 1])
    return {
        "nll": float(np.mean(nll)),
        "crps": float(np.mean(crps)),
        "cov90": float(np.mean(inside)),
        "not_finite": int((~np.isfinite(raw)).any(axis=1).sum()),
    }


def _ours(name: str, X: np.ndarray, y: np.ndarray, method: str) -> tuple:
    from boostplugins import DistributionalRegressor

    booster = "catboost" if "CatBoost" in method else "lightgbm"
    settings = {
        "booster": booster, "n_estimators": ROUNDS, "learning_rate": RATE, "depth": DEPTH,
        "min_samples_leaf": LEAF if booster == "lightgbm" else None,
    }  # fmt: skip
    if "calibrated" in method:
        settings |= {"n_folds": 5, "calibration": "scale"}
    elif "defaults" in method:
        settings = {"booster": booster}
    else:
        settings |= {
            "n_folds": None,
            "validation_fraction": None,
            "step": "fisher" if "fisher" in method else None,
        }
    model = DistributionalRegressor(name, n_jobs=1, **settings)
    return lambda: model.fit(X, y), lambda X_new: model.predict_dist(X_new)


def _minimal(name: str, X: np.ndarray, y: np.ndarray) -> tuple:
    """Fifty lines that a user would write: analytic score and Fisher information in numpy."""
    import lightgbm
    from scipy import special

    start = np.array([y.mean(), np.log(y.std())]) if name == "normal" else np.array([np.log(y.mean()), 0.0])
    held: dict[str, object] = {}

    def objective(preds: np.ndarray, _: object) -> tuple[np.ndarray, np.ndarray]:
        a, b = (preds + start).T
        if name == "normal":
            inverse = np.exp(-b)
            z = (y - a) * inverse
            gradient, curvature = [-z * inverse, 1 - z * z], [inverse**2, np.full(len(y), 2.0)]
        else:
            k, ratio = np.exp(b), y * np.exp(-a)
            slope = k * (b + 1 - special.digamma(k) + np.log(ratio) - ratio)
            gradient = [k * (1 - ratio), -slope]
            curvature = [k, k * (k * special.polygamma(1, k) - 1)]
        return np.stack(gradient, axis=1), np.maximum(np.stack(curvature, axis=1), 1e-6)

    def fit() -> None:
        params = {
            "objective": objective, "num_class": 2, "learning_rate": RATE, "max_depth": DEPTH, "num_leaves": 8,
            "min_data_in_leaf": LEAF, "min_sum_hessian_in_leaf": 0.0, "num_threads": 1, "verbose": -1,
        }  # fmt: skip
        held["booster"] = lightgbm.train(params, lightgbm.Dataset(X, y), ROUNDS)

    return fit, lambda X_new: held["booster"].predict(X_new, num_threads=1) + start  # type: ignore[attr-defined]


def _catboost(name: str, X: np.ndarray, y: np.ndarray) -> tuple | None:
    if name != "normal":
        return None
    import catboost

    model = catboost.CatBoostRegressor(
        loss_function="RMSEWithUncertainty", iterations=ROUNDS, learning_rate=RATE, depth=DEPTH, thread_count=1,
        verbose=False, allow_writing_files=False,
    )  # fmt: skip

    def predict(X_new: np.ndarray) -> np.ndarray:
        out = model.predict(X_new, prediction_type="RMSEWithUncertainty", thread_count=1)
        return np.stack([out[:, 0], 0.5 * np.log(out[:, 1])], axis=1)

    return lambda: model.fit(X, y), predict


def _ngboost(name: str, X: np.ndarray, y: np.ndarray) -> tuple:
    from ngboost import NGBRegressor
    from ngboost.distns import Gamma, Normal
    from sklearn.tree import DecisionTreeRegressor

    base = DecisionTreeRegressor(criterion="friedman_mse", max_depth=DEPTH, min_samples_leaf=LEAF)
    model = NGBRegressor(
        Dist=Normal if name == "normal" else Gamma,
        Base=base,
        n_estimators=ROUNDS,
        learning_rate=RATE,
        verbose=False,
    )

    def predict(X_new: np.ndarray) -> np.ndarray:
        params = model.pred_dist(X_new).params
        if name == "normal":
            return np.stack([params["loc"], np.log(params["scale"])], axis=1)
        return np.stack([np.log(params["alpha"] / params["beta"]), np.log(params["alpha"])], axis=1)

    return lambda: model.fit(X, y), predict


def _lightning(name: str, X: np.ndarray, y: np.ndarray) -> tuple:
    from ngboost_lightning import LightningBoostRegressor
    from ngboost_lightning.distributions import Gamma, Normal

    model = LightningBoostRegressor(
        dist=Normal if name == "normal" else Gamma, n_estimators=ROUNDS, learning_rate=RATE, max_depth=DEPTH,
        num_leaves=8, min_child_samples=LEAF, verbose=False, lgbm_params={"n_jobs": 1},
    )  # fmt: skip

    def predict(X_new: np.ndarray) -> np.ndarray:
        dist = model.pred_dist(X_new)
        if name == "normal":
            return np.stack([dist.loc, np.log(dist.scale)], axis=1)
        return np.stack([np.log(dist.alpha / dist.beta), np.log(dist.alpha)], axis=1)

    return lambda: model.fit(X, y), predict


def _lss(name: str, X: np.ndarray, y: np.ndarray, package: str) -> tuple:
    held: dict[str, object] = {}
    if package == "LightGBMLSS":
        import lightgbm
        from lightgbmlss.distributions.Gamma import Gamma
        from lightgbmlss.distributions.Gaussian import Gaussian
        from lightgbmlss.model import LightGBMLSS as Model

        data = lightgbm.Dataset(X, label=y)
        params = {
            "learning_rate": RATE, "max_depth": DEPTH, "num_leaves": 8, "min_data_in_leaf": LEAF, "num_threads": 1,
            "verbose": -1,
        }  # fmt: skip
    else:
        import xgboost
        from xgboostlss.distributions.Gamma import Gamma
        from xgboostlss.distributions.Gaussian import Gaussian
        from xgboostlss.model import XGBoostLSS as Model

        data = xgboost.DMatrix(X, label=y, nthread=1)
        params = {"eta": RATE, "max_depth": DEPTH, "nthread": 1}
    import torch

    torch.set_num_threads(1)

    def fit() -> None:
        held["model"] = Model(Gaussian() if name == "normal" else Gamma())
        held["model"].train(params, data, num_boost_round=ROUNDS)  # type: ignore[attr-defined]

    def predict(X_new: np.ndarray) -> np.ndarray:
        rows = X_new
        if package != "LightGBMLSS":
            import xgboost

            rows = xgboost.DMatrix(X_new, nthread=1)
        out = held["model"].predict(rows, pred_type="parameters").to_numpy()  # type: ignore[attr-defined]
        if name == "normal":
            return np.stack([out[:, 0], np.log(out[:, 1])], axis=1)
        return np.stack([np.log(out[:, 0] / out[:, 1]), np.log(out[:, 0])], axis=1)

    return fit, predict


def _make(method: str, name: str, X: np.ndarray, y: np.ndarray) -> tuple | None:
    if method.startswith("ours"):
        return _ours(name, X, y, method)
    if method.startswith("minimal"):
        return _minimal(name, X, y)
    if method.startswith("CatBoost"):
        return _catboost(name, X, y)
    if method == "NGBoost":
        return _ngboost(name, X, y)
    return _lightning(name, X, y) if method == "ngboost-lightning" else _lss(name, X, y, method)


def one(method: str, name: str, n: int, seeds: int) -> dict[str, object] | None:
    """Run one method on one problem; called in its own process."""
    warnings.simplefilter("ignore")
    X, y, _ = problem(name, n, 0)
    warm = _make(method, name, X[:200], y[:200]) if method.startswith("ours") else None
    if warm is not None:  # compiles; the boosters' own first call is left to all methods alike
        warm[0]()
    found: list[dict[str, float]] = []
    times: list[float] = []
    spent = memory = 0.0
    for seed in range(seeds):
        X, y, _ = problem(name, n, 2 * seed)
        X_test, y_test, _ = problem(name, N_TEST, 2 * seed + 1)
        made = _make(method, name, X, y)
        if made is None:
            return None
        fit, predict = made
        repeats = 3 if method.startswith(("ours", "minimal", "CatBoost")) and seed == 0 else 1
        for _ in range(repeats):
            begin = time.process_time()
            fit()
            times.append(time.process_time() - begin)
        begin = time.process_time()
        raw = predict(X_test)
        if seed == 0:
            spent = time.process_time() - begin
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        found.append(_scores_of(raw, y_test) if method.startswith("ours") else scores(name, y_test, raw))
    means = {key: float(np.mean([row[key] for row in found])) for key in ("nll", "crps", "cov90")}
    return {
        "method": method,
        "problem": name,
        "n": n,
        "fit": min(times),
        "predict": spent,
        "mb": memory,
        "seeds": seeds,
        **means,
        "not_finite": int(sum(row["not_finite"] for row in found)),
        "nll_of_seeds": [row["nll"] for row in found],
        "version": _version_of(method),
    }


def _scores_of(dist: object, y: np.ndarray) -> dict[str, float]:
    """The same scores from our own predictions."""
    ends = dist.interval(0.9)  # type: ignore[attr-defined]
    theta = dist.theta  # type: ignore[attr-defined]
    return {
        "nll": float(-dist.log_pdf(y).mean()),  # type: ignore[attr-defined]
        "crps": float(dist.crps(y).mean()),  # type: ignore[attr-defined]
        "cov90": float(((ends[:, 0] <= y) & (y <= ends[:, 1])).mean()),
        "not_finite": int((~np.isfinite(theta)).any(axis=tuple(range(1, theta.ndim))).sum()),
    }


def _version_of(method: str) -> str:
    package = {"NGBoost": "ngboost", "ngboost-lightning": "ngboost-lightning"}.get(method)
    if method in ("LightGBMLSS", "XGBoostLSS"):
        package = method.lower()
    return "" if package is None else f"{package} {version(package)}"


def table(rows: list[dict[str, object]], notes: dict[str, str]) -> str:
    """Lay out the results and ratios."""
    names = ("lightgbm", "catboost", "numpy", "numba", "scikit-learn")
    stack = ", ".join(f"{name} {version(name)}" for name in names)
    peers = ", ".join(sorted({str(row["version"]) for row in rows if row["version"]}))
    lines = [
        f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}, {stack}, {peers}, 1 thread",
        "",
    ]
    for name, n in sorted({(str(row["problem"]), int(str(row["n"]))) for row in rows}, reverse=True):
        mine = sorted(
            (row for row in rows if row["problem"] == name and row["n"] == n),
            key=lambda row: list(METHODS).index(str(row["method"])),
        )
        _, y, truth = problem(name, N_TEST, 1)
        oracle = scores(name, y, truth)
        base = next((row["fit"] for row in mine if str(row["method"]).startswith("minimal")), float("nan"))
        ours = next((row["nll_of_seeds"] for row in mine if row["method"] == "ours, LightGBM"), None)
        lines.append(
            f"{name}, n = {n}; oracle NLL {oracle['nll']:.3f}, CRPS {oracle['crps']:.3f} (first seed)"
        )
        lines.append(
            f"{'method':30s} {'fit CPU s':>9s} {'/minimal':>8s} {'predict':>8s} {'MB':>5s} {'seeds':>5s} {'NLL':>7s} "
            f"{'less ours':>15s} {'CRPS':>7s} {'cov90':>6s} {'not finite':>10s}"
        )
        for row in mine:
            lines.append(
                f"{row['method']:30s} {row['fit']:9.2f} {row['fit'] / base:8.2f} {row['predict']:8.3f} "  # type: ignore[operator]
                f"{row['mb']:5.0f} {row['seeds']:5d} {_short(row['nll'])} {_difference(row['nll_of_seeds'], ours):>15s} "
                f"{_short(row['crps'])} {row['cov90']:6.3f} {row['not_finite']:10d}"
            )
        lines.append("")
    lines.append('"less ours": NLL less that of "ours, LightGBM" on the same seeds, with its standard error.')
    lines.append(
        '"/minimal": fit time over that of the minimal objective. Five of our models make one fit of'
    )
    lines.append('"calibrated", and of "defaults" below 5000 rows; above, "defaults" fits twice.')
    return "\n".join([*lines, *(f"{key}: {note}" for key, note in sorted(notes.items()))]) + "\n"


def _short(value: object) -> str:
    """Seven characters, also for scores that ran away."""
    return f"{value:7.3f}" if abs(float(value)) < 1e3 else f"{value:7.0e}"  # type: ignore[arg-type]


def _difference(mine: object, ours: object) -> str:
    if ours is None:
        return ""
    count = min(len(mine), len(ours))  # type: ignore[arg-type]
    if not np.isfinite(mine).all() or np.abs(mine).max() > 1e3:  # type: ignore[arg-type]
        return ""
    gap = np.array(mine[:count]) - np.array(ours[:count])  # type: ignore[index]
    error = f" ±{gap.std(ddof=1) / np.sqrt(count):.3f}" if count > 1 else ""
    return f"{gap.mean():+.3f}{error}"


def _earlier(held: Path) -> tuple[list[dict[str, object]], dict[str, str]]:
    """Rows and notes of earlier runs, read when new ones are written: pieces may run side by side."""
    found = json.loads(held.read_text()) if held.is_file() else {"rows": [], "notes": {}}
    return found["rows"], found["notes"]


def _ask(call: list[str], timeout: float) -> tuple[dict[str, object] | None, str | None]:
    """Run one method in its process; its row, or the reason why there is none."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            call, env=environment, capture_output=True, text=True, timeout=timeout, check=True
        )
        return json.loads(done.stdout.strip().splitlines()[-1]), None
    except subprocess.TimeoutExpired:
        return None, f"no answer in {timeout:g} s"
    except (subprocess.SubprocessError, ValueError) as error:
        said = (getattr(error, "stderr", "") or "").strip().splitlines()
        return None, said[-1] if said else "no answer"


def main() -> None:
    """Run every method in its own process and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--n", type=int, nargs="+", default=[5000, 20000])
    parser.add_argument("--problem", nargs="+", default=["normal", "gamma"])
    parser.add_argument("--method", nargs="+", default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--peers", type=Path, default=None, help="folder of the peers' environments")
    parser.add_argument("--timeout", type=float, default=900.0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.one[0], options.one[1], int(options.one[2]), int(options.one[3]))))
        return
    held = options.out / "distributional.json"
    rows, notes = _earlier(held)
    for name in options.problem:
        for n in options.n:
            for method in options.method:
                home = METHODS[method]
                python = (
                    Path(sys.executable)
                    if home is None
                    else (options.peers or Path()) / home / "bin" / "python"
                )
                key = f"{method}, {name}, n = {n}"
                if not python.is_file():
                    notes[key] = "not installed"
                    continue
                row, reason = _ask(
                    [str(python), __file__, "--one", method, name, str(n), str(options.seeds)],
                    options.timeout,
                )
                rows, notes = _earlier(held)
                rows = [old for old in rows if (old["method"], old["problem"], old["n"]) != (method, name, n)]
                notes.pop(key, None)
                if reason is not None:
                    notes[key] = reason
                if row is not None:
                    rows.append(row)
                held.write_text(json.dumps({"rows": rows, "notes": notes}, indent=1))
                (options.out / "distributional.txt").write_text(table(rows, notes))
    print(table(rows, notes))


if __name__ == "__main__":
    main()
