"""Tables to numbers: ordered columns as they are, categories as level numbers, NaN for missing."""

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
        A column's levels as a tuple, or None for an ordered column.
    """

    names: tuple[str, ...]
    levels: tuple[tuple[Any, ...] | None, ...]

    @classmethod
    def learn(cls, X: Any, categorical: Sequence[int | str] | None) -> Columns:
        """Learn names and levels.

        Parameters
        ----------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Training rows.
        categorical : sequence of int or str, or None
            Columns to treat as categories beside those of category, string or object type.

        Returns
        -------
        Columns
            What was learnt.

        Raises
        ------
        ValueError
            For a categorical column that does not exist or has more than 62 levels.
        """
        frame = as_frame(X)
        names = tuple(str(name) for name in frame.columns)
        chosen = {_position(which, names) for which in categorical or ()}
        levels = tuple(
            _levels(frame.iloc[:, j], names[j]) if j in chosen or _is_category(frame.dtypes.iloc[j]) else None
            for j in range(len(names))
        )
        return cls(names, levels)

    def matrix(self, X: Any) -> np.ndarray:
        """Turn a table into numbers.

        Parameters
        ----------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            float64; NaN where missing, or where a level was not seen in training.
        """
        if isinstance(X, np.ndarray) and not any(self.levels):
            return np.asarray(X, dtype=np.float64)
        frame = as_frame(X)
        out = np.empty((len(frame), len(self.names)))
        for j, levels in enumerate(self.levels):
            column = frame.iloc[:, j]
            if levels is not None:
                codes = pd.Index(levels, dtype=object).get_indexer(pd.Index(_values(column), dtype=object))
                out[:, j] = np.where(codes < 0, np.nan, codes)
            else:
                out[:, j] = _numbers(column, self.names[j])
        return out


def as_frame(X: Any) -> pd.DataFrame:
    """View a table as a DataFrame.

    Parameters
    ----------
    X : ndarray, DataFrame or polars DataFrame
        Table.

    Returns
    -------
    DataFrame
        The same columns.
    """
    if isinstance(X, pd.DataFrame):
        return X
    if hasattr(X, "columns") and hasattr(X, "to_dict"):  # polars
        return pd.DataFrame({name: X[name].to_list() for name in X.columns})
    X = np.asarray(X)
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


def _position(which: int | str, names: tuple[str, ...]) -> int:
    if isinstance(which, str):
        if which not in names:
            raise ValueError(f"column {which!r} is not in X; its columns are {list(names)}")
        return names.index(which)
    if not -len(names) <= which < len(names):
        raise ValueError(f"column number must be below {len(names)}, the columns of X, got {which}")
    return int(which) % len(names)


def _is_category(dtype: Any) -> bool:
    return not (pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype))


def _values(column: pd.Series) -> list[Any]:
    """Values as plain objects, missing ones as None, so that equal labels compare equal across types."""
    return [None if pd.isna(value) else value for value in column.astype(object)]


def _levels(column: pd.Series, name: str) -> tuple[Any, ...]:
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        raise ValueError(f"column {name!r} holds dates; turn it into numbers, such as days since a start")
    levels = sorted(
        {value for value in _values(column) if value is not None}, key=lambda v: (str(type(v)), v)
    )
    if len(levels) > MAX_LEVELS:
        raise ValueError(
            f"categorical column {name!r} must have at most {MAX_LEVELS} levels, got {len(levels)}; "
            "merge rare levels or encode it as numbers"
        )
    return tuple(levels)


def _numbers(column: pd.Series, name: str) -> np.ndarray:
    try:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise ValueError(
            f"column {name!r} must be numeric as in training, got dtype {column.dtype}"
        ) from None
