"""CPU time of a chain on CatBoost over the built-in loss, and of reading its members.

One run, the same trees: 100 000 rows, 10 features, 50 trees of depth 6. One output with mask,
weights and noise on, 1 and 2 threads, beside the least that an objective in Python can do (y - F);
three outputs per row-call; ten members out of 1000 trees against one full prediction. Warm-up first,
then the least of several repetitions, alternating.

Run: ``python benchmarks/catboost_overhead.py [--write]``.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import catboost
import numba
import numpy as np
from catboost import CatBoostClassifier, CatBoostRegressor, Pool

from boostplugins import BernoulliMask, CosineCycle, VirtualEnsemble
from boostplugins.catboost import CyclicalSGLB
from boostplugins.losses import Softmax, SquaredError

RESULTS = Path(__file__).resolve().parent / "results"
REPEATS = 9
TREES = {"learning_rate": 0.1, "depth": 6, "verbose": False, "allow_writing_files": False}


def cpu(*functions: Callable[[], Any]) -> list[float]:
    """Least CPU seconds of each function over alternating repetitions."""
    best = [float("inf")] * len(functions)
    for _ in range(REPEATS):
        for place, function in enumerate(functions):
            start = time.process_time()
            function()
            best[place] = min(best[place], time.process_time() - start)
    return best


class _Residuals:
    """The least that an objective in Python can do: no noise, no mask, no weights."""

    no_jit = True

    def calc_ders_range(self, approxes: Any, targets: Any, weights: Any) -> Any:
        out = np.empty((len(targets), 2))
        out[:, 0], out[:, 1] = targets - approxes, -1.0
        return out


def one_output(threads: int) -> tuple[float, float, float]:
    """Seconds of the chain, of the least objective in Python, and of CatBoost's own RMSE."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 10))
    y = X[:, 0] + np.sin(3 * X[:, 1]) + rng.normal(size=len(X))
    weight = rng.uniform(0.5, 1.5, len(X))
    chain = CyclicalSGLB(
        SquaredError(noise_variance=1.0), schedule=CosineCycle(length=10), mask=BernoulliMask(0.6)
    )
    settings = TREES | {"iterations": 50, "thread_count": threads}

    def ours() -> None:
        model = CatBoostRegressor(
            loss_function=chain, eval_metric="RMSE", **settings, **chain.catboost_params()
        )
        model.fit(X, y, sample_weight=weight, callbacks=[chain.callback()])

    def least() -> None:
        model = CatBoostRegressor(
            loss_function=_Residuals(), eval_metric="RMSE", **settings, **chain.catboost_params()
        )
        model.fit(X, y, sample_weight=weight)

    def plain() -> None:
        same = {"bootstrap_type": "No", "random_strength": 0, "boosting_type": "Plain"}
        CatBoostRegressor(loss_function="RMSE", **settings, **same).fit(X, y, sample_weight=weight)

    ours()
    return tuple(cpu(ours, least, plain))  # type: ignore[return-value]


def three_outputs() -> tuple[float, float]:
    """Microseconds a row-call of the chain and of an objective that returns zeros."""
    rng = np.random.default_rng(0)
    n, trees = 20_000, 20
    X, y = rng.normal(size=(n, 10)), rng.integers(0, 3, n)
    chain = CyclicalSGLB(Softmax(3), schedule=CosineCycle(length=5), mask=BernoulliMask(0.6))
    settings = TREES | {"iterations": trees, "metric_period": trees} | chain.catboost_params()

    class Nothing:
        no_jit = True

        def calc_ders_multi(self, approxes: Any, target: float, weight: float) -> Any:
            return [0.0, 0.0, 0.0], None

    def ours() -> None:
        model = CatBoostClassifier(loss_function=chain, eval_metric="MultiClass", **settings)
        model.fit(X, y, callbacks=[chain.callback()])

    def nothing() -> None:
        CatBoostClassifier(loss_function=Nothing(), eval_metric="MultiClass", **settings).fit(X, y)

    ours()
    a, b = cpu(ours, nothing)
    return a / (2 * n * trees) * 1e6, b / (2 * n * trees) * 1e6


def reading() -> tuple[float, float]:
    """Seconds to read ten members out of 1000 trees, and of one full prediction."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 10))
    y = X[:, 0] + np.sin(3 * X[:, 1]) + rng.normal(size=len(X))
    chain = CyclicalSGLB(SquaredError(noise_variance=1.0), schedule=CosineCycle(length=100))
    settings = TREES | {"iterations": 1000, "thread_count": 1} | chain.catboost_params()
    model = CatBoostRegressor(loss_function=chain, eval_metric="RMSE", **settings)
    model.fit(X[:5000], y[:5000], callbacks=[chain.callback()])
    ensemble, pool = VirtualEnsemble.from_catboost(model), Pool(X)
    return tuple(cpu(lambda: ensemble.members(pool), lambda: model.predict(pool, thread_count=1)))  # type: ignore[return-value]


def main() -> None:
    lines = [
        f"CatBoost {catboost.__version__}, numpy {np.__version__}, numba {numba.__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}; CPU seconds, least of {REPEATS}",
        "",
    ]
    for threads in (1, 2):
        ours, least, plain = one_output(threads)
        lines.append(
            f"one output, {threads} thread(s): chain {ours:.3f} s, built-in RMSE {plain:.3f} s, "
            f"ratio {ours / plain:.2f} (target 1.3); y - F in numpy {least:.3f} s, ratio {least / plain:.2f}"
        )
    lines.append(
        "  with two threads, CatBoost's threads hand the interpreter to and fro in 356 calls a tree, or wait "
        "for it spinning: that is the cost of any objective in Python"
    )
    ours, nothing = three_outputs()
    lines.append(
        f"three outputs: {ours:.2f} us a row-call, trees and all (target 2.5); "
        f"an objective of zeros {nothing:.2f}"
    )
    members, full = reading()
    lines.append(
        f"ten members out of 1000 trees, 100 000 rows: {members:.3f} s, one full predict {full:.3f} s, "
        f"ratio {members / full:.2f} (target 1.3)"
    )
    text = "\n".join(lines) + "\n"
    print(text)
    if "--write" in sys.argv:
        (RESULTS / "catboost_overhead.txt").write_text(text)


if __name__ == "__main__":
    main()
