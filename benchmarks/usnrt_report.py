# ruff: noqa: E501 (lines of a text)
"""The table of `usnrt_table.py`: rows beside the published ones, targets counted, losses explained."""

from __future__ import annotations

from typing import Any

import numpy as np
from usnrt_tasks import TASKS, Task

from boostplugins.estimators.hnn import HNNRegressor
from boostplugins.estimators.usnrt import USNRTRegressor
from boostplugins.usnrt.calibration import CALIBRATIONS

ENOUGH = 8  # sets on which each target wants to hold
Means = dict[str, dict[str, float]]

HEAD = """\
80/20 splits by seed, 20 % of the training rows held out; networks [8d, 4d] to split and for HNN, [4d, 2d] in
leaves, at most 240 wide (64 on blog_feedback); Adam at 0.01, batches of 64, at most 1000 epochs, patience 20
and one drop of the rate. '+ scale', '+ coverage', '+ shape': the same networks under that calibration,
found from the held-out rows. CPU seconds are of training all members. Not as in the paper: means and
scales come from the training rows alone; forests try depths 6 and 12 with 50 trees and 0.7 of the features;
MC dropout is [8d, 4d] with rate 0.2 and 60 epochs; HBART (a forest of the variance) sees 2,000 training
rows and is one short chain; our boosted Normals stop early and are rescaled on a fifth of the training rows.
ECE, TCE, sharpness, RMSE, NLL and CRPS times 100, in units of the target's standard deviation; mean over as
many seeds as the row says (the paper has five; more go into the store by running the script again). The published sharpness is the mean standard deviation: its formula, the mean width of 49
central intervals, gives 1.568 times as much for Normals (our column follows the formula; for mixtures, as under
'+ shape', it averages 500 test rows).
"""


def label(name: str, kind: str | None) -> str:
    """Name a row."""
    return name if kind is None else f"{name} + {kind}"


def gather(methods: dict[str, Any]) -> Means:
    """Means over seeds of each row of a set; ``seeds`` counts them."""
    rows: dict[str, list[dict[str, float]]] = {}
    for by_seed in methods.values():
        for found in by_seed.values():
            for name, row in found.items():
                rows.setdefault(name, []).append(row)
    return {
        name: {key: float(np.mean([row[key] for row in several])) for key in several[0]}
        | {"seeds": float(len(several))}
        for name, several in rows.items()
    }


def set_table(name: str, task: Task, means: Means) -> list[str]:
    """The rows of a set, ours and published."""
    lines = [f"{name}: {task.note}"]
    columns = (("ECE", 7), ("TCE", 7), ("sharp", 8), ("RMSE", 8), ("NLL", 10), ("CRPS", 7))
    head = "".join(f"{title:>{width}s}" for title, width in columns)
    lines.append(f"  {'':30s}{head}{'CPU s':>8s}{'leaves':>8s}{'seeds':>7s}")
    for row, m in means.items():
        values = (m["ece"], m["tce"], m["sharpness"], m["rmse"], m["nll"], m["crps"])
        text = "".join(f"{value:{width}.2f}" for value, (_, width) in zip(values, columns))
        leaves = f"{m['leaves']:8.1f}" if "leaves" in m else " " * 8
        lines.append(f"  {row:30s}{text}{m['seconds']:8.1f}{leaves}{m['seeds']:7.0f}")
    if task.published is not None:
        p = task.published
        for k, method in enumerate(("HNN", "ExTra", "RF", "USNRT")):
            lines.append(f"  published {method:20s}{p.ece[k]:7.2f}{p.tce[k]:7.2f}{p.sharpness[k]:8.2f}")
        for k, method in enumerate(("deep ensemble", "USNRT ensemble")):
            lines.append(f"  published {method:20s}{'':22s}{p.rmse[k]:8.2f}{p.nll[k]:10.2f}")
    return lines


def verdict(won: list[str], of: int) -> str:
    """Count and judge."""
    return f"{len(won)} of {of}: {'met' if len(won) >= ENOUGH else 'MISSED'} ({', '.join(won) or 'none'})"


def targets(sets: dict[str, Means]) -> list[str]:
    """Both targets for every calibration, the default marked."""
    ran = [name for name, means in sets.items() if "USNRT" in means and "HNN" in means]
    same = [name for name in ran if TASKS[name].same]
    default = label("USNRT", USNRTRegressor().calibration)
    base = label("HNN", HNNRegressor().calibration)
    lines = [f"Targets, each wanted on >= {ENOUGH} sets. The default is '{default}' beside '{base}'."]

    def published(row: str) -> list[str]:
        return [
            name
            for name in same
            if row in sets[name] and sets[name][row]["ece"] <= TASKS[name].published.ece[3]  # type: ignore[union-attr]
        ]

    def better(row: str, other: str) -> list[str]:
        return [
            name for name in ran if row in sets[name] and sets[name][row]["ece"] < sets[name][other]["ece"]
        ]

    lines.append(f"1. ECE no worse than the published USNRT's, of {len(same)} sets with the paper's data:")
    for row in [label("USNRT", kind) for kind in CALIBRATIONS]:
        mark = " (default)" if row == default else ""
        lines.append(f"   {row + mark:30s} {verdict(published(row), len(same))}")
    lines.append(f"2. ECE better than our HNN's, of {len(ran)} sets:")
    for kind in CALIBRATIONS:
        row, other = label("USNRT", kind), label("HNN", kind)
        mark = " (default)" if row == default else ""
        lines.append(f"   {row + mark:30s} against {other:15s} {verdict(better(row, other), len(ran))}")
    if default != "USNRT":
        lines.append(
            f"   {default + ' (default)':30s} against {'HNN':15s} {verdict(better(default, 'HNN'), len(ran))}"
        )
    return lines


def other_scores(sets: dict[str, Means]) -> list[str]:
    """How often the tree beats the plain pair by the other scores, calibration by calibration."""
    ran = [name for name, means in sets.items() if "USNRT" in means and "HNN" in means]
    lines = [
        f"Our USNRT better than our HNN under the same calibration, by other scores, of {len(ran)} sets:"
    ]
    keys = ("tce", "rmse", "nll", "crps")
    for kind in CALIBRATIONS:
        row, other = label("USNRT", kind), label("HNN", kind)
        counts = [sum(sets[name][row][key] < sets[name][other][key] for name in ran) for key in keys]
        text = ", ".join(f"{key.upper()} {count}" for key, count in zip(keys, counts))
        lines.append(f"   {row:20s} {text}")
    return lines


def choice(sets: dict[str, Means]) -> list[str]:
    """What the default was chosen by: cross-fitted scores of the held-out rows, no test row."""
    ran = [name for name, means in sets.items() if "USNRT" in means and "HNN" in means]
    lines = [
        "Choice of the calibration, by held-out rows alone (found on half of each leaf's, scored on the other):",
        f"   {'':20s}{'mean ECE':>10s}{'best ECE on':>13s}{'best NLL on':>13s}   sets of {len(ran)}",
    ]
    for name in ("USNRT", "HNN"):
        rows = [label(name, kind) for kind in CALIBRATIONS]
        for row in rows:
            best = [
                sum(sets[each][row][key] <= min(sets[each][r][key] for r in rows) for each in ran)
                for key in ("held_ece", "held_nll")
            ]
            mean = np.mean([sets[each][row]["held_ece"] for each in ran])
            lines.append(f"   {row:20s}{mean:10.2f}{best[0]:13d}{best[1]:13d}")
    return lines


def same_trees(held: dict[str, Any]) -> list[str]:
    """How often the paper's rule and the adjusted test grew the same tree from the same rows."""
    alike, apart = [], []
    for name, methods in held["sets"].items():
        for seed, rows in methods.get("paper_test", {}).items():
            ours = methods.get("networks", {}).get(seed, {}).get("USNRT")
            theirs = rows["USNRT, paper's test"]
            if ours is not None:
                same = all(ours[key] == theirs[key] for key in ("ece", "nll", "leaves"))
                (alike if same else apart).append(f"{name}, seed {seed}")
    if not alike + apart:
        return []
    return [
        f"Split test: the paper's rule and the adjusted test grew the same tree in {len(alike)} of "
        f"{len(alike + apart)} fits; not on {', '.join(apart) or 'any'}."
    ]


def losses(sets: dict[str, Means]) -> list[str]:
    """Where the plain tree is worse than published, and what helps there."""
    lines = ["Where the plain tree (no calibration) loses by ECE, and what wins:"]
    for name, means in sets.items():
        published = TASKS[name].published
        if "USNRT" not in means or "HNN" not in means:
            continue
        rivals = {"our HNN": means["HNN"]["ece"]}
        if TASKS[name].same and published is not None:
            rivals["the published USNRT"] = published.ece[3]
        plain = means["USNRT"]
        lost = [f"{rival} ({value:.2f})" for rival, value in rivals.items() if plain["ece"] > value]
        if not lost:
            continue
        limit = min(rivals.values())
        rows = [label("USNRT", kind) for kind in CALIBRATIONS[1:]]
        wins = [f"'{row}' {means[row]['ece']:.2f}" for row in rows if means[row]["ece"] <= limit]
        lines.append(
            f"   {name}: {plain['ece']:.2f} against {' and '.join(lost)}; wins: {', '.join(wins) or 'nothing'}"
        )
        if plain["exact"] >= 5.0:
            lines.append(
                f"      {plain['exact']:.0f} % of the test rows are predicted to within 1e-4 standard deviations (a leaf\n"
                "      where the target is constant); such a row counts as if at the median, an ECE of 25 by itself,\n"
                "      whatever the spread: a network that jitters about the constant scores better by ECE, worse by RMSE"
            )
        elif wins:
            lines.append(
                f"      its errors are not Normal: TCE {plain['tce']:.2f}, NLL {plain['nll']:.2f}; under 'shape' "
                f"{means['USNRT + shape']['tce']:.2f} and {means['USNRT + shape']['nll']:.2f}"
            )
    return lines


def table(held: dict[str, Any]) -> str:
    """The whole text."""
    sets = {name: gather(held["sets"][name]) for name in TASKS if name in held["sets"]}
    parts = [
        [held["machine"], "", HEAD.rstrip()],
        targets(sets),
        other_scores(sets),
        choice(sets),
        losses(sets),
    ]
    missing = [name for name in TASKS if name not in sets]
    if missing:
        parts.append([f"Not run: {', '.join(missing)}."])
    parts += [part for part in [same_trees(held)] if part]
    parts += [set_table(name, TASKS[name], means) for name, means in sets.items()]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"
