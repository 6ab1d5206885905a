"""Figures 3 to 5 of the soft tree paper: a step with oscillation, a smooth surface, the ridge.

Usage: python benchmarks/soft_tree_figures.py
"""

from __future__ import annotations

import os
import platform
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numpy as np
import scipy
from scipy.interpolate import make_smoothing_spline
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

from boostplugins.estimators.soft_tree import SoftTreeRegressor


def step_and_wave(x: np.ndarray) -> np.ndarray:
    """A step at -1, then an oscillation that speeds up (demo data of the paper's software)."""
    s = (x + 3) / 6
    return np.where(x < -1, 0.0, 1.0) + np.sin(20 * np.exp(s)) * s**2


def rmse(a: np.ndarray, b: np.ndarray) -> float:
    """Root mean squared difference."""
    return float(np.sqrt(np.mean((a - b) ** 2)))


def mean_tree(leaves: int, ridge: float | str) -> SoftTreeRegressor:
    """Soft tree of the mean alone, as in the paper's figures; BIC chooses an open ridge."""
    criterion = "bic" if ridge == "auto" else None
    return SoftTreeRegressor(ridge=ridge, max_leaves=leaves, criterion=criterion, features={"sigma": []})


def timed(make, X: np.ndarray, y: np.ndarray):
    """Fitted model and CPU seconds."""
    began = time.process_time()
    model = make().fit(X, y)
    return model, time.process_time() - began


def leaves(model: SoftTreeRegressor) -> int:
    """Leaves of the mean's tree."""
    return model.model_.predictors[0].tree.n_leaves


def figure_3() -> None:
    """Step and oscillation against a smoothing spline."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-3, 3, 1000))
    truth = step_and_wave(x)
    y = truth + 0.1 * rng.normal(size=1000)
    grid = np.linspace(-2.99, 2.99, 2000)
    print("Step and oscillation, n = 1000, noise 0.1: RMSE against the truth on a grid")
    spline = make_smoothing_spline(x, y)  # smoothness by generalised cross validation
    print(f"  smoothing spline (GCV)                 {rmse(spline(grid), step_and_wave(grid)):.4f}")
    for count in (10, 20, 30):
        model, seconds = timed(lambda c=count: mean_tree(c, "auto"), x[:, None], y)
        error = rmse(model.predict(grid[:, None]), step_and_wave(grid))
        print(
            f"  soft tree, {leaves(model):3d} leaves (most {count}), ridge {model.figures_['ridge']:g}  "
            f"{error:.4f}   {seconds:6.2f} s"
        )
    print("\nThe same data, at most 20 leaves: effect of the ridge (jumps become slopes, then a line)")
    for ridge in (1e-4, 1e-2, 0.1, 1.0, 10.0, 100.0):
        model, _ = timed(lambda r=ridge: mean_tree(20, r), x[:, None], y)
        prediction = model.predict(grid[:, None])
        steepest = np.abs(np.diff(prediction) / np.diff(grid)).max()
        print(
            f"  ridge {ridge:8g}   leaves {leaves(model):3d}   "
            f"RMSE {rmse(prediction, step_and_wave(grid)):.4f}   steepest slope {steepest:8.2f}"
        )
    print(
        "  (A wave needs many steep gates. While the deviation is still that of the whole wave, each\n"
        "  gains less than a large ridge asks: greedy growth does not begin it.)"
    )


def figure_4() -> None:
    """sin(x) sin(z) against a regression tree and a random forest."""
    rng = np.random.default_rng(0)
    side = np.linspace(-np.pi / 2, np.pi / 2, 100)
    X = np.stack([a.ravel() for a in np.meshgrid(side, side)], axis=1)
    truth = np.sin(X[:, 0]) * np.sin(X[:, 1])
    y = truth + 0.1 * rng.normal(size=len(X))
    print("\nsin(x) sin(z) on a 100 x 100 grid, noise 0.1: RMSE against the truth")
    soft, seconds = timed(lambda: mean_tree(24, "auto"), X, y)
    error = rmse(soft.predict(X), truth)
    print(
        f"  soft tree, {leaves(soft)} leaves, ridge {soft.figures_['ridge']:g} by BIC       "
        f"{error:.5f}   {seconds:6.2f} s"
    )
    tree, seconds = timed(lambda: DecisionTreeRegressor(max_leaf_nodes=24, random_state=0), X, y)
    _beside("regression tree, 24 leaves", rmse(tree.predict(X), truth), error, seconds)
    for least in (1, 5, 20):
        forest, seconds = timed(
            lambda m=least: RandomForestRegressor(2000, min_samples_leaf=m, n_jobs=1, random_state=0), X, y
        )
        name = f"random forest, 2000 trees, leaves >= {least}"
        _beside(name, rmse(forest.predict(X), truth), error, seconds)


def _beside(name: str, other: float, error: float, seconds: float) -> None:
    print(f"  {name:42s} {other:.5f}   {seconds:6.2f} s   error ratio {other / error:.1f}", flush=True)


def main() -> None:
    """Print all figures' numbers."""
    print(
        f"numpy {np.__version__}, scipy {scipy.__version__}, python {platform.python_version()}, "
        f"{platform.machine()}, one thread, CPU seconds"
    )
    mean_tree(2, 1.0).fit(np.arange(9.0)[:, None], np.arange(9.0) ** 2)  # compile first
    figure_3()
    figure_4()


if __name__ == "__main__":
    main()
