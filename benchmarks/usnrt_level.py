"""How often each split test divides a node without need, and how often with need.

Root nodes of the whole procedure (splitting network with early stopping, residuals of all rows):
3000 rows, 8 features, 300 rows a side at least, alpha = 0.01. Under the null the noise has one
variance; under the alternative its standard deviation is 1.15 times larger in one half.
Run: ``OMP_NUM_THREADS=1 python benchmarks/usnrt_level.py [runs]``.
"""

from __future__ import annotations

import math
import platform
import sys
import time
from importlib.metadata import version

import numpy as np

from boostplugins.usnrt.network import Training
from boostplugins.usnrt.pair import Sample, train_mean
from boostplugins.usnrt.splits import best_split
from boostplugins.usnrt.workers import one_blas_thread

N, D, LEAST, ALPHA = 3000, 8, 300, 0.01
NOISES = {
    "normal": lambda rng: rng.standard_normal(N),
    "student 5": lambda rng: rng.standard_t(5, N) / math.sqrt(5 / 3),
    "exponential": lambda rng: rng.standard_exponential(N) - 1,
}


def splits(noise, ratio, seed):
    """Whether each test divides the root of one simulated sample."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)).astype(np.float32)
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] / 2 + NOISES[noise](rng) * np.where(X[:, 3] < 0, 1.0, ratio)
    y = ((y - y.mean()) / y.std()).astype(np.float32)
    sample = Sample(X, y, np.ones(N, dtype=np.float32))
    held_out = np.arange(N) < N // 5
    training = Training(patience=10, drops=1)
    network = train_mean(
        (8 * D, 4 * D), sample, np.flatnonzero(~held_out), np.flatnonzero(held_out), training, rng
    )
    residual = (y - network.predict(X)).astype(np.float64)
    found = []
    for e in (residual, np.random.default_rng(seed).permutation(residual)):
        for test in ("levene", "levene-adjusted"):
            best = best_split(X.astype(np.float64), [0] * D, e, LEAST, test)
            found.append(best.log_p <= math.log(ALPHA))
    return found


def main():
    """Print the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print(f"Python {platform.python_version()}, numba {version('numba')}; {runs} runs a row, alpha {ALPHA}")
    print(f"{'':44s}network's residuals      the same, permuted")
    head = f"{'noise':14s}{'sd ratio':>10s}{'':20s}"
    print(head + f"{'levene':>9s}{'adjusted':>10s}{'levene':>15s}{'adjusted':>10s}")
    begin = time.process_time()
    with one_blas_thread():
        for noise in NOISES:
            for ratio in (1.0, 1.15):
                a, b, c, d = np.mean([splits(noise, ratio, seed) for seed in range(runs)], axis=0)
                print(f"{noise:14s}{ratio:10.2f}{'':20s}{a:9.2f}{b:10.2f}{c:15.2f}{d:10.2f}", flush=True)
    print(f"CPU seconds in all: {time.process_time() - begin:.0f}")


if __name__ == "__main__":
    main()
