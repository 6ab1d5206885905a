"""The simulation of the soft tree paper: friedman1 mean and friedman2 scale, beside its own software.

Usage: python benchmarks/soft_tree_simulation.py [--families NO RG NBI] [--sizes 500 1000 5000 10000]
       [--replicates 20] [--rivals 3] [--large]
"""

from __future__ import annotations

import argparse
import os
import platform
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numpy as np

import boostplugins
from boostplugins.estimators.soft_tree import SoftTreeRegressor
from boostplugins.estimators.soft_tree_forest import SoftForestRegressor
from boostplugins.families import get_family

TEST_ROWS = 10_000
# Published software of the paper re-run: Normal, lambda 5 (CRPS, MSE mu, MSE log sigma, seconds).
PUBLISHED = {
    500: (0.1252, 0.0209, 0.142, 35),
    1000: (0.1046, 0.0073, 0.055, 82),
    5000: (0.0937, 0.0019, 0.0123, 450),
}


def simulate(n: int, family: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, responses and true raw scores (location or log mean, log scale)."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 10))
    z = np.stack(
        [
            100 * rng.random(n),
            np.pi * (40 + 520 * rng.random(n)),
            rng.random(n),
            1 + 10 * rng.random(n),
        ],
        axis=1,
    )
    first = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    second = np.sqrt(z[:, 0] ** 2 + (z[:, 1] * z[:, 2] - 1 / (z[:, 1] * z[:, 3])) ** 2)
    raw = np.stack([(first - 1.5) / 26.48 * 2 + 1, (second - 7.96) / 1736.85 * 2 - 2.5], axis=1)
    found = get_family(family)
    y = found.sample(found.theta(raw), 1, rng)[:, 0]
    return np.concatenate([x, z], axis=1), y, raw


def figures(family: str, theta: np.ndarray, dist: object, y: np.ndarray, raw: np.ndarray) -> list[float]:
    """CRPS, mean log score, and mean squared errors of the two raw scores."""
    found = get_family(family)
    errors = [np.nan, np.nan] if theta is None else ((found.raw(theta) - raw) ** 2).mean(axis=0).tolist()
    return [float(dist.crps(y).mean()), float(dist.log_pdf(y).mean()), *errors]


def rival(family: str) -> object:
    """Our gradient boosting of the same distribution on LightGBM."""
    from boostplugins.estimators.distributional import DistributionalRegressor

    return DistributionalRegressor(
        family,
        booster="lightgbm",
        n_estimators=300,
        learning_rate=0.05,
        validation_fraction=0.2,
        early_stopping_rounds=20,
    )


def run(name: str, make, family: str, n: int, replicates: int) -> None:
    """Fit replicates of one model and print their means."""
    rows, seconds = [], []
    for seed in range(replicates):
        X, y, _ = simulate(n, family, 1000 + seed)
        X_test, y_test, raw = simulate(TEST_ROWS, family, 9000 + seed)
        began = time.process_time()
        model = make().fit(X, y)
        seconds.append(time.process_time() - began)
        dist = model.predict_dist(X_test)
        theta = dist.theta if dist.theta.ndim == 2 else None
        if theta is None:  # a forest: means of the members' raw scores
            found = get_family(family)
            theta = found.theta(found.raw(dist.theta).mean(axis=1))
        rows.append(figures(family, theta, dist, y_test, raw))
    mean, error = np.mean(rows, axis=0), np.std(rows, axis=0) / np.sqrt(len(rows))
    print(
        f"{family:4s} {n:6d} {name:26s} {replicates:3d} {mean[0]:.4f} ±{error[0]:.4f}  {mean[1]:8.4f}  "
        f"{mean[2]:.5f} ±{error[2]:.5f}  {mean[3]:.4f} ±{error[3]:.4f}  {np.mean(seconds):8.2f}",
        flush=True,
    )


def oracle(family: str, n_seeds: int = 3) -> None:
    """Score of the true distribution."""
    found = get_family(family)
    rows = []
    for seed in range(n_seeds):
        _, y, raw = simulate(TEST_ROWS, family, 9000 + seed)
        theta = found.theta(raw)
        rows.append([found.crps(y, theta).mean(), found.log_pdf(y, theta).mean()])
    crps, score = np.mean(rows, axis=0)
    print(f"{family:4s}      - {'true distribution':26s} {n_seeds:3d} {crps:.4f}          {score:8.4f}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--families", nargs="+", default=["NO", "RG", "NBI"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[500, 1000, 5000, 10_000])
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--rivals", type=int, default=3, help="replicates of rival models")
    parser.add_argument("--large", action="store_true", help="one fit of 100 000 rows")
    given = parser.parse_args()
    import lightgbm
    import numba
    import scipy

    print(
        f"boostplugins {boostplugins.__version__}, numpy {np.__version__}, scipy {scipy.__version__}, "
        f"numba {numba.__version__}, lightgbm {lightgbm.__version__}, python {platform.python_version()}, "
        f"{platform.machine()}, {os.cpu_count()} cores, one thread; CPU seconds a fit; "
        f"errors are standard errors over replicates; {TEST_ROWS} test rows"
    )
    print(
        f"{'fam':4s} {'n':>6s} {'model':26s} rep CRPS            log score  MSE first         "
        "MSE second            CPU s"
    )
    warm = simulate(100, "NO", 0)
    SoftTreeRegressor(ridge=5.0, max_leaves=4).fit(warm[0], warm[1])  # compile before the clock starts
    for family in given.families:
        oracle(family)
        for n in given.sizes:
            if family == "NO" and n in PUBLISHED:
                crps, mu, sigma, secs = PUBLISHED[n]
                print(
                    f"NO   {n:6d} {'published software':26s}   5 {crps:.4f}                    "
                    f"{mu:.5f}           {sigma:.4f}           {secs:8.2f}"
                )
            run("SoftTree ridge=auto", lambda f=family: SoftTreeRegressor(f), family, n, given.replicates)
            run(
                "SoftTree ridge=5",
                lambda f=family: SoftTreeRegressor(f, ridge=5.0),
                family,
                n,
                given.replicates,
            )
            if given.rivals:
                run("LightGBM distributional", lambda f=family: rival(f), family, n, given.rivals)
                if n <= 1000:
                    run(
                        "SoftForest 10 trees",
                        lambda f=family: SoftForestRegressor(f, n_estimators=10),
                        family,
                        n,
                        given.rivals,
                    )
    if given.large:
        run("SoftTree ridge=5", lambda: SoftTreeRegressor(ridge=5.0), "NO", 100_000, 1)


if __name__ == "__main__":
    main()
