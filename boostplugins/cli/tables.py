"""Tables that a user of the command line gives: reading them, finding the target."""

from __future__ import annotations

import codecs
import io
import re
import shlex
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from boostplugins._files import is_stream
from boostplugins.cli.errors import UsageError

MOST_CLASSES = 20  # different whole numbers that still look like classes
MOSTLY = 0.2  # share of cells that are no numbers up to which a target is meant to be numeric
# Numbers with either decimal mark; the last two alternatives have separators of thousands as well.
_NUMBER = (
    r"\s*[-+]?(?:(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][-+]?\d+)?"
    r"|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:,\d{3})+\.\d+)\s*"
)
_NUMBER_WITH = {mark: rf"\s*[-+]?(?:\d+[{mark}]?\d*|[{mark}]\d+)(?:[eE][-+]?\d+)?\s*" for mark in ".,"}
_TOO_LONG = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")


def read_table(path: Path, categories: Collection[str] = (), missing: Sequence[str] = ()) -> pd.DataFrame:
    """Read a CSV file with a header, separated by commas, semicolons, tabs or bars.

    Parameters
    ----------
    path : Path
        File to read, or a pipe.
    categories : collection of str, default=()
        Columns whose cells are texts, whatever they look like.
    missing : sequence of str, default=()
        Texts that stand for no value, besides the usual ones.

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
        source = path.read_bytes() if is_stream(path) else path  # a pipe is read once
        layout = _layout(source, path)
        more = {"dtype": dict.fromkeys(categories, str), "na_values": list(missing)}
        table = _read(source, path, **layout, **more)
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist") from None
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder, not a CSV file") from None
    except UnicodeError as error:
        raise UsageError(f"{path} is no CSV file in UTF-8: {error}; save it as UTF-8") from None
    except (pd.errors.EmptyDataError, pd.errors.ParserError, OSError) as error:
        if long := _TOO_LONG.search(str(error)):
            raise UsageError(
                f"{path}: the header has {long[1]} cells, but line {long[2]} has {long[3]}; "
                "mend the header or the rows"
            ) from None
        raise UsageError(f"{path} is no CSV file: {str(error).strip().splitlines()[0]}") from None
    if table.empty:
        raise UsageError(f"{path} has no rows")
    for column in table.columns:
        if column not in categories:
            _refuse_other_decimals(table[column], layout["decimal"], path)
            table[column] = _long_numbers(table[column], layout["decimal"])
    return table


def _long_numbers(cells: pd.Series, mark: str) -> pd.Series:
    """Numbers where all cells are; pandas leaves whole ones of twenty digits and more as texts."""
    if pd.api.types.is_numeric_dtype(cells):
        return cells
    texts = cells.dropna().astype(str)
    if not texts.str.fullmatch(_NUMBER_WITH[mark]).all():
        return cells
    return cells.astype(object).map(lambda cell: float(str(cell).replace(mark, ".")), na_action="ignore")


def _read(source: Path | bytes, path: Path, **options: Any) -> pd.DataFrame:
    """Read a table; without the column that a separator at the end of every row makes."""
    # Where the first row is longer than the header, pandas would take the first cells for names of rows.
    start = pd.read_csv(_opened(source), header=None, nrows=2, **{**options, "dtype": str})
    twice = start.iloc[0][start.iloc[0].duplicated()].dropna()
    if len(twice):
        raise UsageError(f"{path} has several columns called {twice.iloc[0]!r}; give each its own name")
    table = pd.read_csv(_opened(source), low_memory=False, **options)  # one type a column
    last = table.columns[-1]
    if last == f"Unnamed: {table.shape[1] - 1}" and table.shape[1] > 1 and table[last].isna().all():
        table = table.drop(columns=last)
    return table


def _opened(source: Path | bytes) -> Any:
    return io.BytesIO(source) if isinstance(source, bytes) else source


def _layout(source: Path | bytes, path: Path) -> dict[str, str]:
    """Options to read a file: encoding, separator, and the decimal mark where that is no comma."""
    with io.BytesIO(source) if isinstance(source, bytes) else source.open("rb") as file:
        wide = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    encoding = "utf-16" if wide else "utf-8"
    header = list(pd.read_csv(_opened(source), nrows=0, encoding=encoding).columns)
    found = [sep for sep in ";\t|" if len(header) == 1 and sep in header[0]]
    if not found:
        return {"sep": ",", "decimal": ".", "encoding": encoding}
    cells = _read(source, path, sep=found[0], dtype=str, encoding=encoding)
    marks = {_decimal_mark(cells.iloc[:, k]) for k in range(cells.shape[1])}
    comma = "," in marks and "." not in marks
    print(f"{path} is separated by {found[0]!r}{', with decimal commas' if comma else ''}", file=sys.stderr)
    return {"sep": found[0], "decimal": "," if comma else ".", "encoding": encoding}


def _numbers(cells: pd.Series) -> pd.Series:
    """Cells that are numbers in either way of writing; none where they are not most of a column."""
    cells = cells.dropna().astype(str)
    numbers = cells[cells.str.fullmatch(_NUMBER)]
    return numbers if len(numbers) >= (1 - MOSTLY) * len(cells) else numbers.iloc[:0]


def _decimal_mark(cells: pd.Series) -> str:
    """Give the mark that most numbers of a column have; nothing for text and whole numbers."""
    last = _numbers(cells).str.extract(r"([.,])[^.,]*$", expand=False)
    commas, points = int((last == ",").sum()), int((last == ".").sum())
    return "" if commas == points == 0 else "," if commas > points else "."


def _refuse_other_decimals(cells: pd.Series, mark: str, path: Path) -> None:
    """Stop where a column of numbers would become text, as some have the other decimal mark."""
    if pd.api.types.is_numeric_dtype(cells):
        return
    numbers = _numbers(cells)
    bad = numbers[~numbers.str.fullmatch(_NUMBER_WITH[mark])]
    if len(bad):
        raise UsageError(
            f"column {cells.name!r} of {path} holds {bad.iloc[0]!r} in row {int(bad.index[0]) + 2}, but "
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
    # Truth values beside empty cells are read as objects.
    return table.loc[known].drop(columns=target), table.loc[known, target].infer_objects()


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
        what = _like_names(X[column]) if len(X) > MOST_CLASSES else ""
        if what:
            print(f"{column} is {what}; if it names them, use --id {shlex.quote(column)}", file=sys.stderr)
    return X


def _like_names(cells: pd.Series) -> str:
    """Say how a column is like names of rows: nothing where it is not."""
    if pd.api.types.is_numeric_dtype(cells):
        return "a count of the rows" if (cells.diff().iloc[1:] == 1).all() else ""
    if pd.to_numeric(cells, errors="coerce").notna().mean() > 1.0 - MOSTLY:
        return ""  # numbers with a bad cell, of which more is said later
    kinds = cells.nunique()
    if kinds == len(cells):
        return "another text in each row"
    return f"{kinds} different texts in {len(cells)} rows" if kinds > len(cells) / 2 else ""


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
    return bool((y == np.floor(y)).all() and y.nunique() <= min(MOST_CLASSES, max(2, len(y) // 10)))


def tell_classes(y: pd.Series, target: str) -> None:
    """Say that numbers were taken as classes, which the user may not have meant.

    Parameters
    ----------
    y : Series
        Target that `is_classification` found to hold classes by itself.
    target : str
        Its name.
    """
    if y.nunique() > 2 and pd.api.types.is_numeric_dtype(y):
        print(
            f"{target} holds {y.nunique()} different whole numbers: they are taken as classes; "
            "--task regression takes them as numbers",
            file=sys.stderr,
        )


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
    if bad.mean() < MOSTLY and y.nunique() > MOST_CLASSES:
        cells = [f"{value!r} in row {int(row) + 2}" for row, value in zip(y.index[bad].to_numpy(), y[bad])][
            :3
        ]
        raise UsageError(
            f"--target {target} is nearly all numbers, but for {', '.join(cells)}; mend them, use "
            "--missing for cells without a value, or --task classification"
        )
