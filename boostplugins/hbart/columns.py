"""Encoded tables to numbers: ordered columns as they are, categories as level numbers, NaN for missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

# A categorical rule is a bit set of levels in a signed 64-bit word.
MAX_LEVELS = 62


@dataclass(frozen=True)
class Columns:
    """How the columns of a table become a matrix.

    Attributes
    ----------
    names : tuple of str
        Column names, or x0, x1, ... for an array.
    levels : tuple
        A column's levels as a tuple of str, or None for an ordered column.
    """

    names: tuple[str, ...]
    levels: tuple[tuple[str, ...] | None, ...]

    @classmethod
    def learn(cls, table: Any, categorical: Sequence[int], names: Sequence[str], missing: str) -> Columns:
        """Learn the levels.

        Parameters
        ----------
        table : ndarray or DataFrame of shape (n_samples, n_features)
            Training rows; categories as strings.
        categorical : sequence of int
            Numbers of the categorical columns.
        names : sequence of str
            Column names.
        missing : str
            The category that stands for a missing value, which is no level.

        Returns
        -------
        Columns
            What was learnt.

        Raises
        ------
        ValueError
            For a categorical column of more than 62 levels.
        """
        levels: list[tuple[str, ...] | None] = [None] * len(names)
        for j in categorical:
            found = tuple(sorted(set(table.iloc[:, j]) - {missing}))
            if len(found) > MAX_LEVELS:
                raise ValueError(
                    f"categorical column {names[j]!r} must have at most {MAX_LEVELS} levels, got "
                    f"{len(found)}; merge rare levels or encode it as numbers"
                )
            levels[j] = found
        return cls(tuple(names), tuple(levels))

    def matrix(self, table: Any) -> np.ndarray:
        """Turn an encoded table into numbers.

        Parameters
        ----------
        table : ndarray or DataFrame of shape (n_samples, n_features)
            Rows; categories as strings.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            float64; NaN where missing, or where a level was not seen in training.
        """
        if isinstance(table, np.ndarray):
            return np.asarray(table, dtype=np.float64)
        out = np.empty(table.shape)
        for j, levels in enumerate(self.levels):
            if levels is None:
                out[:, j] = table.iloc[:, j]
            else:
                number = pd.Index(levels, dtype=object).get_indexer(pd.Index(table.iloc[:, j], dtype=object))
                out[:, j] = np.where(number < 0, np.nan, number)
        return out

    def position(self, which: int | str) -> int:
        """Find a column.

        Parameters
        ----------
        which : int or str
            Its number or name.

        Returns
        -------
        int
            Its number.
        """
        if isinstance(which, str):
            if which not in self.names:
                raise ValueError(f"column {which!r} is not in X; its columns are {list(self.names)[:20]}")
            return self.names.index(which)
        if isinstance(which, bool) or not isinstance(which, Integral):
            raise TypeError(f"a column must be its number or its name, got {which!r}")
        if not -len(self.names) <= which < len(self.names):
            raise ValueError(f"column number must be below {len(self.names)}, the columns of X, got {which}")
        return int(which) % len(self.names)

    def grid(self, j: int, column: np.ndarray, grid: ArrayLike | None) -> np.ndarray:
        """Check the values of a column that something is wanted at, or choose them.

        Parameters
        ----------
        j : int
            Number of the column.
        column : ndarray of shape (n,)
            Its values, NaN where missing.
        grid : array-like or None
            Numbers; for a categorical column, levels by number or by name. None takes all levels, or up
            to 20 quantiles of the column.

        Returns
        -------
        ndarray of shape (n_grid,)
            Numbers, NaN for a missing value.

        Raises
        ------
        ValueError
            For levels that are not known, and where there is nothing to choose from.
        """
        name, levels = self.names[j], self.levels[j]
        if grid is None and levels is not None:
            return np.arange(len(levels), dtype=np.float64)
        if grid is None:
            present = column[~np.isnan(column)]
            if not len(present):
                raise ValueError(f"grid must be given for {name!r}, of which X has no value")
            return np.unique(np.quantile(present, np.linspace(0.025, 0.975, 20)))
        values = np.asarray(grid).ravel()
        if levels is not None and values.dtype.kind in "OU":
            values = np.array([levels.index(value) if value in levels else -1.0 for value in values])
        values = values.astype(np.float64)
        if np.ndim(grid) > 1 or not len(values):
            raise ValueError(f"grid must be a number or have shape (n_grid,), got {np.shape(grid)}")
        if levels is not None and not np.isin(values[~np.isnan(values)], np.arange(len(levels))).all():
            raise ValueError(
                f"grid must hold levels of {name!r}, {list(levels)}, or their numbers, got {grid!r}"
            )
        return values
