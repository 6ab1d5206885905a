"""The spiral on CatBoost at half the default step: learning rate 0.1, leaves of 20 rows, shrinkage 0.02.

Three seeds of one cyclical chain with prior functions and ten cycles of 100 iterations, the rest at the
estimator's defaults.

Run: ``python benchmarks/spiral_catboost.py``; writes ``results/spiral_catboost.txt``.
"""

from __future__ import annotations

import platform

import catboost
import numpy as np
from shift_tasks import load_task
from spiral import RESULTS, SEEDS, chain

from boostplugins import CosineCycle


def main() -> None:
    lines = [
        "Spiral, CatBoost cSGLB + prior, 1000 trees, one thread;",
        "learning_rate 0.1, min_samples_leaf 20, shrink 0.02 (chosen on seed 1 among three settings)",
        f"{platform.machine()} {platform.system()}, Python {platform.python_version()}; "
        f"catboost {catboost.__version__}, numpy {np.__version__}",
        "",
        "seed   KU AUC     acc     nll   CPU s",
    ]
    rows = []
    for seed in SEEDS:
        task = load_task("spiral", seed)
        settings = {"learning_rate": 0.1, "min_samples_leaf": 20, "shrink": 0.02}
        found = chain(task, seed, "catboost", schedule=CosineCycle(length=100), **settings)
        rows.append([found["ku"], found["fit"], found["nll"], found["cpu"]])
        lines.append("{:4d}    {:.3f}   {:.3f}   {:.3f}   {:5.1f}".format(seed, *rows[-1]))
        print(lines[-1])
    lines.append("mean    {:.3f}   {:.3f}   {:.3f}   {:5.1f}".format(*np.mean(rows, axis=0)))
    (RESULTS / "spiral_catboost.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
