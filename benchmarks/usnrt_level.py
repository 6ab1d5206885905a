"""How often each split test divides a node without need, and how often with need.

Root nodes of the whole procedure (splitting network with early stopping, residuals of all rows):
3000 rows, 8 features, 300 rows a side at least, alpha = 0.01. Under the null the noise has one
variance; under the alternative its standard deviation is 1.15 times larger in one half. Permuted
residuals have no relation to the features whatever the network did: a second null.
Run: ``OMP_NUM_THREADS=1 python benchmarks/usnrt_level.py [runs]``.
"""

from __future__ import annotations

import math
import platform
import sys
import time
from importlib.metadata import version

import numpy as np
from scipy import stats

from boostplugins import USNRTRegressor
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


def rate(found, runs):
    """A share of runs with its 95 % interval (Clopper and Pearson)."""
    trials = runs * len(found)
    hits = round(sum(found) * runs)
    low = stats.beta.ppf(0.025, hits, trials - hits + 1) if hits else 0.0
    high = stats.beta.ppf(0.975, hits + 1, trials - hits) if hits < trials else 1.0
    return f"{hits / trials:.3f} [{low:.3f}, {high:.3f}] of {trials}"


def conclude(shares, runs):
    """False-alarm rates, power, and the default."""
    null = [found for (_, ratio), found in shares.items() if ratio == 1.0]
    other = [found for (_, ratio), found in shares.items() if ratio != 1.0]
    print(f"False alarms at alpha = {ALPHA}, with 95 % intervals:")
    alarms = {}
    for name, own, permuted in (("levene", 0, 2), ("levene-adjusted", 1, 3)):
        alarms[name] = np.mean([found[permuted] for found in null + other])
        print(f"   {name:16s} network's residuals {rate([found[own] for found in null], runs)};", end=" ")
        print(f"permuted {rate([found[permuted] for found in null + other], runs)}")
    print("   (the network has seen four fifths of the rows, so its own residuals need not be quite alike)")
    print(f"Power at a ratio of 1.15: levene-adjusted {rate([found[1] for found in other], runs)}")
    default = USNRTRegressor().split_test
    best = min(alarms, key=alarms.get)
    agrees = "as measured here" if default == best else f"AGAINST what is measured here ({best})"
    print(f"Default of split_test: {default!r}, for its fewer false alarms: {agrees}.")


def main():
    """Print the table and what follows from it."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print(f"Python {platform.python_version()}, numba {version('numba')}; {runs} runs a row, alpha {ALPHA}")
    print("Share of roots that each test divides. Needless where the ratio of standard deviations is 1, and")
    print("for permuted residuals whatever the ratio; rightly for the network's residuals at 1.15.")
    print(f"{'':44s}network's residuals      the same, permuted")
    head = f"{'noise':14s}{'sd ratio':>10s}{'':20s}"
    print(head + f"{'levene':>9s}{'adjusted':>10s}{'levene':>15s}{'adjusted':>10s}")
    begin, shares = time.process_time(), {}
    with one_blas_thread():
        for noise in NOISES:
            for ratio in (1.0, 1.15):
                a, b, c, d = np.mean([splits(noise, ratio, seed) for seed in range(runs)], axis=0)
                print(f"{noise:14s}{ratio:10.2f}{'':20s}{a:9.2f}{b:10.2f}{c:15.2f}{d:10.2f}", flush=True)
                shares[noise, ratio] = (a, b, c, d)
    conclude(shares, runs)
    print(f"CPU seconds in all: {time.process_time() - begin:.0f}")


if __name__ == "__main__":
    main()
