"""``python -m boostplugins uncertainty``: predictions with uncertainties for a user's files."""

from __future__ import annotations

import argparse
import io
import sys
from typing import Any

import numpy as np
import pandas as pd

from boostplugins._files import is_stream, write_bytes
from boostplugins.cli.columns import check_columns, check_new_columns, is_text
from boostplugins.cli.errors import UsageError
from boostplugins.cli.outputs import check_files
from boostplugins.cli.tables import (
    drop_names,
    is_classification,
    read_table,
    refuse_broken_numbers,
    split_target,
    tell_classes,
)
from boostplugins.estimators.sglb import SGLBClassifier, SGLBRegressor

_WRITTEN = ("prediction", "knowledge", "data", "total", "lower", "upper")
COLUMNS = """\
columns of OUT.csv, of numbers and of classes:
  prediction              mean; the most probable class (its probabilities: proba_...)
  knowledge, data, total  variances in squared units of the target; nats. Knowledge: what the
                          model has not seen; data: noise; total: their sum
  lower, upper            interval of the target; of the probability of the predicted class
"""
_CLASS_LIMIT = 200  # beyond, a target is no class: the chain would take hours


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
    check_files({"--out": options.out, "--save": options.save}, read=(options.train, options.new))
    train = read_table(options.train, options.categories, options.missing)
    X, y = split_target(train, options.target, options.train)
    X = drop_names(X, options.id, options.train)
    check_columns(X, options.categories, options.train)
    # Texts stay texts, also where all that are in the new rows look like numbers.
    texts = [column for column in X.columns if is_text(X[column])]
    new = read_table(options.new, [*texts, *([options.id] if options.id else [])], options.missing)
    names = _row_names(new, options)
    if options.trees < 1:
        raise UsageError(f"--trees must be at least 1, got {options.trees}")
    if not 0 < options.coverage < 1:
        raise UsageError(f"--coverage must be between 0 and 1, got {options.coverage:g}")
    if options.seed < 0:
        raise UsageError(f"--seed must be at least 0, got {options.seed}")
    classify = is_classification(y, options.task)
    if classify and options.task == "auto":
        refuse_broken_numbers(y, options.target)
        tell_classes(y, options.target)
    if classify and y.nunique() > _CLASS_LIMIT:
        raise UsageError(
            f"--target {options.target} holds {y.nunique()} classes, at most {_CLASS_LIMIT} are taken; "
            "use --task regression for numbers"
        )
    if not classify and not pd.api.types.is_numeric_dtype(y):
        raise UsageError(f"--target {options.target} holds text; use --task classification")
    lacking = [column for column in X.columns if column not in new.columns]
    if lacking:
        raise UsageError(f"{options.new} lacks the columns {lacking} of {options.train}")
    new = new[list(X.columns)]
    check_new_columns(new, texts, options.new)
    kind = SGLBClassifier if classify else SGLBRegressor
    model: Any = kind(booster=options.booster, n_estimators=options.trees, random_state=options.seed)
    try:
        model.fit(X, y, callbacks=[Progress(options.trees)])
        table = _predict(model, new, options.coverage)
    except (ValueError, TypeError) as error:
        raise UsageError(str(error).splitlines()[0]) from error
    table.insert(0, names.name, names.to_numpy())
    content = io.StringIO()
    table.to_csv(content, index=False)
    told = sys.stderr if is_stream(options.out) else sys.stdout
    try:
        write_bytes(options.out, content.getvalue().encode())
        print(f"{len(table)} rows written to {options.out}, in the order of {options.new}", file=told)
        if options.save is not None:
            model.save(options.save)
            print(f"model written to {options.save}", file=told)
    except OSError as error:
        raise UsageError(f"cannot write: {error}") from error


def _row_names(new: pd.DataFrame, options: argparse.Namespace) -> pd.Series:
    """Names of the rows to predict: the column of --id, or their numbers from 1."""
    if options.id is None:
        return pd.Series(np.arange(1, len(new) + 1), name="row")
    if options.id not in new.columns:
        raise UsageError(
            f"{options.new} has no column {options.id!r} for --id; columns: {list(new.columns)[:20]}"
        )
    if options.id == options.target:
        raise UsageError(f"--id must not be the target {options.target}")
    if options.id in _WRITTEN:
        raise UsageError(f"--id {options.id} is a column of the output itself; rename it")
    return new[options.id]


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


class Progress:
    """Show how far the chain is, ten times a run.

    Parameters
    ----------
    total : int
        Iterations of the run.
    """

    def __init__(self, total: int) -> None:
        self.total, self.step = total, max(total // 10, 1)

    def after_iteration(self, info: Any) -> bool:
        """Say it when a tenth is done.

        Parameters
        ----------
        info : object
            ``info.iteration`` iterations are done.

        Returns
        -------
        bool
            True: go on.
        """
        if info.iteration % self.step == 0:
            print(f"iteration {info.iteration} of {self.total}", file=sys.stderr)
        return True
