"""``python -m boostplugins compare``: models beside each other on a user's file."""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from boostplugins._files import write_bytes
from boostplugins.cli.columns import add_options as add_column_options
from boostplugins.cli.columns import check_columns
from boostplugins.cli.errors import UsageError
from boostplugins.cli.outputs import check_folder
from boostplugins.cli.tables import drop_names, is_classification, read_table, split_target, tell_classes
from boostplugins.compare import compare, model_names, summary

_WIDTH = 110  # characters of a line of the table
SCORES = """\
log_score: mean log density, higher is better (of counts and classes a log probability, which is no density:
  compare these among themselves); crps, in units of the target, and brier: lower is better;
coverage_90, width_90: share of rows inside 90 % intervals (of classes: sets) and their mean width;
ece: error of the promised levels, lower is better; prr: how well uncertainty ranks the errors, 1 is best;
ku_auc, tu_auc: how well knowledge and total uncertainty tell the rows of --shift-by from test rows.
"""


def add_options(command: argparse.ArgumentParser) -> None:
    """Declare the options of the command.

    Parameters
    ----------
    command : ArgumentParser
        Gets them.
    """
    command.add_argument("data", metavar="DATA.csv", nargs="?", help="rows with features and target")
    command.add_argument("--target", help="column to predict")
    command.add_argument("--models", metavar="A,B,...", help="names (see --list); the first is the reference")
    command.add_argument("--list", action="store_true", help="list the models known by name, and stop")
    command.add_argument(
        "--shift-by",
        metavar="COL=VALUE",
        help="hold these rows out of training; knowledge uncertainty shall tell them from test rows. "
        "The column is no feature then",
    )
    command.add_argument("--id", metavar="COLUMN", help="column that names the rows, and is no feature")
    add_column_options(command)
    command.add_argument("--task", choices=["auto", "classification", "regression"], default="auto")
    command.add_argument("--cv", type=int, default=5, help="folds (default 5)")
    command.add_argument(
        "--out",
        metavar="FOLDER",
        default="boostplugins-compare",
        help="folder for table.csv and finished fits, from where a broken run goes on",
    )
    command.add_argument("--jobs", type=int, default=1, help="fits at a time, -1 for all cores (default 1)")
    command.add_argument("--seed", type=int, default=0, help="same seed, same results (default 0)")
    command.add_argument("--quick", action="store_true", help="small models, for a first look")
    command.set_defaults(run=run_compare)


def run_compare(options: argparse.Namespace) -> None:
    """Compare models on one file.

    Parameters
    ----------
    options : Namespace
        Parsed options.

    Raises
    ------
    UsageError
        For anything the user can mend.
    """
    if options.list and options.data is None:
        for classification in (False, True):
            print("classification:" if classification else "regression:")
            print("\n".join(f"  {name}" for name in model_names(classification)))
        return
    if options.data is None or options.target is None:
        raise UsageError("compare needs DATA.csv and --target COL; --list alone lists the models")
    path, folder = Path(options.data), Path(options.out)
    table = read_table(path, options.categories, options.missing)
    X, y = split_target(table, options.target, path)
    classify = is_classification(y, options.task)
    if options.list:
        print("\n".join(model_names(classify)))
        return
    if classify and options.task == "auto":
        tell_classes(y, options.target)
    check_folder(folder)
    _check(options, y, classify)
    if options.id is not None and options.id not in X.columns:
        raise UsageError(f"{path} has no column {options.id!r} for --id; columns: {list(X.columns)[:20]}")
    X = drop_names(X, options.id, path)
    shift = None
    if options.shift_by is not None:
        column, mask = _shifted(X, options.shift_by, path)
        shift, X = mask, X.drop(columns=column)
        print(f"{int(mask.sum())} rows with {options.shift_by} are held out; {column} is no feature",
              file=sys.stderr)  # fmt: skip
        if X.shape[1] == 0:
            raise UsageError(f"{path} has no column besides {column} to learn from")
    check_columns(X, options.categories, path)
    models = None if options.models is None else [name.strip() for name in options.models.split(",")]
    try:
        found = compare(
            models,
            X,
            y,
            cv=options.cv,
            shift=shift,
            task="classification" if classify else "regression",
            results=folder / "fits",
            n_jobs=options.jobs,
            random_state=options.seed,
            quick=options.quick,
            verbose=True,
        )
    except (ValueError, TypeError) as error:
        raise UsageError(str(error).splitlines()[0]) from error
    except KeyboardInterrupt:
        print(f"\nfinished fits are kept in {folder / 'fits'}; the same command goes on", file=sys.stderr)
        raise
    content = io.StringIO()
    found.to_csv(content, index=False)
    try:
        write_bytes(folder / "table.csv", content.getvalue().encode())
    except OSError as error:
        raise UsageError(f"cannot write: {error}; finished fits are kept in {folder / 'fits'}") from error
    print(_shown(found))
    print(
        f"\nMeans over {options.cv} folds ± standard errors; * differs from {found['model'].iloc[0]} by more"
    )
    print(f"than two standard errors. Written: {folder / 'table.csv'}; --help says what the scores are")


def _check(options: argparse.Namespace, y: pd.Series, classify: bool) -> None:
    if options.cv < 2:
        raise UsageError(f"--cv must be at least 2, got {options.cv}")
    if options.cv > len(y):
        raise UsageError(f"--cv must be at most the {len(y)} rows, got {options.cv}")
    if options.seed < 0:
        raise UsageError(f"--seed must be at least 0, got {options.seed}")
    if options.jobs == 0:
        raise UsageError("--jobs must not be 0; 1 is one fit at a time, -1 all cores")
    if not classify and not pd.api.types.is_numeric_dtype(y):
        raise UsageError(f"--target {options.target} holds text; use --task classification")


def _shifted(X: pd.DataFrame, rule: str, path: object) -> tuple[str, np.ndarray]:
    column, equals, value = rule.partition("=")
    if not equals or not column:
        raise UsageError(f"--shift-by must be COL=VALUE, got {rule}")
    if column not in X.columns:
        raise UsageError(f"{path} has no column {column!r} to shift by; columns: {list(X.columns)[:20]}")
    mask = (X[column].astype(str) == value).to_numpy()
    if pd.api.types.is_numeric_dtype(X[column]):
        with contextlib.suppress(ValueError):
            mask = (X[column].astype(float) == float(value)).to_numpy()
    if mask.all() or not mask.any():
        some = X[column].dropna().unique()[:10].tolist()
        raise UsageError(f"--shift-by {rule} marks {int(mask.sum())} of {len(X)} rows; values are {some}")
    return column, mask


def _shown(table: pd.DataFrame) -> str:
    """Scores side by side, errors below, where long texts do not tear the columns apart."""
    short = summary(table)
    errors = short.pop("error") if "error" in short else pd.Series(dtype=object)
    lines = [short.to_string(line_width=_WIDTH)] if short.shape[1] else []
    return "\n".join([*lines, *(f"{name}: {text}" for name, text in errors.items() if text)])
