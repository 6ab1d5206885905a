"""Knowledge uncertainty under shift: six tasks, three seeds, chains of ours and their peers.

``python benchmarks/shift.py --tasks covtype gas --methods "LightGBM cSGLB"`` runs what is missing from
``results/shift.json``; ``--table`` writes ``results/shift.txt`` from it. One thread, CPU seconds.

Settings of the samplers of CatBoost and hessboost are chosen by the validation log score. The chains of
ours are not tuned: the estimators' defaults (temperature 1), with as many trees as the peers'.
hessboost needs Python 3.12: the environment variable ``BOOSTPLUGINS_HESSBOOST_PYTHON`` names an
interpreter that has it; without one it is left out.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import re
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shift_methods import METHODS, chain, parts_of, score_raw
from shift_report import SEEDS, new_seeds, table, targets
from shift_tasks import TASKS, load_task

__all__ = ["METHODS", "chain", "parts_of", "read_store", "run", "score_raw"]

RESULTS = Path(__file__).resolve().parent / "results"
STORE = RESULTS / "shift.json"


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
                done = read_store().get("done", {}).get(f"{name}/{seed}", [])
                if not re.fullmatch(methods, method) or (method in done and not again):
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    rows = function(task, seed)
                if rows:
                    _keep(f"{name}/{seed}", method, rows)
                for row, values in rows.items():
                    shown = " ".join(f"{key} {value:.3f}" for key, value in values.items())
                    print(f"{name:8s} {seed} {row:40s} {shown}", flush=True)


def _keep(key: str, method: str, rows: dict[str, dict[str, float]]) -> None:
    def change(held: dict[str, Any]) -> None:
        done = held.setdefault("done", {})
        done[key] = sorted({*done.get(key, []), method, *rows})
        for row, values in rows.items():
            kept = {name: round(float(value), 5) for name, value in values.items()}
            held.setdefault("rows", {}).setdefault(row, {})[key] = kept

    _update(change)


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
    rows = read_store()["rows"]
    text = "\n".join([*table(rows), *targets(rows), *new_seeds(rows)]) + "\n"
    print(text)
    (RESULTS / "shift.txt").write_text(text)


if __name__ == "__main__":
    main()
