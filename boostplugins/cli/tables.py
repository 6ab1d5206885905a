"""Tables that a user of the command line gives: reading them, finding the target."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from boostplugins.cli.errors import UsageError

_MOST_CLASSES = 20  # different whole numbers that still look like classes
_MOSTLY = 0.2  # share of cells that are no numbers up to which a target is meant to be numeric
# Numbers with either decimal mark; the last two alternatives have separators of thousands as well.
_NUMBER = (
    r"\s*[-+]?(?:(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][-+]?\d+)?"
    r"|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:,\d{3})+\.\d+)\s*"
)
_NUMBER_WITH = {mark: rf"\s*[-+]?(?:\d+[{mark}]?\d*|[{mark}]\d+)(?:[eE][-+]?\d+)?\s*" for mark in ".,"}
_TOO_LONG = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")


def read_table(path: Path) -> pd.DataFrame:
    """Read a CSV file with a header, separated by commas, semicolons, tabs or bars.

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
        layout = _layout(path)
        table = _read(path, **layout)
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist") from None
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder, not a CSV file") from None
    except (pd.errors.EmptyDataError, pd.errors.ParserError, UnicodeDecodeError, OSError) as error:
        if long := _TOO_LONG.search(str(error)):
            raise UsageError(
                f"{path}: the header has {long[1]} cells, but line {long[2]} has {long[3]}; "
                "mend the header or the rows"
            ) from None
        raise UsageError(f"{path} is no CSV file: {str(error).strip().splitlines()[0]}") from None
    if table.empty:
        raise UsageError(f"{path} has no rows")
    _refuse_other_decimals(table, layout["decimal"], path)
    return table


def _read(path: Path, **options: Any) -> pd.DataFrame:
    """Read a table; without the column that a separator at the end of every row makes."""
    # Where the first row is longer than the header, pandas would take the first cells for names of rows.
    pd.read_csv(path, header=None, nrows=2, **{**options, "dtype": str})
    table = pd.read_csv(path, **options)
    last = table.columns[-1]
    if last == f"Unnamed: {table.shape[1] - 1}" and table.shape[1] > 1 and table[last].isna().all():
        table = table.drop(columns=last)
    return table


def _layout(path: Path) -> dict[str, str]:
    """Options to read a file: its separator, and the decimal mark where that is no comma."""
    header = list(pd.read_csv(path, nrows=0).columns)
    found = [sep for sep in ";\t|" if len(header) == 1 and sep in header[0]]
    if not found:
        return {"sep": ",", "decimal": "."}
    cells = _read(path, sep=found[0], dtype=str)
    marks = {_decimal_mark(cells.iloc[:, k]) for k in range(cells.shape[1])}
    comma = "," in marks and "." not in marks
    print(f"{path} is separated by {found[0]!r}{', with decimal commas' if comma else ''}", file=sys.stderr)
    return {"sep": found[0], "decimal": "," if comma else "."}


def _numbers(cells: pd.Series) -> pd.Series:
    """Cells that are numbers in either way of writing; none where they are not most of a column."""
    cells = cells.dropna().astype(str)
    numbers = cells[cells.str.fullmatch(_NUMBER)]
    return numbers if len(numbers) >= (1 - _MOSTLY) * len(cells) else numbers.iloc[:0]


def _decimal_mark(cells: pd.Series) -> str:
    """Give the mark that most numbers of a column have; nothing for text and whole numbers."""
    last = _numbers(cells).str.extract(r"([.,])[^.,]*$", expand=False)
    commas, points = int((last == ",").sum()), int((last == ".").sum())
    return "" if commas == points == 0 else "," if commas > points else "."


def _refuse_other_decimals(table: pd.DataFrame, mark: str, path: Path) -> None:
    """Stop where a column of numbers would become text, as some have the other decimal mark."""
    for k, column in enumerate(table.columns):
        if pd.api.types.is_numeric_dtype(table.iloc[:, k]):
            continue
        numbers = _numbers(table.iloc[:, k])
        bad = numbers[~numbers.str.fullmatch(_NUMBER_WITH[mark])]
        if len(bad):
            raise UsageError(
                f"column {column!r} of {path} holds {bad.iloc[0]!r} in row {int(bad.index[0]) + 2}, but "
                f"numbers of this file have {mark!r} before their decimals; write all of them so"
            )


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


def drop_names(X: pd.DataFrame, names: str | None, path: Path) -> pd.DataFrame:
    """Take the column that names rows out of the features; say so where one looks like it.

    Parameters
    ----------
    X : DataFrame
        Features.
    names : str or None
        The column of ``--id``; it may be missing.
    path : Path
        Where the rows come from, for messages.

    Returns
    -------
    DataFrame
        Features without it.

    Raises
    ------
    UsageError
        Where nothing is left.
    """
    X = X.drop(columns=[column for column in X.columns if column == names])
    if X.shape[1] == 0:
        raise UsageError(f"{path} has no column besides {names} to learn from")
    for column in X.columns:
        if len(X) > _MOST_CLASSES and not pd.api.types.is_numeric_dtype(X[column]) and X[column].is_unique:
            print(
                f"{column} is another text in each row; if it names them, use --id {column}", file=sys.stderr
            )
    return X


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


def refuse_broken_numbers(y: pd.Series, target: str) -> None:
    """Stop where a target is nearly all numbers: a few bad cells do not make classes of it.

    Parameters
    ----------
    y : Series
        Target.
    target : str
        Its name.

    Raises
    ------
    UsageError
        Naming the first such cells.
    """
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
