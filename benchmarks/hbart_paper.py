"""HBART against BART on the simulations and data of Bleich and Kapelner (2014), with measured peers.

Run: ``python benchmarks/hbart_paper.py [--only PART...] [--models NAME...] [--seeds N] [--figure N]``.
Parts are the designs of `hbart_designs`, "figure" (their Figure 3) and "data" (LIDAR and motorcycle).
Seeds kept in benchmarks/results/hbart_paper.json are not run again unless ``--afresh`` says so. The table
of all rows kept is printed and written to benchmarks/results/hbart_paper.txt. Coverage and score are exact
expectations over responses at the test rows, not over one draw of them. stochtree is run on the same data
where the environment variable BART_PEERS_PYTHON names a Python that has it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from hbart_designs import DESIGNS, measure, multivariate, replicate

from boostplugins import BARTRegressor, HBARTRegressor
from boostplugins.datasets import load_staged, staged_folder
from boostplugins.estimators._bart_base import MixingWarning
from boostplugins.hbart.polynomials import OrthogonalPolynomials

RESULTS = Path(__file__).parent / "results"
BUDGET = {"n_burn": 250, "n_draws": 1000, "n_chains": 1}  # what the peers were given
MODELS = {
    "BART": lambda seed: BARTRegressor(**BUDGET, random_state=seed),
    "BART, k drawn": lambda seed: BARTRegressor(**BUDGET, random_state=seed, k="sample"),
    "HBART": lambda seed: HBARTRegressor(**BUDGET, random_state=seed),
    "HBART, k drawn": lambda seed: HBARTRegressor(**BUDGET, random_state=seed, k="sample"),
    "HBART, leaf 1": lambda seed: HBARTRegressor(**BUDGET, random_state=seed, min_samples_leaf=1),
    "HBART, default": lambda seed: HBARTRegressor(random_state=seed),
    "HBART, 4 chains": lambda seed: HBARTRegressor(n_burn=250, n_draws=250, n_chains=4, random_state=seed),
    "HBART, long chain": lambda seed: HBARTRegressor(
        n_burn=5000, n_draws=1000, n_chains=1, random_state=seed
    ),
    "HBART forest": lambda seed: HBARTRegressor(variance="forest", **BUDGET, random_state=seed),
    "forest, default": lambda seed: HBARTRegressor(variance="forest", random_state=seed),
    "forest, k = 2": lambda seed: HBARTRegressor(variance="forest", k=2.0, **BUDGET, random_state=seed),
}
# Authors' Java: RMSE of f, coverage, interval score; means over 8 to 11 replicates of the same designs,
# measured once elsewhere. Their run of eq. 13 had noise of sd 3, as the authors' script has it.
JAVA = {
    "eq. 12": (3.16, 0.880, 40.3),
    "eq. 14/15": (3.06, 0.886, 50.5),
    "eq. 14 (sd 3)": (1.82, None, 14.8),
}
GAMMA = {"eq. 12": [7.0], "eq. 14/15": [0.03, 0.0, 0.4]}
PEER = "stochtree"
PEER_SEEDS = 30


def simulate(kept, design, seeds, models):
    """Fill in what is missing of a design's rows."""
    rows = kept.setdefault("simulations", {}).setdefault(design, {})
    gammas = kept.setdefault("gammas", {}).setdefault(design, {})
    for name, build in MODELS.items():
        mine = rows.setdefault(name, {})
        if name not in models:
            continue
        for seed in (seed for seed in range(seeds) if str(seed) not in mine):
            X, y, test, f, sd = replicate(design, seed)
            start = time.process_time()
            model = build(seed).fit(X, y)
            seconds = time.process_time() - start
            mine[str(seed)] = measure(model.predict(test), model.predict_interval(test), f, sd, seconds)
            if name == "HBART":
                draws = model.posterior_draws()["gamma"][0]
                gammas[str(seed)] = np.quantile(draws, [0.05, 0.5, 0.95], axis=0).tolist()
    peers = os.environ.get("BART_PEERS_PYTHON")
    theirs = rows.setdefault(PEER, {})
    missing = [seed for seed in range(min(seeds, PEER_SEEDS)) if str(seed) not in theirs]
    if peers and missing and PEER in models:
        command = [peers, str(Path(__file__).parent / "hbart_peer.py"), design, *map(str, missing)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        for line in done.stdout.splitlines():
            if line.startswith("ROW "):
                seed, row = json.loads(line[4:])
                theirs[str(seed)] = row
        if done.returncode:
            print(done.stderr[-2000:])


def figure_three(kept, replicates):
    for kind in ("eq. 15", "sd 3"):
        found = kept.setdefault("figure", {}).setdefault(kind, {"BART": [], "HBART": []})
        for seed in range(len(found["HBART"]), replicates):
            rng = np.random.default_rng(5000 + seed)
            X, f, sd = multivariate(rng, 500, kind == "eq. 15")
            y = f + sd * rng.standard_normal(500)
            test, truth, noise = multivariate(rng, 500, kind == "eq. 15")
            fresh = truth + noise * rng.standard_normal(500)
            for name, rows in found.items():
                error = MODELS[name](seed).fit(X, y).predict(test) - fresh
                rows.append(float(np.sqrt(np.mean(error**2))))


def real_data(kept):
    """Five folds, three seeds of the folds."""
    models = {
        "BART": BARTRegressor(**BUDGET, random_state=0),
        "HBART, quadratic": HBARTRegressor(
            variance_features=OrthogonalPolynomials(2), **BUDGET, random_state=0
        ),
        "HBART forest": HBARTRegressor(variance="forest", **BUDGET, random_state=0),
    }
    found = kept["data"] = {}
    for data in ("lidar", "mcycle"):
        X, y, *_ = load_staged(data)
        X, y = X.to_numpy(dtype=float), y.to_numpy(dtype=float)
        for name, model in models.items():
            parts = []
            for seed in range(3):
                fold = np.random.default_rng(seed).permutation(len(y)) % 5
                for k in range(5):
                    model.fit(X[fold != k], y[fold != k])
                    low, high = model.predict_interval(X[fold == k]).T
                    density = model.predict_dist(X[fold == k]).log_pdf(y[fold == k])
                    inside = (low < y[fold == k]) & (y[fold == k] < high)
                    parts.append(np.stack([density, inside, high - low]))
            found.setdefault(data, {})[name] = np.concatenate(parts, axis=1).mean(axis=1).tolist()


def table(kept):
    yield f"numpy {np.__version__}, Python {platform.python_version()}, {platform.machine()}, one thread"
    yield "50 trees; 250 + 1000 iterations of one chain, as the peers had; default: 2 chains of 1000 + 500;"
    yield "4 chains: of 250 + 250; long chain: one of 5000 + 1000"
    yield "* measured once elsewhere, on other draws of the same design; stochtree: on the same data"
    for design in (design for design in DESIGNS if design in kept.get("simulations", {})):
        by_model = kept["simulations"][design]
        yield ""
        yield f"{design}: n = {DESIGNS[design][1]}; means (standard error) over replicates"
        heads = f"{'':18}{'replicates':>10}{'RMSE f':>14}{'coverage .90':>17}{'low/high third':>16}"
        yield heads + f"{'interval score':>18}{'fit CPU s':>11}"
        for name in (*MODELS, PEER):
            if by_model.get(name):
                yield line(name, np.array(list(by_model[name].values())))
        if design in JAVA:
            error, cover, score = JAVA[design]
            cover = f"{cover:.3f}" if cover else "-"
            yield f"{'* Java HBART':18}{'':10}{error:8.2f}{cover:>18}{'':21}{score:>12.1f}"
        yield from against_peer(by_model)
        gammas = np.array(list(kept["gammas"][design].values()))
        for j, true in enumerate(GAMMA.get(design, []) if len(gammas) else []):
            low, middle, high = gammas[:, :, j].T
            yield (
                f"  gamma {j + 1}: median {middle.mean():.4f}, 90 % interval {(high - low).mean():.4f} wide, "
                f"holds {true:g} in {int(((low < true) & (true < high)).sum())} of {len(middle)}"
            )
    yield from real_table(kept)
    yield from figure_table(kept)
    yield from NOTES


def line(name, rows):
    m, se = rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
    return (
        f"{name:18}{len(rows):10}{m[0]:8.2f} ({se[0]:.2f}){m[1]:10.3f} ({se[1]:.3f}){m[2]:9.2f}/{m[3]:.2f}"
        f"{m[4]:12.1f} ({se[4]:.1f}){m[5]:10.2f}"
    )


def against_peer(by_model):
    """Paired differences of the variance forests on the same data."""
    theirs = by_model.get(PEER, {})
    for name in ("HBART forest", "forest, default", "forest, k = 2"):
        both = [seed for seed in theirs if seed in by_model.get(name, {})]
        if len(both) > 1:
            gap = np.array([by_model[name][seed] for seed in both]) - [theirs[seed] for seed in both]
            m, se = gap.mean(axis=0), gap.std(axis=0, ddof=1) / np.sqrt(len(gap))
            yield (
                f"  {name} less stochtree, {len(both)} pairs: RMSE f {m[0]:+.2f} ({se[0]:.2f}), "
                f"interval score {m[4]:+.2f} ({se[4]:.2f})"
            )


def real_table(kept):
    yield ""
    if "data" not in kept:
        yield "LIDAR and motorcycle: no staged data at hand"
        return
    yield "Real data, 3 times 5 shuffled folds: mean log density, coverage of the 90 % interval, mean width"
    for data, by_model in kept["data"].items():
        for name, (score, inside, width) in by_model.items():
            yield f"  {data:8}{name:18}{score:9.3f}{inside:8.3f}{width:10.3f}"


def figure_table(kept):
    for kind, found in kept.get("figure", {}).items():
        n = len(found["HBART"])
        yield ""
        yield f"Figure 3, {kind}: RMSE on noisy test responses, {n} replicates (paper: 100), quartiles"
        for name, rows in found.items():
            yield f"  {name:8}" + "".join(f"{q:8.2f}" for q in np.quantile(rows, [0.25, 0.5, 0.75]))
        gap = np.array(found["HBART"]) - found["BART"]
        yield (
            f"  HBART is better in {int((gap < 0).sum())} of {n}; difference {gap.mean():+.3f} "
            f"({gap.std(ddof=1) / np.sqrt(n):.3f})"
        )


NOTES = [
    "",
    "Chains: one alone mixes slowly, and the longer it runs the surer of its own f it gets; several short",
    "ones have not found the same place yet. Two of 1000 + 500 cover what they should on all designs.",
    "That was picked on the first 12 replicates of eq. 12 and 14/15, which are among those above.",
    "A variance forest draws k, as stochtree does; k = 2 is the paper's prior and that of the rows without",
    "a word on it. Drawing k was tried on replicates that are not among those above. It helps where the",
    "noise is modelled; a constant noise that is wrong, as BART's for eq. 15, makes it chase outliers.",
    "Eq. 15's gamma 1 and 3 are missed as by the authors' own code: f's steps put a floor under small noise.",
]


PATH = RESULTS / "hbart_paper.json"


def load():
    return json.loads(PATH.read_text()) if PATH.exists() else {}


def save(kept, part):
    """Put one part's rows into the file; parts may run side by side."""
    latest = load()
    if part in DESIGNS:
        for kind in ("simulations", "gammas"):
            old = latest.setdefault(kind, {}).setdefault(part, {})
            for name, rows in kept[kind][part].items():
                old[name] = {**old.get(name, {}), **rows} if kind == "simulations" else rows
    elif part in kept:
        latest[part] = kept[part]
    PATH.write_text(json.dumps(latest))


def main():
    warnings.simplefilter("ignore", MixingWarning)
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", default=[*DESIGNS, "data", "figure"])
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--models", nargs="+", default=[*MODELS, PEER])
    parser.add_argument("--figure", type=int, default=100)
    parser.add_argument("--afresh", action="store_true")
    arguments = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    for part in arguments.only:
        kept = {} if arguments.afresh else load()
        if part in DESIGNS:
            simulate(kept, part, arguments.seeds, arguments.models)
        elif part == "figure":
            figure_three(kept, arguments.figure)
        elif part == "data" and staged_folder() is not None:
            real_data(kept)
        save(kept, part)
    lines = list(table(load()))
    print("\n".join(lines))
    (RESULTS / "hbart_paper.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
