"""CPU time of BART and HBART against other implementations, on one machine in one run.

Heteroskedastic Friedman #1, n = 10 000, p = 10, 250 + 1000 iterations of one chain, one thread; the
error of f and the interval score on 1000 test rows show that all sample the same kind of posterior.

Run: ``python benchmarks/bart_speed.py``. A peer whose RMSE of f is far from the others' (about 0.5) was
not run properly and must not be compared. Peers run where the environment variable BART_PEERS_PYTHON
names a Python that has them (stochtree, bartz). The table is kept in
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
from pathlib import Path

import numpy as np

BURN, DRAWS = 250, 1000


def friedman(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 10))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    sd = np.exp(0.5 * (-1.0 + 2.0 * X[:, 0] + 2.0 * X[:, 5]))
    return X, f, sd, f + sd * rng.standard_normal(n)


def report(seconds, f_hat, low_high, prediction=None, first=None):
    """What a peer's process prints: a line of JSON."""
    _, f, _, fresh = friedman(1000, 2)
    row = {"cpu": seconds, "rmse": float(np.sqrt(np.mean((f_hat - f) ** 2)))}
    if low_high is not None:
        low, high = low_high
        missed = np.maximum(low - fresh, 0) + np.maximum(fresh - high, 0)
        row["score"] = float(np.mean(high - low + 20.0 * missed))
    row |= {"predict": prediction, "first": first}
    row["rss"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print("ROW " + json.dumps(row), flush=True)


def run_ours(kind, m):
    from boostplugins import HBARTRegressor
    from boostplugins.estimators._bart_base import MixingWarning

    warnings.simplefilter("ignore", MixingWarning)
    X, _, _, y = friedman(10_000, 1)
    arguments = {"n_trees": m, "n_chains": 1, "variance": kind, "random_state": 0}
    start = time.process_time()
    HBARTRegressor(**{**arguments, "n_burn": 2, "n_draws": 2}).fit(X[:100], y[:100]).predict_interval(X[:5])
    first = time.process_time() - start
    start = time.process_time()
    model = HBARTRegressor(**arguments, n_burn=BURN, n_draws=DRAWS).fit(X, y)
    seconds = time.process_time() - start
    start = time.process_time()
    model.predict(X)
    prediction = time.process_time() - start
    test = friedman(1000, 2)[0]
    report(seconds, model.predict(test), model.predict_interval(test).T, prediction, first)


def run_stochtree(kind, m):
    from stochtree import BARTModel

    X, _, _, y = friedman(10_000, 1)
    test = friedman(1000, 2)[0]
    model = BARTModel()
    variance = {"num_trees": 20 if kind == "forest" else 0}
    start = time.process_time()
    model.sample(
        X_train=X,
        y_train=y,
        num_gfr=0,
        num_burnin=BURN,
        num_mcmc=DRAWS,
        general_params={"num_threads": 1, "random_seed": 1},
        mean_forest_params={"num_trees": m},
        variance_forest_params=variance,
    )
    seconds = time.process_time() - start
    start = time.process_time()
    found = model.predict(X=test, type="posterior", terms="y_hat")
    prediction = 10 * (time.process_time() - start)
    found = np.asarray(found["y_hat"] if isinstance(found, dict) else found)
    report(seconds, found.mean(axis=1), None, prediction)


def run_bartz(kind, m):
    import bartz
    import jax

    del kind
    X, _, _, y = friedman(10_000, 1)
    test = friedman(1000, 2)[0]
    build = getattr(bartz, "BART", None)
    build = build.gbart if hasattr(build, "gbart") else __import__("bartz.BART", fromlist=["gbart"]).gbart
    options = {"ntree": m, "nskip": BURN, "ndpost": DRAWS, "printevery": 0}

    def fit(seed):
        start = time.process_time()
        model = build(X, y, x_test=test, seed=seed, **options)
        jax.block_until_ready(model.yhat_test)
        return model, time.process_time() - start

    first = fit(0)[1]
    model, seconds = fit(1)
    report(seconds, np.asarray(model.yhat_test).mean(axis=0), None, None, first)


TASKS = [
    ("boostplugins BART", "ours", "constant", 50),
    ("boostplugins BART", "ours", "constant", 200),
    ("boostplugins HBART log-linear", "ours", "log-linear", 50),
    ("boostplugins HBART log-linear", "ours", "log-linear", 200),
    ("boostplugins HBART forest", "ours", "forest", 50),
    ("bartz BART", "bartz", "constant", 50),
    ("stochtree BART", "stochtree", "constant", 50),
    ("stochtree variance forest", "stochtree", "forest", 50),
]


def run_task(python, what, kind, m):
    threads = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    threads["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    command = [python, __file__, what, kind, str(m)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **threads}, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("ROW "):
            return json.loads(line[4:])
    return {"error": (done.stderr.strip().splitlines() or ["no output"])[-1][:90]}


def main():
    peers = os.environ.get("BART_PEERS_PYTHON")
    lines = []

    def out(line):
        print(line, flush=True)
        lines.append(line)

    versions = f"numpy {np.__version__}, numba {__import__('numba').__version__}"
    if peers:
        code = (
            "from importlib.metadata import version as v; print(*((n, v(n)) for n in ('stochtree', 'bartz')))"
        )
        versions += ", " + subprocess.check_output([peers, "-c", code], text=True).strip()
    out(f"{versions}; Python {platform.python_version()}, {platform.machine()}, one thread, CPU seconds")
    out("n = 10 000, p = 10, 250 + 1000 iterations; a busy machine shared with other work")
    heads = f"{'':34}{'trees':>6}{'fit':>8}{'predict 10k':>13}{'RMSE f':>8}{'score':>8}"
    out(heads + f"{'RSS MB':>8}{'first call':>12}")
    for name, what, kind, m in TASKS:
        if what != "ours" and not peers:
            continue
        row = run_task(sys.executable if what == "ours" else peers, what, kind, m)
        if "error" in row:
            out(f"{name:34}{m:6}  failed: {row['error']}")
            continue
        cells = [f"{row['cpu']:8.2f}"]
        for key, width, digits in (
            ("predict", 13, 2),
            ("rmse", 8, 3),
            ("score", 8, 2),
            ("rss", 8, 0),
            ("first", 12, 1),
        ):
            value = row.get(key)
            cells.append(f"{value:{width}.{digits}f}" if value is not None else "-".rjust(width))
        out(f"{name:34}{m:6}" + "".join(cells))
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    (folder / "bart_speed.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if len(sys.argv) == 4:
        {"ours": run_ours, "stochtree": run_stochtree, "bartz": run_bartz}[sys.argv[1]](
            sys.argv[2], int(sys.argv[3])
        )
    else:
        main()
