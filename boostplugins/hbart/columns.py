"""Encoded tables to numbers: ordered columns as they are, categories as level numbers, NaN for missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

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
        if not -len(self.names) <= which < len(self.names):
            raise ValueError(f"column number must be below {len(self.names)}, the columns of X, got {which}")
        return int(which) % len(self.names)
