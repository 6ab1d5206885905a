"""Columns of features: which are numbers, which are kinds, and cells that are neither."""

from __future__ import annotations

import argparse
import csv
import shlex
import sys
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pandas as pd

from boostplugins.cli.errors import UsageError
from boostplugins.cli.tables import MOST_CLASSES, MOSTLY

_MOST_SHOWN = 3  # cells in a message


def add_options(command: argparse.ArgumentParser) -> None:
    """Declare the options that say what columns hold.

    Parameters
    ----------
    command : ArgumentParser
        Gets them.
    """
    command.add_argument(
        "--categories", metavar="A,B,...", type=_names, default=[], help="columns whose numbers name kinds"
    )
    command.add_argument(
        "--missing", metavar="A,B,...", type=_cells, default=[], help="cells that stand for no value"
    )


def _names(option: str) -> list[str]:
    """Names between commas; those that hold a comma stand between double quotes."""
    return [name.strip() for name in next(csv.reader([option], skipinitialspace=True)) if name.strip()]


def _cells(option: str) -> list[str]:
    """Texts between commas, as they stand and without blanks around them."""
    given = [cell for cell in next(csv.reader([option], skipinitialspace=False)) if cell.strip()]
    return list(dict.fromkeys([*given, *_names(option)]))


def _advised(option: str, value: str) -> str:
    """The option as a shell takes it, whatever the value holds."""
    text = '"' + value.replace('"', '""') + '"' if {",", '"'} & set(value) else value
    # One that begins with a dash would be taken for an option itself.
    return f"{option} {shlex.quote(',' + text if text.startswith('-') else text)}"


def is_text(cells: pd.Series) -> bool:
    """Tell whether a column holds texts: no numbers, and no truth values, beside empty cells.

    Parameters
    ----------
    cells : Series
        A column.

    Returns
    -------
    bool
        True for texts.
    """
    return not pd.api.types.is_numeric_dtype(cells.dropna().infer_objects())


def check_columns(X: pd.DataFrame, categories: Collection[str], path: Path) -> None:
    """Stop where a column of numbers would become categories for a few cells that are none.

    Where there are but few different values, all whole numbers, they may well name kinds: a word is
    enough.

    Parameters
    ----------
    X : DataFrame
        Features.
    categories : collection of str
        Columns that the user says hold categories.
    path : Path
        Where the rows come from, for messages.

    Raises
    ------
    UsageError
        Naming column, cells, rows and the options that say what is meant.
    """
    unknown = [column for column in categories if column not in X.columns]
    if unknown:
        columns = list(X.columns)[:20]
        raise UsageError(f"{path} has no feature {unknown[0]!r} for --categories; columns: {columns}")
    for column in X.columns:
        cells = X[column].dropna()
        if column in categories:
            continue
        if not is_text(cells):
            _refuse_infinity(cells, path)
            continue
        numbers = pd.to_numeric(cells, errors="coerce")
        bad, good = cells[numbers.isna()], numbers.dropna()
        if len(bad) >= MOSTLY * len(cells):
            continue
        shown = _shown(bad)
        if cells.nunique() > MOST_CLASSES or (good % 1 != 0).any():
            missing, kinds = _advised("--missing", bad.iloc[0]), _advised("--categories", column)
            raise UsageError(
                f"column {column!r} of {path} is nearly all numbers, but for {shown}; mend them, or use "
                f"{missing} for cells without a value, or {kinds} for kinds"
            )
        print(f"{column} is taken for categories, since it holds {shown}", file=sys.stderr)


def check_new_columns(X: pd.DataFrame, texts: Collection[str], path: Path) -> None:
    """Stop where rows to predict hold texts in columns that are numbers in training.

    Parameters
    ----------
    X : DataFrame
        Rows to predict.
    texts : collection of str
        Columns of texts.
    path : Path
        Where the rows come from, for messages.

    Raises
    ------
    UsageError
        Naming column, cell, row and remedy.
    """
    for column in X.columns:
        cells = X[column].dropna()
        if column in texts:
            continue
        if not is_text(cells):
            _refuse_infinity(cells, path)
            continue
        bad = cells[pd.to_numeric(cells, errors="coerce").isna()]
        raise UsageError(
            f"column {column!r} of {path} must be numbers as in training, got {_shown(bad)}; mend them, or "
            f"use {_advised('--missing', bad.iloc[0])} for cells without a value"
        )


def _shown(cells: pd.Series) -> str:
    first = cells.head(_MOST_SHOWN)
    shown = ", ".join(f"{cell!r} in row {row + 2}" for row, cell in zip(first.index.tolist(), first.tolist()))
    more = len(cells) - _MOST_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _refuse_infinity(cells: pd.Series, path: Path) -> None:
    if pd.api.types.is_float_dtype(cells):
        bad = cells[np.isinf(cells)]
        if len(bad):
            raise UsageError(
                f"column {cells.name!r} of {path} holds {_shown(bad)}; write numbers, or leave the cells "
                "empty"
            )
