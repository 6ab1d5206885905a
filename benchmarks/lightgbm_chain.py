"""Seconds a tree of the chain on LightGBM, beside LightGBM's own losses and CatBoost's chain.

    python benchmarks/lightgbm_chain.py [--quick] [--threads 2]

Each line is a process of its own: rows, raw scores K, threads, processor and wall seconds an
iteration (the first two left out), ratio to LightGBM's own loss, and the memory that training takes
above that of the data set and the compiled code (less what the freed rows leave). Same trees for all:
31 leaves, 255 bins, 10 features. The chain has a cosine schedule, a mask and noise; its leaves share the
noise of the structure or have a draw of their own. CatBoost's chain of three classes is timed at 20 000
rows (depth 5, 32 leaves). Threads wait passively (OMP_WAIT_POLICY), or a busy machine would count their
waiting as work.
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
from importlib.metadata import version
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results" / "lightgbm_chain.txt"
WARM_UP = 2
ITERATIONS = {10_000: 60, 20_000: 60, 100_000: 30, 1_000_000: 8, 5_000_000: 5}


def data(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Make rows and labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10)).astype(np.float32)
    signal = X[:, 0] + np.sin(2 * X[:, 1]) + rng.normal(size=n)
    return X, signal if k == 1 else np.digitize(signal, [-0.8, 0.8]).astype(float)


class Clock:
    """Times iterations from the end of the warm-up on."""

    before_iteration = False
    order = 50
    memory = 0.0

    def __call__(self, env) -> None:  # type: ignore[no-untyped-def]
        """Note the time after an iteration."""
        self.after(env.iteration - env.begin_iteration + 1)

    def after_iteration(self, info) -> bool:  # type: ignore[no-untyped-def]
        """Do the same for CatBoost."""
        self.after(info.iteration)
        return True

    def after(self, done: int) -> None:
        """Start after the warm-up, then keep the last time."""
        now = (time.process_time(), time.perf_counter(), done)
        self.memory = max(self.memory, memory())
        if done == WARM_UP:
            self.start = now
        self.end = now

    def seconds(self) -> tuple[float, float]:
        """Processor and wall seconds an iteration."""
        steps = self.end[2] - self.start[2]
        return (self.end[0] - self.start[0]) / steps, (self.end[1] - self.start[1]) / steps


def run(kind: str, n: int, k: int, threads: int) -> dict[str, float]:
    """Train and time one configuration."""
    from boostplugins import BernoulliMask, CosineCycle
    from boostplugins.losses import Softmax, SquaredError

    X, y = data(n, k)
    clock = Clock()
    steps = ITERATIONS[n] + WARM_UP
    loss = SquaredError(1.0) if k == 1 else Softmax(3)
    options = {"schedule": CosineCycle(length=20), "mask": BernoulliMask(0.66)}
    if kind == "catboost":
        from catboost import CatBoostClassifier

        from boostplugins.catboost import CyclicalSGLB as Chain

        chain = Chain(loss, **options)
        model = CatBoostClassifier(
            loss_function=chain,
            eval_metric="MultiClass",
            iterations=steps,
            depth=5,
            learning_rate=0.1,
            verbose=False,
            allow_writing_files=False,
            **chain.catboost_params(),
        )
        model.fit(X, y, callbacks=[chain.callback(), clock])
        return {"cpu": clock.seconds()[0], "wall": clock.seconds()[1], "memory": 0.0}

    import lightgbm as lgb

    from boostplugins.lightgbm import CyclicalSGLB

    params = {"verbosity": -1, "num_threads": threads, "num_leaves": 31, "force_col_wise": True}
    callbacks = [clock]
    if kind == "built-in":
        params |= {"objective": "regression"} if k == 1 else {"objective": "multiclass", "num_class": 3}
    else:
        chain = CyclicalSGLB(loss, leaf_noise=kind, **options)
        params |= {"objective": chain} | chain.lightgbm_params()
        callbacks.append(chain.callback())
    if kind != "built-in":  # compile
        few = slice(None, 3000)
        lgb.train(params, lgb.Dataset(X[few], y[few]), 2, callbacks=[chain.callback()])
    train_set = lgb.Dataset(X, y, params={"verbosity": -1, "num_threads": threads}).construct()
    del X
    before = memory()
    lgb.train(params, train_set, steps, callbacks=callbacks)
    cpu, wall = clock.seconds()
    return {"cpu": cpu, "wall": wall, "memory": clock.memory - before}


def memory() -> float:
    """Memory that this process holds, in megabytes (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def measure(kind: str, n: int, k: int, threads: int) -> dict[str, float]:
    """Run one configuration in a process of its own."""
    environment = os.environ | {"OMP_NUM_THREADS": str(threads), "NUMBA_NUM_THREADS": "1"}
    environment["OMP_WAIT_POLICY"] = "PASSIVE"
    command = [sys.executable, __file__, "--one", json.dumps([kind, n, k, threads])]
    out = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return json.loads(out.splitlines()[-1])


def main() -> None:
    """Measure all configurations and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10 000 rows only, nothing is written")
    parser.add_argument("--threads", type=int, choices=(1, 2), help="only these; 2 has a file of its own")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(run(*json.loads(arguments.one))))
        return
    sizes = [10_000] if arguments.quick else [10_000, 100_000, 1_000_000]
    cases = [(n, k, 1) for k in (1, 3) for n in sizes]
    if not arguments.quick:
        cases.append((5_000_000, 1, 1))
    cases += [(n, k, 2) for k in (1, 3) for n in sizes]
    cases = [case for case in cases if arguments.threads in (None, case[2])]
    names = ", ".join(f"{name} {version(name)}" for name in ("lightgbm", "catboost", "numba", "numpy"))
    lines = [
        f"Python {platform.python_version()}, {names}",
        f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start",
        "",
        f"{'rows':>9} {'K':>2} {'threads':>7} {'leaves':>12} {'cpu ms':>9} {'wall ms':>9} "
        f"{'cpu ratio':>9} {'wall ratio':>10} {'MB':>7}",
    ]
    print("\n".join(lines), flush=True)

    def show(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    for n, k, threads in cases:
        plain = None
        for kind in ("built-in", "shared", "independent"):
            found = measure(kind, n, k, threads)
            plain = plain or found
            cpu, wall = found["cpu"] * 1e3, found["wall"] * 1e3
            show(
                f"{n:>9} {k:>2} {threads:>7} {kind:>12} {cpu:>9.2f} {wall:>9.2f} "
                f"{found['cpu'] / plain['cpu']:>9.2f} {found['wall'] / plain['wall']:>10.2f} "
                f"{found['memory']:>7.0f}"
            )
    ours = measure("shared", 20_000, 3, 1)
    theirs = measure("catboost", 20_000, 3, 1)
    show("")
    show(
        f"K = 3 at 20 000 rows, one thread: LightGBM {ours['cpu'] * 1e3:.1f} ms, CatBoost's chain "
        f"{theirs['cpu'] * 1e3:.1f} ms an iteration: {theirs['cpu'] / ours['cpu']:.0f} times"
    )
    if not arguments.quick:
        RESULTS.parent.mkdir(exist_ok=True)
        path = RESULTS.with_stem("lightgbm_chain_2_threads") if arguments.threads == 2 else RESULTS
        path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
