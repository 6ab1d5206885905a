"""The table of users' troubles: which tests show that each cannot happen here.

``python -m tests.cases.table`` writes ``tests/cases.md`` anew from the names of the tests.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
TABLE = TESTS / "cases.md"
_ID = re.compile(r"(?<=_)[a-j]\d\d(?=_|$)")

TITLES = {
    "A01": "A loss that depends on the row meets its rows, in any blocks",
    "A03": "Sign and size of gradients are right for each booster, and checked",
    "A04": "A class in place of an object; a loss without a metric",
    "A05": "Far targets start from the loss's own constant (CatBoost)",
    "A06": "Losses are quick and silent",
    "A07": "Several parameters from a target of one column",
    "A08": "Second derivatives of a wrong shape are named",
    "A10": "Labels come back as they were",
    "A11": "A GPU is refused at once, with the reason",
    "A12": "Fits leave the loss object as it was",
    "B01": "Gradients of several outputs in the right order",
    "B02": "Weights count, and count once",
    "B03": "A loss of one's own starts where the built-in one does",
    "B04": "The start is part of every prediction",
    "B05": "Predictions are on the scale of the response",
    "B07": "Curvatures stay positive, gradients finite",
    "B08": "Sampling modes leave the loss what it is",
    "B09": "Few rows or constant features give the best constant",
    "B10": "Early stopping watches the loss itself",
    "B11": "Everything pickles and copies",
    "B12": "Machines without rows or with one class",
    "B13": "Either booster may be absent; versions are stated",
    "C01": "No overflow for outliers and large raw scores",
    "C02": "Singular information does not stop a fit",
    "C03": "Any units and any origin of the response",
    "C04": "Scales keep above a floor where there is no noise",
    "C05": "Responses outside the support are counted and refused",
    "C07": "Counts of zeros only, or of many zeros",
    "C08": "Every parameter follows its own features",
    "C09": "Weights in start, loss and metric alike",
    "C10": "Exposure and offsets in fit and prediction",
    "C12": "Held-out rows that are given are the ones used",
    "C13": "The seed is enough",
    "C15": "Explanations of every parameter add up",
    "C16": "Missing features",
    "C17": "A modelled scale is worth it, or costs little",
    "D01": "Variances are variances; intervals cover",
    "D02": "Few trees give fewer members and say so",
    "D05": "Predictions are one column, so that scorers work",
    "D06": "Uncertainty for every loss",
    "D07": "Uncertainty of classes by its definition, in nats",
    "D08": "Scores are what their names say",
    "D09": "Models without sampling noise are told from chains",
    "D11": "Langevin settings agree with one another; noise of the stated size",
    "D12": "Knowledge uncertainty rises away from the data",
    "E01": "Exceptions of callbacks keep their type",
    "E02": "Metrics know their direction",
    "E03": "Callbacks are called before, within and after",
    "E04": "A callback that returns nothing goes on",
    "E05": "A metric that is NaN is not better",
    "F01": "Memory grows with rows, not with rows times draws",
    "F02": "One row is predicted as among many, and quickly",
    "F03": "Saved and restored elsewhere",
    "F05": "Noise deviations stay positive",
    "F06": "Draws depend on the seed, not on threads",
    "F07": "Variances of new rows",
    "F08": "Two classes; weights as precisions",
    "F09": "Missing values and categories, seen or not",
    "F11": "Models at once share nothing",
    "F12": "Priors follow the response's units",
    "F13": "Credible and predictive intervals are two things",
    "F14": "Parallel fits after a fit",
    "G01": "Raw, discrete, huge and tiny features",
    "G04": "A row alone equals the row in a batch",
    "G05": "Likelihood training leaves the mean as good",
    "G06": "Soft and hard paths; weights of deep paths",
    "H01": "No writable cache folder",
    "H02": "Caches shared, broken or stale",
    "H03": "Fits in threads and after a fork",
    "H04": "Other random code changes nothing",
    "H05": "Missing values with and without compilation",
    "H06": "Read-only and memory-mapped input",
    "H07": "Any order and type of numbers",
    "H08": "No compiled objects in a model",
    "H09": "Importing compiles nothing",
    "H10": "Shapes are checked; bounds hold",
    "H11": "Ctrl-C ends a fit",
    "I01": "Clones, searches, nested settings",
    "I02": "Early stopping inside a pipeline",
    "I04": "History survives copies and files",
    "I05": "Tables of any library",
    "I06": "Any form of the response",
    "I07": "Constant responses and features",
    "I08": "Any labels; classes that a fold lacks",
    "I09": "Tiny data leave something to sample",
    "I10": "Threads are as many as asked for",
    "I11": "Bad weights are refused",
    "I12": "Tuning with pruning, then a refit",
    "J01": "Probabilities of 0 and 1 are binned",
    "J03": "CRPS of few or missing members",
    "J04": "Recalibration gives a distribution",
    "J05": "Quantiles do not cross and cover",
}

_LEVELS = {
    "each": "every estimator",
    "each_regressor": "every regressor",
    "each_classifier": "every classifier",
}
_FILES = (
    ("cases/", "estimators named in the test"),
    ("properties/", "several estimators"),
    ("catboost/test_distributional", "CatBoost: Distributional"),
    ("catboost/", "CatBoost: CyclicalSGLB"),
    ("lightgbm/test_distributional", "LightGBM: Distributional"),
    ("lightgbm/", "LightGBM: CyclicalSGLB"),
    ("estimators/test_ecosystem", "every estimator"),
    ("estimators/test_sglb", "SGLB"),
    ("estimators/test_distributional", "DistributionalRegressor"),
    ("estimators/test_soft", "soft trees"),
    ("estimators/test_hbart", "BART, HBART"),
    ("estimators/test_usnrt", "USNRT, HNN, MC dropout"),
    ("soft_trees/", "soft trees"),
    ("hbart/", "BART, HBART"),
    ("usnrt/", "USNRT, HNN, MC dropout"),
    ("families/", "families"),
    ("losses/", "losses"),
    ("metrics/", "metrics"),
    ("test_virtual_ensemble", "VirtualEnsemble, both boosters"),
    ("test_calibration", "Recalibrator"),
    ("test_masks", "masks"),
    ("test_early_stopping", "early stopping, both boosters"),
    ("robustness/", "every estimator"),
)


def tests_of_cases() -> dict[str, list[tuple[str, str, str]]]:
    """Tests by the id of the case in their names: file, name, what they cover."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        file = path.relative_to(TESTS).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.FunctionDef) and node.name.startswith("test_")):
                continue
            marks = [mark.id for mark in node.decorator_list if isinstance(mark, ast.Name)]
            levels = [_LEVELS[mark] for mark in marks if mark in _LEVELS and file.startswith("cases/")]
            known = [what for start, what in _FILES if file.startswith(start)]
            covers = (levels or known or ["the package"])[0]
            for case in _ID.findall(node.name):
                found.setdefault(case.upper(), []).append((file, node.name, covers))
    return found


def render() -> str:
    """The table as Markdown."""
    lines = [
        "# Users' troubles and the tests that rule them out",
        "",
        "Each line is a kind of trouble that users of boosters, Bayesian trees, small networks or compiled",
        "packages have reported; its id starts the names of its tests (`test_f03_...`). Written by",
        "`python -m tests.cases.table`; `tests/cases/test_table.py` holds it against the tests.",
        "",
        "| id | trouble | tests | holds for |",
        "|---|---|---|---|",
    ]
    found = tests_of_cases()
    for case, title in TITLES.items():
        tests = found.get(case, [])
        nodes = "<br>".join(f"`{file}::{name}`" for file, name, _ in tests)
        covers = ", ".join(dict.fromkeys(what for _, _, what in tests))
        lines.append(f"| {case} | {title} | {nodes} | {covers} |")
    return "\n".join([*lines, "", *_notes()]) + "\n"


def _notes() -> list[str]:
    return (TESTS / "cases" / "notes.md").read_text().rstrip().splitlines()


if __name__ == "__main__":
    TABLE.write_text(render())
