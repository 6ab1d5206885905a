"""The README's table "Which model when", with its figures taken from `benchmarks/results`."""

from __future__ import annotations

import csv
import re
from functools import cache, partial
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def which_model() -> str:
    """Write the table in Markdown."""
    rows = [("you have", "take", "measured"), ("---", "---", "---"), *_rows()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def number(file: str, pattern: str) -> str:
    """Find a figure in a text of results: the pattern's one group, in its first match."""
    found = re.findall(pattern, (RESULTS / file).read_text(), flags=re.MULTILINE)
    if not found:
        raise ValueError(f"results/{file} has nothing like {pattern!r}; mend benchmarks/which_model.py")
    return found[0]


@cache
def _compared(data: str) -> dict[tuple[str, str], float]:
    with (RESULTS / f"compare_{data}.csv").open() as file:
        return {(row["model"], row["metric"]): float(row["mean"] or "nan") for row in csv.DictReader(file)}


def score(data: str, digits: int, model: str, metric: str = "log_score") -> str:
    """Take a mean out of a comparison on real data."""
    return f"{_compared(data)[model, metric]:.{digits}f}"


def soft_wins() -> str:
    """Count the real data sets on which a soft forest's log score is better than LightGBM's."""
    scores: dict[str, dict[str, float]] = {"SoftForest, 10 trees": {}, "LightGBM distributional": {}}
    for line in (RESULTS / "soft_tree_real.txt").read_text().splitlines():
        for model, held in scores.items():
            found = re.match(rf"(\S+) .* {model} +(-?[\d.]+) ", line)
            if found:
                held[found[1]] = float(found[2])
    soft, plain = scores.values()
    return f"{sum(soft[name] > plain[name] for name in soft)} of {len(soft)}"


def mean_ku(row: str) -> str:
    """Mean area under the curve of knowledge uncertainty over the six shift tasks."""
    return number("shift.txt", rf"^{re.escape(row)}  .* (\d\.\d+)$")


def _rows() -> list[tuple[str, str, str]]:
    lightgbm, catboost = mean_ku("LightGBM cSGLB + prior"), mean_ku("CatBoost cSGLB + prior")
    bagged, forest, near = mean_ku("bagged LightGBM"), mean_ku("random forest"), mean_ku("kNN distance")
    times = number("lightgbm_chain.txt", r"an iteration: (\d+) times")
    ours, plain = (
        number("lightgbm_chain.txt", rf"^ *1000000  1 +1 +{leaves} +([\d.]+)")
        for leaves in ("independent", "built-in")
    )
    won, won_catboost = (
        number(f"uci_{booster}.txt", r"better than NGBoost's published on (\d+ of \d+)")
        for booster in ("lightgbm", "catboost")
    )
    smooth, trees = (
        number("soft_tree_simulation.txt", rf"^NO +1000 {model} +\d+ ([\d.]+)")
        for model in ("SoftTree ridge=auto", "LightGBM distributional")
    )
    concrete, bike, rent = (
        partial(score, data, digits) for data, digits in (("concrete", 2), ("bike_hour", 2), ("rent99", 3))
    )
    return [
        (
            "a CatBoost or LightGBM pipeline, and rows that may drift",
            "`CyclicalSGLB` + `VirtualEnsemble`, or `SGLBClassifier` / `SGLBRegressor`",
            f"knowledge AUC against shifted rows, mean of six tasks: {lightgbm} (LightGBM), {catboost} "
            f"(CatBoost); bagged LightGBM {bagged}, random forest {forest}, distance to the nearest rows "
            f"(which predicts nothing, and needs numbers and a scale) {near}; concrete older than 90 days: "
            f"{concrete('sglb-catboost', 'ku_auc')}, best other model "
            f"{_best_other('concrete', 'ku_auc')}",
        ),
        (
            "many rows, many classes",
            '`booster="lightgbm"`',
            f"{times} times as fast as CatBoost's chain at three classes; a million rows: {ours} CPU ms an "
            f"iteration, plain LightGBM {plain}",
        ),
        (
            "counts, positive, heavy-tailed, zero-inflated targets; a full distribution",
            "`DistributionalRegressor`",
            f"log score of bicycles an hour: negative binomial "
            f"{bike('family:negative_binomial')}, Normal {bike('distributional')}, "
            f"chain {bike('sglb-lightgbm')}; UCI log scores better than NGBoost's published on "
            f"{won} (LightGBM), {won_catboost} (CatBoost)",
        ),
        (
            "few rows (< 2000), a smooth signal, a model to read",
            "`SoftTreeRegressor`; to predict `SoftForestRegressor`, `SoftBoostingRegressor`",
            f"CRPS of the paper's simulation, 1000 rows: {smooth}, LightGBM {trees}; log score of rents: "
            f"boosted {rent('soft-boosting')}, forest {rent('soft-forest')}, "
            f"LightGBM {rent('distributional')}; real sets on which the forest's log score is better than "
            f"LightGBM's: {soft_wins()}",
        ),
        (
            "few rows, noise that changes, posteriors with diagnostics",
            "`HBARTRegressor`",
            f"log score of rents: {rent('hbart')}, constant noise (BART) {rent('bart')}, chain "
            f"{rent('sglb-lightgbm')}; its 90 % intervals cover {rent('hbart', 'coverage_90')}",
        ),
        (
            "some hundred rows, the best mean",
            "`BARTRegressor`",
            f"RMSE of concrete: {concrete('bart', 'rmse')}, chain {concrete('sglb-catboost', 'rmse')}, "
            f"random forest {concrete('random-forest', 'rmse')}; R-hat included",
        ),
        (
            "networks; noise that changes by region",
            "`HNNRegressor(n_members=5)`; `USNRTRegressor(n_members=5)` where the regions are the question",
            f"log score of concrete {concrete('deep-ensemble')}, with regions "
            f"{concrete('usnrt-ensemble')}; of rents {rent('deep-ensemble')} and {rent('usnrt-ensemble')}",
        ),
        (
            "no idea",
            "`python -m boostplugins compare DATA.csv --target COL`",
            "all of them under one cross-validation (`compare_*.txt`)",
        ),
    ]


def _best_other(data: str, metric: str) -> str:
    others = {
        model: value
        for (model, name), value in _compared(data).items()
        if name == metric and not model.startswith("sglb") and value == value
    }
    best = max(others, key=lambda model: others[model])
    return f"({best}) {others[best]:.2f}"
