"""``python -m boostplugins uncertainty``: predictions with uncertainties for a user's files."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from boostplugins._files import write_bytes
from boostplugins.cli.errors import UsageError
from boostplugins.estimators.sglb import SGLBClassifier, SGLBRegressor

_MOST_CLASSES = 20  # different whole numbers that still look like classes
_CLASS_LIMIT = 200  # beyond, a target is no class: the chain would take hours
_MOSTLY = 0.2  # share of cells that are no numbers up to which a target is meant to be numeric


def run_uncertainty(options: argparse.Namespace) -> None:
    """Train on one file, predict another.

    Parameters
    ----------
    options : Namespace
        Parsed options.

    Raises
    ------
    UsageError
        For anything the user can mend.
    """
    train, new = read_table(options.train), read_table(options.new)
    X, y = split_target(train, options.target, options.train)
    if options.trees < 1:
        raise UsageError(f"--trees must be at least 1, got {options.trees}")
    if not 0 < options.coverage < 1:
        raise UsageError(f"--coverage must be between 0 and 1, got {options.coverage:g}")
    if options.seed < 0:
        raise UsageError(f"--seed must be at least 0, got {options.seed}")
    for path in (options.out, options.save):
        if path is not None and not path.resolve().parent.is_dir():
            raise UsageError(f"the folder of {path} does not exist; make it first")
    for path in (options.out, options.save):
        if path is not None and path.resolve() in (options.train.resolve(), options.new.resolve()):
            raise UsageError(f"{path} is one of the files to read and would be lost; write to another")
    classify = is_classification(y, options.task)
    if classify and options.task == "auto":
        _refuse_broken_numbers(y, options.target)
    if classify and y.nunique() > _CLASS_LIMIT:
        raise UsageError(
            f"--target {options.target} holds {y.nunique()} classes, at most {_CLASS_LIMIT} are taken; "
            "use --task regression for numbers"
        )
    if not classify and not pd.api.types.is_numeric_dtype(y):
        raise UsageError(f"--target {options.target} holds text; use --task classification")
    missing = [column for column in X.columns if column not in new.columns]
    if missing:
        raise UsageError(f"{options.new} lacks the columns {missing} of {options.train}")
    kind = SGLBClassifier if classify else SGLBRegressor
    model: Any = kind(booster=options.booster, n_estimators=options.trees, random_state=options.seed)
    try:
        model.fit(X, y, callbacks=[_Progress(options.trees)])
        table = _predict(model, new[list(X.columns)], options.coverage)
    except (ValueError, TypeError) as error:
        raise UsageError(str(error).splitlines()[0]) from error
    content = io.StringIO()
    table.to_csv(content, index=False)
    write_bytes(options.out, content.getvalue().encode())
    print(f"{len(table)} rows written to {options.out}")
    if options.save is not None:
        model.save(options.save)
        print(f"model written to {options.save}")


def read_table(path: Path) -> pd.DataFrame:
    """Read a CSV file with a header.

    Parameters
    ----------
    path : Path
        File to read.

    Returns
    -------
    DataFrame
        Its rows; at least one.

    Raises
    ------
    UsageError
        For a missing, empty or broken file.
    """
    try:
        table = pd.read_csv(path)
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist") from None
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder, not a CSV file") from None
    except (pd.errors.EmptyDataError, pd.errors.ParserError, UnicodeDecodeError, OSError) as error:
        raise UsageError(f"{path} is no CSV file: {str(error).strip().splitlines()[0]}") from None
    if table.empty:
        raise UsageError(f"{path} has no rows")
    return table


def split_target(table: pd.DataFrame, target: str, path: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Split features and target; rows without a target are left out, with a word.

    Parameters
    ----------
    table : DataFrame
        Training rows.
    target : str
        Name of the target column.
    path : Path
        Where the rows come from, for messages.

    Returns
    -------
    X : DataFrame
        Features.
    y : Series
        Target.

    Raises
    ------
    UsageError
        Where the column is missing or holds nothing.
    """
    if target not in table.columns:
        raise UsageError(f"{path} has no column {target!r}; columns: {list(table.columns)[:20]}")
    known = table[target].notna()
    if pd.api.types.is_float_dtype(table[target]):
        known &= np.isfinite(table[target])
    if not known.any():
        raise UsageError(f"column {target!r} of {path} is empty")
    if table.shape[1] < 2:
        raise UsageError(f"{path} has no column besides {target!r} to learn from")
    if not known.all():
        print(f"{int((~known).sum())} rows of {path} without a target are left out", file=sys.stderr)
    return table.loc[known].drop(columns=target), table.loc[known, target]


def is_classification(y: pd.Series, task: str) -> bool:
    """Tell whether a target holds classes.

    Parameters
    ----------
    y : Series
        Target.
    task : {"auto", "classification", "regression"}
        What the user said.

    Returns
    -------
    bool
        True for classes.
    """
    if task != "auto":
        return task == "classification"
    if not pd.api.types.is_numeric_dtype(y) or pd.api.types.is_bool_dtype(y):
        return True
    return bool((y == np.floor(y)).all() and y.nunique() <= min(_MOST_CLASSES, max(2, len(y) // 10)))


def _refuse_broken_numbers(y: pd.Series, target: str) -> None:
    """Stop where a target is nearly all numbers: a few bad cells do not make classes of it."""
    if pd.api.types.is_numeric_dtype(y) or pd.api.types.is_bool_dtype(y):
        return
    bad = pd.to_numeric(y, errors="coerce").isna()
    if bad.mean() < _MOSTLY and y.nunique() > _MOST_CLASSES:
        cells = [f"{value!r} in row {int(row) + 2}" for row, value in zip(y.index[bad].to_numpy(), y[bad])][
            :3
        ]
        raise UsageError(
            f"--target {target} is nearly all numbers, but for {', '.join(cells)}; mend them, or use "
            "--task classification"
        )


def _predict(model: Any, new: pd.DataFrame, coverage: float) -> pd.DataFrame:
    u = model.predict_uncertainty(new)
    tail = (1.0 - coverage) / 2
    if isinstance(model, SGLBRegressor):
        interval = model.predict_interval(new, coverage)
        columns = {"prediction": model.predict(new)}
    else:
        proba = model.loss_.response(model.members(new))  # (n, members, classes)
        mean = proba.mean(axis=1)
        best = mean.argmax(axis=1)
        columns = {"prediction": model.classes_[best]}
        columns |= {f"proba_{label}": mean[:, k] for k, label in enumerate(model.classes_)}
        of_best = proba[np.arange(len(best)), :, best]
        interval = np.quantile(of_best, [tail, 1.0 - tail], axis=1).T
    columns |= {"knowledge": u.knowledge, "data": u.data, "total": u.total}
    columns |= {"lower": interval[:, 0], "upper": interval[:, 1]}
    return pd.DataFrame(columns)


class _Progress:
    """Show how far the chain is, ten times a run."""

    def __init__(self, total: int) -> None:
        self.total, self.step = total, max(total // 10, 1)

    def after_iteration(self, info: Any) -> bool:
        """Say it when a tenth is done (CatBoost)."""
        self._tell(info.iteration)
        return True

    def __call__(self, env: Any) -> None:
        """Say it when a tenth is done (LightGBM)."""
        self._tell(env.iteration + 1)

    def _tell(self, iteration: int) -> None:
        if iteration % self.step == 0:
            print(f"iteration {iteration} of {self.total}", file=sys.stderr)
