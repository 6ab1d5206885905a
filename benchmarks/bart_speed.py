"""CPU time and memory of BART and HBART against other implementations, on one machine.

Heteroskedastic Friedman #1, n = 10 000, p = 10, 250 + 1000 iterations of one chain, one thread; the
error of f and the interval score on 1000 test rows show that all sample the same kind of posterior.

Run: ``python benchmarks/bart_speed.py [WORD...]``: only the rows whose name holds a word are run again,
the others are taken from benchmarks/results/bart_speed.json. A row run again that gives the same answers
keeps the lower CPU figures, since other work on the machine only adds to them. Peers run where the
environment variable BART_PEERS_PYTHON names a Python that has them (stochtree, bartz). The table is kept in
benchmarks/results/bart_speed.txt.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

BURN, DRAWS = 250, 1000
RESULTS = Path(__file__).parent / "results"


def friedman(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 10))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    sd = np.exp(0.5 * (-1.0 + 2.0 * X[:, 0] + 2.0 * X[:, 5]))
    return X, f, sd, f + sd * rng.standard_normal(n)


def peak():
    """Largest resident size of this process so far, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(**row):
    """What a task's process prints: a line of JSON."""
    print("ROW " + json.dumps({**row, "rss": peak()}), flush=True)


def accuracy(f_hat, low_high=None):
    _, f, _, fresh = friedman(1000, 2)
    row = {"rmse": float(np.sqrt(np.mean((f_hat - f) ** 2)))}
    if low_high is not None:
        low, high = low_high
        missed = np.maximum(low - fresh, 0) + np.maximum(fresh - high, 0)
        row["score"] = float(np.mean(high - low + 20.0 * missed))
    return row


def clocked(call):
    start = time.process_time()
    result = call()
    return result, time.process_time() - start


def chain(kind, m, n_burn=BURN, n_draws=DRAWS, **more):
    from boostplugins import HBARTRegressor
    from boostplugins.estimators._bart_base import MixingWarning

    warnings.simplefilter("ignore", MixingWarning)
    settings = {"n_chains": 1, "variance": kind, "random_state": 0} | more
    return HBARTRegressor(n_trees=m, n_burn=n_burn, n_draws=n_draws, **settings)


def warm_up(kind, m):
    X, _, _, y = friedman(100, 1)
    chain(kind, m, 2, 2).fit(X, y).predict_interval(X[:5])


def run_ours(kind, m):
    X, _, _, y = friedman(10_000, 1)
    _, first = clocked(lambda: warm_up(kind, m))
    loaded = peak()
    model, seconds = clocked(lambda: chain(kind, m).fit(X, y))
    fitted = peak()
    _, prediction = clocked(lambda: model.predict(X))
    test = friedman(1000, 2)[0]
    row = accuracy(model.predict(test), model.predict_interval(test).T)
    report(cpu=seconds, predict=prediction, first=first, loaded=loaded, fitted=fitted, **row)


def run_slim(kind, m):
    """Without pyarrow, which pandas imports where it is installed and nothing here needs."""
    sys.modules["pyarrow"] = None
    run_ours(kind, m)


def first_entry(x):
    return x[0]


def run_floor(kind, m):
    """What any estimator of scikit-learn with a compiled kernel takes: their imports, and an empty kernel."""
    del m
    if kind == "slim":
        sys.modules["pyarrow"] = None
    import sklearn.base  # noqa: F401
    from numba import njit

    njit(cache=True)(first_entry)(np.zeros(3))
    report()


def run_large(kind, m):
    n = int(os.environ["BART_SPEED_ROWS"])
    warm_up(kind, m)
    X, _, _, y = friedman(n, 1)
    before = peak()
    _, seconds = clocked(lambda: chain(kind, m, 50, 50).fit(X, y))
    report(cpu=seconds, before=before)


def fit_one(seed):
    X, _, _, y = friedman(10_000, 1)
    chain("log-linear", 50, random_state=seed).fit(X, y)


def run_chains(kind, m):
    """Wall and CPU seconds of two chains: one after the other, in two threads, in two processes."""
    warm_up(kind, m)
    X, _, _, y = friedman(10_000, 1)
    found = {}
    for name, jobs in (("serial", 1), ("threads", 2)):
        start, cpu = time.perf_counter(), time.process_time()
        chain(kind, m, n_chains=2, n_jobs=jobs).fit(X, y)
        found[name] = time.perf_counter() - start, time.process_time() - cpu
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        list(pool.map(fit_one, [0, 1]))  # workers load
        start = time.perf_counter()
        list(pool.map(fit_one, [0, 1]))
        found["processes"] = (time.perf_counter() - start,)
    report(**{f"{name} {part}": value for name, pair in found.items() for part, value in zip(PARTS, pair)})


PARTS = ("wall", "cpu")


def run_stochtree(kind, m):
    from stochtree import BARTModel

    X, _, _, y = friedman(10_000, 1)
    test = friedman(1000, 2)[0]
    model = BARTModel()
    _, seconds = clocked(
        lambda: model.sample(
            X_train=X,
            y_train=y,
            num_gfr=0,
            num_burnin=BURN,
            num_mcmc=DRAWS,
            general_params={"num_threads": 1, "random_seed": 1},
            mean_forest_params={"num_trees": m},
            variance_forest_params={"num_trees": 20 if kind == "forest" else 0},
        )
    )
    found, prediction = clocked(lambda: model.predict(X=test, type="posterior", terms="y_hat"))
    found = np.asarray(found["y_hat"] if isinstance(found, dict) else found)
    report(cpu=seconds, predict=10 * prediction, **accuracy(found.mean(axis=1)))


def run_bartz(kind, m):
    import jax
    from bartz.BART import gbart

    del kind
    X, _, _, y = friedman(10_000, 1)
    test = friedman(1000, 2)[0]

    def fit(seed):
        # Its log must be off with None: 0 is the length of the sampler's inner loop, and runs nothing.
        model = gbart(X, y, seed=seed, ntree=m, nskip=BURN, ndpost=DRAWS, printevery=None)
        jax.block_until_ready(model.yhat_train)
        return model

    _, first = clocked(lambda: fit(0))
    model, seconds = clocked(lambda: fit(1))
    found, _ = clocked(lambda: np.asarray(model.predict(test)))
    _, prediction = clocked(lambda: jax.block_until_ready(model.predict(X)))
    report(cpu=seconds, first=first, predict=prediction, **accuracy(found.mean(axis=0)))


TASKS = [
    ("boostplugins BART", "ours", "constant", 50),
    ("boostplugins BART", "ours", "constant", 200),
    ("boostplugins HBART log-linear", "ours", "log-linear", 50),
    ("boostplugins HBART log-linear", "ours", "log-linear", 200),
    ("boostplugins HBART forest", "ours", "forest", 50),
    ("boostplugins HBART forest", "ours", "forest", 200),
    ("BART without pyarrow", "slim", "constant", 50),
    ("BART without pyarrow", "slim", "constant", 200),
    ("HBART log-linear without pyarrow", "slim", "log-linear", 50),
    ("HBART log-linear without pyarrow", "slim", "log-linear", 200),
    ("HBART forest without pyarrow", "slim", "forest", 50),
    ("HBART forest without pyarrow", "slim", "forest", 200),
    ("empty kernel", "floor", "full", 0),
    ("empty kernel without pyarrow", "floor", "slim", 0),
    ("bartz BART", "bartz", "constant", 50),
    ("bartz BART", "bartz", "constant", 200),
    ("stochtree BART", "stochtree", "constant", 50),
    ("stochtree variance forest", "stochtree", "forest", 50),
    ("BART, 250 000 rows", "large", "constant", 50),
    ("BART, 1 000 000 rows", "large", "constant", 50),
    ("HBART, 1 000 000 rows", "large", "log-linear", 50),
    ("two chains", "chains", "log-linear", 50),
]
RUNS = {
    "ours": run_ours,
    "slim": run_slim,
    "floor": run_floor,
    "large": run_large,
    "chains": run_chains,
    "stochtree": run_stochtree,
    "bartz": run_bartz,
}
PEERS = ("stochtree", "bartz")


def run_task(name, what, kind, m):
    python = os.environ.get("BART_PEERS_PYTHON") if what in PEERS else sys.executable
    if not python:
        return None
    threads = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    threads["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    threads["BART_SPEED_ROWS"] = "".join(c for c in name if c.isdigit())
    command = [python, __file__, "--task", what, kind, str(m)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **threads}, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("ROW "):
            return json.loads(line[4:])
    return {"error": (done.stderr.strip().splitlines() or ["no output"])[-1][:90]}


def main_line(name, m, row):
    if "error" in row:
        return f"{name:34}{m:6}  failed: {row['error']}"
    cells = f"{row['cpu']:8.2f}"
    for key, width, digits in (
        ("predict", 13, 2),
        ("rmse", 8, 3),
        ("score", 8, 2),
        ("rss", 8, 0),
        ("fitted", 8, 0),
        ("loaded", 8, 0),
        ("first", 12, 1),
    ):
        value = row.get(key)
        cells += f"{value:{width}.{digits}f}" if value is not None else "-".rjust(width)
    return f"{name:34}{m:6}{cells}"


def table(kept):
    yield kept["versions"] + f"; Python {platform.python_version()}, {platform.machine()}, one thread, CPU s"
    yield "n = 10 000, p = 10, 250 + 1000 iterations of one chain; a busy machine shared with other work"
    yield "RMSE f, and interval score at 90 %, on 1000 test rows: lower is better (bartz leads at 50 trees)"
    yield "RSS: peak of the process in MB, at the end, after the fit, and before it (imports, first call)"
    heads = f"{'':34}{'trees':>6}{'fit':>8}{'predict 10k':>13}{'RMSE f':>8}{'score':>8}"
    yield heads + f"{'RSS':>8}{'fit':>8}{'before':>8}{'first call':>12}"
    rows = {(name, m): kept["rows"].get(f"{name} {m}") for name, _, _, m in TASKS}
    for name, what, _, m in TASKS:
        if what in ("ours", "slim", *PEERS) and rows[name, m]:
            yield main_line(name, m, rows[name, m])
    yield ""
    yield from ratios(rows)
    floor = [rows[name, m] for name, what, _, m in TASKS if what == "floor"]
    if all(row and "rss" in row for row in floor):
        yield (
            f"RSS of scikit-learn, what it imports, and one empty numba kernel: {floor[0]['rss']:.0f} MB, "
            f"{floor[1]['rss']:.0f} MB without pyarrow"
        )
    for name, what, _, m in TASKS:
        row = rows[name, m]
        if what == "large" and row and "cpu" in row:
            rise = row["rss"] - row["before"]
            yield (
                f"{name}, 50 trees, 50 + 50 iterations: {row['cpu']:.1f} CPU s; RSS {row['before']:.0f} MB "
                f"with the data, {rise:.0f} MB more to fit"
            )
        if what == "chains" and row and "serial wall" in row:
            walls = ", ".join(f"{key} {row[f'{key} wall']:.2f}" for key in ("serial", "threads", "processes"))
            yield (
                f"Two chains of HBART, 50 trees, wall s: {walls} (CPU s {row['serial cpu']:.2f} and "
                f"{row['threads cpu']:.2f} for the first two)"
            )
            if row["serial wall"] > 1.5 * row["serial cpu"]:
                yield "  the machine was busy: these wall times tell nothing; CPU says that threads cost none"
    yield from NOTES


def ratios(rows):
    """Targets of CPU time and memory."""
    for ours, theirs, m, goal in (
        ("boostplugins BART", "stochtree BART", 50, 12),
        ("boostplugins BART", "bartz BART", 50, 3),
        ("boostplugins BART", "bartz BART", 200, 3),
        ("boostplugins HBART log-linear", "stochtree variance forest", 50, 15),
        ("boostplugins HBART forest", "stochtree variance forest", 50, 15),
    ):
        one, other = rows[ours, m], rows[theirs, m]
        if one and other and "cpu" in one and "cpu" in other:
            ratio = other["cpu"] / one["cpu"]
            yield f"{ours}, {m} trees: {ratio:.1f} times less CPU than {theirs} (target {goal})"


NOTES = [
    "pyarrow: scikit-learn imports pandas, and that pyarrow, where installed; nothing here needs it",
    "dbarts, BART (R): R is in Debian, the packages are on CRAN alone, which this machine does not reach;",
    "  measured elsewhere before, same problem: dbarts 6.8 s (50 trees), 23.7 s (200); BART 41 and 119 s",
]


def lowest(row, before):
    """Lower CPU figures of two runs that did the same."""
    if "rmse" not in row or row["rmse"] != before.get("rmse"):
        return row
    return row | {key: min(row[key], before[key]) for key in ("cpu", "predict", "first") if key in before}


def main(words):
    peers = os.environ.get("BART_PEERS_PYTHON")
    path = RESULTS / "bart_speed.json"
    kept = json.loads(path.read_text()) if path.exists() else {"rows": {}}
    versions = f"numpy {np.__version__}, numba {__import__('numba').__version__}"
    if peers:
        code = (
            "import importlib.metadata as m; print(*(n + ' ' + m.version(n) for n in ('stochtree', 'bartz')))"
        )
        versions += ", " + subprocess.check_output([peers, "-c", code], text=True).strip()
    if peers or "versions" not in kept:
        kept["versions"] = versions
    for name, what, kind, m in TASKS:
        if not words or any(word in f"{name} {m}" for word in words):
            row = run_task(name, what, kind, m)
            if what == "floor":  # the first run may have had to compile
                row = run_task(name, what, kind, m)
            if row is not None:
                row = lowest(row, kept["rows"].get(f"{name} {m}", {}))
                rows = (
                    json.loads(path.read_text())["rows"] if path.exists() else {}
                )  # rows may run side by side
                kept["rows"] = {**kept["rows"], **rows, f"{name} {m}": row}
                RESULTS.mkdir(exist_ok=True)
                path.write_text(json.dumps(kept, indent=1))
                print(f"{name} {m}: {row}", flush=True)
    lines = list(table(kept))
    print("\n".join(lines))
    (RESULTS / "bart_speed.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--task":
        RUNS[sys.argv[2]](sys.argv[3], int(sys.argv[4]))
    else:
        main(sys.argv[1:])
