"""HBART against BART on the simulations and data of Bleich and Kapelner (2014), with measured peers.

Run: ``python benchmarks/hbart_paper.py [replicates] [figure-3 replicates]``; the table is printed and
kept in benchmarks/results/hbart_paper.txt. Coverage and interval score are exact expectations over
responses at the test rows, not over one draw of them.
"""

from __future__ import annotations

import platform
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import norm

from boostplugins import BARTRegressor, HBARTRegressor
from boostplugins.datasets import load_staged, staged_folder
from boostplugins.estimators._bart_base import MixingWarning
from boostplugins.hbart.polynomials import OrthogonalPolynomials

BUDGET = {"n_burn": 250, "n_draws": 1000, "n_chains": 1}  # what the peers were given
MODELS = {
    "BART": lambda seed: BARTRegressor(**BUDGET, random_state=seed),
    "HBART": lambda seed: HBARTRegressor(**BUDGET, random_state=seed),
    "HBART, leaf 1": lambda seed: HBARTRegressor(**BUDGET, random_state=seed, min_samples_leaf=1),
    "HBART forest": lambda seed: HBARTRegressor(variance="forest", **BUDGET, random_state=seed),
    "HBART, 4 chains": lambda seed: HBARTRegressor(random_state=seed),
}
# Authors' Java, and stochtree with a variance forest: RMSE of f, coverage, interval score; means over
# 8 to 11 replicates of the same design, measured once elsewhere.
PEERS = {
    "eq. 12": {"Java HBART": (3.16, 0.880, 40.3), "stochtree": (2.71, 0.887, 40.7)},
    "eq. 14/15": {"Java HBART": (3.06, 0.886, 50.5), "stochtree": (2.58, 0.896, 50.8)},
    "eq. 13 (sd 5)": {"Java HBART": (2.01, None, None), "stochtree": (1.88, None, None)},
    "eq. 14 (sd 3)": {"Java HBART": (1.82, None, 14.8), "stochtree": (1.89, None, None)},
}


def univariate(rng, n, hetero):
    x = np.linspace(0.0, 1.0, n)
    return x[:, None], 100.0 * x, np.exp(3.5 * x) if hetero else np.full(n, 5.0)


def multivariate(rng, n, hetero):
    X = rng.uniform([0.0, 10.0, 0.0], [400.0, 23.0, 10.0], size=(n, 3))
    f = -35.0 + 0.35 * X[:, 0] - 1.7 * X[:, 1]
    return X, f, np.exp(0.5 * (-6.0 + 0.03 * X[:, 0] + 0.4 * X[:, 2])) if hetero else np.full(n, 3.0)


DESIGNS = {
    "eq. 12": (univariate, 250, True),
    "eq. 14/15": (multivariate, 500, True),
    "eq. 13 (sd 5)": (univariate, 250, False),
    "eq. 14 (sd 3)": (multivariate, 500, False),
}


def interval_truth(interval, f, sd, level=0.9):
    """Exact coverage and expected interval score of intervals for N(f, sd)."""
    low, high = (interval.T - f) / sd
    below = norm.pdf(low) + low * norm.cdf(low)  # E (low - Z)+
    above = norm.pdf(high) - high * norm.sf(high)
    score = sd * (high - low + 2.0 / (1.0 - level) * (below + above))
    return norm.cdf(high) - norm.cdf(low), score


def simulate(design, replicates, out):
    make, n, hetero = DESIGNS[design]
    found = {name: [] for name in MODELS}
    gammas = []
    for seed in range(replicates):
        rng = np.random.default_rng(1000 + seed)
        X, f, sd = make(rng, n, hetero)
        y = f + sd * rng.standard_normal(n)
        test, truth, noise = make(rng, 500, hetero)
        for name, build in MODELS.items():
            start = time.process_time()
            model = build(seed).fit(X, y)
            seconds = time.process_time() - start
            error = np.sqrt(np.mean((model.predict(test) - truth) ** 2))
            inside, score = interval_truth(model.predict_interval(test), truth, noise)
            order = np.argsort(noise, kind="stable")
            thirds = inside[order[:167]].mean(), inside[order[-167:]].mean()
            found[name].append((error, inside.mean(), *thirds, score.mean(), seconds))
            if name == "HBART":
                gammas.append(np.quantile(model.posterior_draws()["gamma"][0], [0.05, 0.5, 0.95], axis=0))
    out(f"\n{design}: n = {n}, {replicates} replicates; means (standard error)")
    heads = f"{'':18}{'RMSE f':>14}{'coverage .90':>20}{'low/high third':>16}"
    out(heads + f"{'interval score':>18}{'fit CPU s':>11}")
    for name, rows in found.items():
        rows = np.array(rows)
        m, se = rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
        out(
            f"{name:18}{m[0]:8.2f} ({se[0]:.2f}){m[1]:13.3f} ({se[1]:.3f}){m[2]:9.2f}/{m[3]:.2f}"
            f"{m[4]:12.1f} ({se[4]:.1f}){m[5]:10.2f}"
        )
    for name, (error, cover, score) in PEERS[design].items():
        cover, score = (f"{v:.3f}" if v else "-" for v in (cover, score))
        out(f"{'* ' + name:18}{error:8.2f}{cover:>20}{'':16}{score:>12}")
    gammas = np.array(gammas)
    truth = {"eq. 12": [7.0], "eq. 14/15": [0.03, 0.0, 0.4]}.get(design)
    for j, true in enumerate(truth or []):
        low, middle, high = gammas[:, :, j].T
        out(
            f"  gamma {j + 1}: median {middle.mean():.4f}, 90 % interval {(high - low).mean():.4f} wide, "
            f"holds {true:g} in {int(((low < true) & (true < high)).sum())} of {len(middle)}"
        )


def figure_three(replicates, out):
    out(f"\nFigure 3: RMSE on noisy test responses, {replicates} replicates (paper: 100), quartiles")
    for hetero in (True, False):
        found = {"BART": [], "HBART": []}
        for seed in range(replicates):
            rng = np.random.default_rng(5000 + seed)
            X, f, sd = multivariate(rng, 500, hetero)
            y = f + sd * rng.standard_normal(500)
            test, truth, noise = multivariate(rng, 500, hetero)
            fresh = truth + noise * rng.standard_normal(500)
            for name, rows in found.items():
                rows.append(np.sqrt(np.mean((MODELS[name](seed).fit(X, y).predict(test) - fresh) ** 2)))
        for name, rows in found.items():
            out(
                f"  {'eq. 15' if hetero else 'sd 3':8}{name:8}"
                + "".join(f"{q:8.2f}" for q in np.quantile(rows, [0.25, 0.5, 0.75]))
            )
        wins = int((np.array(found["HBART"]) < np.array(found["BART"])).sum())
        out(f"  HBART is better in {wins} of {replicates}")


def real_data(out):
    if staged_folder() is None:
        out("\nLIDAR and motorcycle: no staged data at hand")
        return
    out("\nReal data, 5 shuffled folds: mean log density, coverage of the 90 % interval, its mean width")
    for data in ("lidar", "mcycle"):
        X, y, *_ = load_staged(data)
        X, y = X.to_numpy(dtype=float), y.to_numpy(dtype=float)
        fold = np.random.default_rng(0).permutation(len(y)) % 5
        models = {
            "BART": lambda: BARTRegressor(**BUDGET, random_state=0),
            "HBART, quadratic": lambda: HBARTRegressor(
                variance_features=OrthogonalPolynomials(2), **BUDGET, random_state=0
            ),
            "HBART forest": lambda: HBARTRegressor(variance="forest", **BUDGET, random_state=0),
        }
        for name, build in models.items():
            score, inside, width = [], [], []
            for k in range(5):
                model = build().fit(X[fold != k], y[fold != k])
                score.append(model.predict_dist(X[fold == k]).log_pdf(y[fold == k]))
                low, high = model.predict_interval(X[fold == k]).T
                inside.append((low < y[fold == k]) & (y[fold == k] < high))
                width.append(high - low)
            score, inside, width = (np.concatenate(part) for part in (score, inside, width))
            out(f"  {data:8}{name:18}{score.mean():9.3f}{inside.mean():8.3f}{width.mean():10.3f}")


def main():
    warnings.simplefilter("ignore", MixingWarning)
    replicates = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    lines = []

    def out(line):
        print(line, flush=True)
        lines.append(line)

    out(f"numpy {np.__version__}, Python {platform.python_version()}, {platform.machine()}, one thread")
    out("50 trees; 250 + 1000 iterations of one chain, unless '4 chains' (the default: 4 x (250 + 250))")
    out("* measured once elsewhere, on other draws of the same design")
    for design in DESIGNS:
        simulate(design, replicates, out)
    figure_three(int(sys.argv[2]) if len(sys.argv) > 2 else 100, out)
    real_data(out)
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    (folder / "hbart_paper.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
