"""The trade between fit and knowledge uncertainty: the prior's in-domain cost from nothing to much.

LightGBM cSGLB, one seed, defaults (Normal likelihood in regression); only
`RandomPrior(in_domain=...)` varies, in units of the noise. ``python benchmarks/shift_curve.py`` writes
``results/shift_curve.txt``.
"""

from __future__ import annotations

import json
import platform
import warnings
from pathlib import Path

import lightgbm as lgb
import numpy as np
import shift
from shift_tasks import load_task

RESULTS = Path(__file__).resolve().parent / "results"
STORE = RESULTS / "shift_curve.json"
COSTS = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6)


def main() -> None:
    """Run what is missing, print and write."""
    warnings.simplefilter("ignore")
    RESULTS.mkdir(exist_ok=True)
    held = json.loads(STORE.read_text()) if STORE.exists() else {}
    lines = [
        "KU AUC, accuracy or RMSE, negative log score, by the prior's in-domain cost; seed 0",
        f"{platform.machine()} {platform.system()}, Python {platform.python_version()}; lightgbm "
        f"{lgb.__version__}, numpy {np.__version__}",
        "",
        f"{'':10s}" + "".join(f"{cost:>22g}" for cost in COSTS),
    ]
    for name in ("covtype", "beijing", "wine", "gas", "bike"):
        task = load_task(name, 0)
        for cost in COSTS:
            key = f"{name}/{cost:g}"
            if key not in held:
                run = shift.chain("lightgbm", "cSGLB", cost > 0, 1, normal=not task.n_classes, cost=cost)
                (row,) = run(task, 0).values()
                held[key] = {k: round(float(v), 5) for k, v in row.items()}
                STORE.write_text(json.dumps(held, indent=0, sort_keys=True) + "\n")
        rows = [held[f"{name}/{cost:g}"] for cost in COSTS]
        cells = (f"{row['ku']:.3f} {row['fit']:.3f} {row['nll']:.3f}" for row in rows)
        lines.append(f"{name:10s}" + "".join(f"{cell:>22s}" for cell in cells))
        print(lines[-1], flush=True)
    (RESULTS / "shift_curve.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
