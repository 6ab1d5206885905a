"""The text of `shift.py`: tables of what is stored, and the targets held against them."""

from __future__ import annotations

import platform
from pathlib import Path

import catboost
import lightgbm as lgb
import numpy as np
import sklearn
from shift_methods import METHODS
from shift_reasons import OTHER, WINE, reason
from shift_tasks import TASKS

SEEDS, NEW_SEEDS = (0, 1, 2), (3, 4)
CLASSES = ("spiral", "covtype", "beijing")
PEERS = (
    "kNN distance",
    "random forest",
    "bagged LightGBM",
    "CatBoost's own SGLB, virtual",
    "CatBoost's own SGLB, 10 real",
    "CatBoost KGB, 10 samples",
    "hessboost posterior sampling, virtual",
    "hessboost SGLB, virtual",
    "hessboost SGLB, 10 real",
)
BOOSTING_PEERS = PEERS[2:]
SEVERAL = [name for name in METHODS if name.endswith(" chains")]
ORDER = (*PEERS, *(row for name in SEVERAL for row in (name.removesuffix(", 3 chains"), name)))
GOALS = {"spiral": 0.90, "covtype": 0.83, "beijing": 0.82, "wine": 0.95, "gas": 0.81}
NEAR, AHEAD = 0.03, 0.05  # of bagged LightGBM's fit; of every boosting peer's mean KU AUC
# The setting held against the targets, and others to compare: row of the class tasks, of the others.
SETTINGS = {
    'LightGBM, one chain: SGLBClassifier(booster="lightgbm"), SGLBRegressor("normal", booster="lightgbm")': (
        "LightGBM cSGLB + prior",
        "LightGBM cSGLB normal + prior",
    ),
    "the same, three chains": (
        "LightGBM cSGLB + prior, 3 chains",
        "LightGBM cSGLB normal + prior, 3 chains",
    ),
    "LightGBM, one chain, squared error in regression": ("LightGBM cSGLB + prior",) * 2,
    "CatBoost, one chain, squared error in regression": ("CatBoost cSGLB + prior",) * 2,
}
Rows = dict[str, dict[str, dict[str, float]]]
RESULTS = Path(__file__).resolve().parent / "results"
NOTES = """\
KU AUC: ROC AUC of knowledge uncertainty, test rows of the domain against shifted rows. Chains of ours
run the estimators' defaults (temperature 1) with as many trees as the peers'; only "SGLB" (constant
schedule), "cbSGLB" (masks .66, exploration .9), "+ prior" (prior functions; without: prior=None) and
"normal" (likelihood of mean and standard deviation; else squared error) say what differs. CatBoost's own
and hessboost's samplers: learning rate, or temperature of "SGLB", by validation log score. CPU: the fit of
the row's setting alone, one thread; a row of one chain of ours is, where three were trained, the first
of them (the same model as one chain of that seed) at a third of their CPU.
"SGLB + prior", one chain: a constant schedule is one endless cycle, so its members share one function,
which cannot set them apart; by default such a chain has no prior. With 3 chains there are 3 functions.
A dash: KGB and the Normal likelihood know no classes."""


def mean_of(rows: Rows, row: str, task: str, key: str, seeds: tuple[int, ...] = SEEDS) -> float:
    """Mean of one figure over the seeds that have it; NaN without any."""
    found = [rows[row][f"{task}/{s}"] for s in seeds if f"{task}/{s}" in rows.get(row, {})]
    values = [one[key] for one in found if key in one]
    return float(np.mean(values)) if values else np.nan


def table(rows: Rows) -> list[str]:
    """Means over seeds, with what ran."""
    lines = [
        "Six tasks, means over seeds 0, 1, 2 (how many after a slash where not 3)",
        f"{platform.machine()} {platform.system()}, Python {platform.python_version()}, one thread; "
        f"catboost {catboost.__version__}, lightgbm {lgb.__version__}, scikit-learn {sklearn.__version__}, "
        f"numpy {np.__version__}, hessboost 0.4.3 (Python 3.12)",
    ]
    shown = [row for row in ORDER if row in rows]
    for title, keys in (
        ("KU AUC", ("ku",)),
        ("accuracy or RMSE; negative log score; CPU s", ("fit", "nll", "cpu")),
        ("TU AUC / PRR by TU / PRR by KU", ("tu", "prr_tu", "prr_ku")),
    ):
        width = 10 if len(keys) == 1 else 21
        extra = f"{'mean':>8s}" if keys == ("ku",) else ""
        lines += ["", f"{title:43s}" + "".join(f"{name:>{width}s}" for name in TASKS) + extra]
        for row in shown:
            if row == "kNN distance" and keys != ("ku",):
                continue
            cells = [f"{_cell(rows, row, task, keys):>{width}s}" for task in TASKS]
            mean = np.mean([mean_of(rows, row, task, "ku") for task in TASKS])
            end = "" if not extra else f"{mean:8.3f}" if np.isfinite(mean) else f"{'-':>8s}"
            lines.append(f"{row:43s}" + "".join(cells) + end)
    return [*lines, "", *NOTES.splitlines()]


def _cell(rows: Rows, row: str, task: str, keys: tuple[str, ...]) -> str:
    seeds = sum(f"{task}/{seed}" in rows[row] for seed in SEEDS)
    if not seeds:
        return "-"
    values = [(key, mean_of(rows, row, task, key)) for key in keys]
    text = " ".join("-" if np.isnan(v) else f"{v:.1f}" if key == "cpu" else f"{v:.3f}" for key, v in values)
    return text if seeds == len(SEEDS) else f"{text}/{seeds}"


def _flag(met: bool) -> str:
    return "met" if met else "MISSED"


def _limits(rows: Rows, task: str, seeds: tuple[int, ...] = SEEDS) -> tuple[float, float]:
    """What 3 % from bagged LightGBM is: accuracy or RMSE, negative log score."""
    fit, nll = (mean_of(rows, "bagged LightGBM", task, key, seeds) for key in ("fit", "nll"))
    return fit * (1 - NEAR if task in CLASSES else 1 + NEAR), nll + NEAR * abs(nll)


def _near(task: str, value: float, limit: float) -> bool:
    return value >= limit if task in CLASSES else value <= limit


def targets(rows: Rows) -> list[str]:
    """Every target against what is stored, met or missed, and what is known of the misses."""
    lines = [
        "",
        "Targets. KU AUC: the goal, and the best boosting peer's of the table; accuracy or RMSE and negative",
        f"log score within {100 * NEAR:.0f} % of bagged LightGBM's (the limit stands beside); mean KU AUC",
        f"{AHEAD:.2f} above every boosting peer's. Peers and ours are compared over the peer's seeds.",
        "The first setting is the one that the targets are for.",
    ]
    missed = []
    for title, names in SETTINGS.items():
        used = dict.fromkeys(TASKS, names[1]) | dict.fromkeys(CLASSES, names[0])
        if any(np.isnan(mean_of(rows, used[task], task, "ku")) for task in TASKS):
            continue
        lines += ["", title]
        for task in TASKS:
            line, what = _task_line(rows, used[task], task)
            lines.append(line)
            missed += [(title.split(":")[0], names[1], task, one) for one in what]
        lines += _mean_lines(rows, used)
    return lines + _misses(missed)


def _pair(rows: Rows, row: str, peer: str, task: str) -> tuple[float, float]:
    """KU AUC of a row and of a peer, over the seeds that the peer has."""
    seeds = tuple(seed for seed in SEEDS if f"{task}/{seed}" in rows.get(peer, {}))
    return mean_of(rows, row, task, "ku", seeds), mean_of(rows, peer, task, "ku", seeds)


def _task_line(rows: Rows, row: str, task: str) -> tuple[str, list[str]]:
    ku, fit, nll = (mean_of(rows, row, task, key) for key in ("ku", "fit", "nll"))
    pairs = {peer: _pair(rows, row, peer, task) for peer in BOOSTING_PEERS}
    name = max((peer for peer in pairs if np.isfinite(pairs[peer][1])), key=lambda peer: pairs[peer][1])
    same, best = pairs[name]
    fit_limit, nll_limit = _limits(rows, task)
    what = "accuracy" if task in CLASSES else "RMSE"
    checks = {"fit": _near(task, fit, fit_limit), "log score": nll <= nll_limit}
    if task in GOALS:
        checks |= {"goal": ku >= GOALS[task], "peer": same >= best}
    goal = f"goal {GOALS[task]:.2f} {_flag(checks['goal'])}" if task in GOALS else "no goal"
    beside = f" {_flag(checks['peer'])}" if task in GOALS else ""
    theirs = mean_of(rows, name, task, "nll")
    line = (
        f"  {task:8s} KU {ku:.3f} ({goal}; {name} {best:.3f} at log score {theirs:.3f}{beside})  "
        f"{what} {fit:.3f} (limit "
        f"{fit_limit:.3f} {_flag(checks['fit'])})  log score {nll:.3f} (limit {nll_limit:.3f} "
        f"{_flag(checks['log score'])})"
    )
    return line, [key for key, met in checks.items() if not met]


def _misses(missed: list[tuple[str, str, str, str]]) -> list[str]:
    """Say what limits each kind of miss, as far as it was looked into."""
    lines = ["", "Misses"] if missed else ["", "No target is missed."]
    kinds: dict[str, list[tuple[str, str]]] = {}
    for setting, row, task, what in missed:
        kinds.setdefault(reason(setting, row, task in CLASSES, what), []).append((setting, f"{task} {what}"))
    for text, where in kinds.items():
        for setting in dict.fromkeys(setting for setting, _ in where):
            lines.append(f"{setting}: {', '.join(one for name, one in where if name == setting)}")
        lines += [f"  {line}" for line in text.splitlines()]
    curve = RESULTS / "shift_curve.txt"
    if curve.exists():
        lines += ["", "Trade-off between fit and knowledge uncertainty (shift_curve.txt):"]
        lines += [f"  {line}".rstrip() for line in curve.read_text().splitlines()]
    return lines


def _mean_lines(rows: Rows, used: dict[str, str]) -> list[str]:
    lines = []
    for peer in BOOSTING_PEERS:
        pairs = {task: _pair(rows, used[task], peer, task) for task in TASKS}
        pairs = {task: pair for task, pair in pairs.items() if np.isfinite(pair).all()}
        if not pairs:
            continue
        whole = len(pairs) == len(TASKS)
        ours, theirs = np.mean(list(pairs.values()), axis=0)
        lines.append(
            f"  mean KU over {len(pairs)} tasks {ours:.3f}, {peer} {theirs:.3f} "
            f"({ours - theirs:+.3f}{' ' + _flag(ours - theirs >= AHEAD) if whole else ', for comparison'})"
        )
    return lines


def new_seeds(rows: Rows) -> list[str]:
    """The first setting again on seeds that nobody looked at while settings were chosen."""
    names = next(iter(SETTINGS.values()))
    used = dict.fromkeys(TASKS, names[1]) | dict.fromkeys(CLASSES, names[0])
    if any(np.isnan(mean_of(rows, used[task], task, "ku", NEW_SEEDS)) for task in TASKS):
        return []
    lines = [
        "",
        f"New seeds {NEW_SEEDS}, means: settings were chosen with a look at seeds 0, 1, 2, not at these.",
        f"{'':10s}{'KU AUC':>8s}{'bagged':>8s}{'acc/RMSE':>10s}{'bagged':>8s}{'limit':>8s}{'':7s}"
        f"{'log score':>10s}{'bagged':>8s}{'limit':>8s}",
    ]
    every, pooled = (*SEEDS, *NEW_SEEDS), []
    for task in TASKS:
        ku, fit, nll = (mean_of(rows, used[task], task, key, NEW_SEEDS) for key in ("ku", "fit", "nll"))
        bags = [mean_of(rows, "bagged LightGBM", task, key, NEW_SEEDS) for key in ("ku", "fit", "nll")]
        fit_limit, nll_limit = _limits(rows, task, NEW_SEEDS)
        met = {"fit": _near(task, fit, fit_limit), "nll": nll <= nll_limit}
        lines.append(
            f"{task:10s}{ku:8.3f}{bags[0]:8.3f}{fit:10.3f}{bags[1]:8.3f}{fit_limit:8.3f} "
            f"{_flag(met['fit']):6s}{nll:10.3f}{bags[2]:8.3f}{nll_limit:8.3f} {_flag(met['nll'])}"
        )
        for key, limit in zip(("fit", "nll"), _limits(rows, task, every)):
            value = mean_of(rows, used[task], task, key, every)
            near = _near(task, value, limit) if key == "fit" else value <= limit
            if not met[key]:
                what = "log score" if key == "nll" else "accuracy" if task in CLASSES else "RMSE"
                pooled.append(f"{task} {what} {value:.3f} (limit {limit:.3f} {_flag(near)})")
    if pooled:
        lines.append(f"What is missed here, over all {len(every)} seeds: {'; '.join(pooled)}")
        lines += [f"  {line}" for line in (OTHER + WINE * ("wine" in "".join(pooled))).splitlines()]
    return lines
