"""Features as boosters take them: numbers as they are, categories as strings."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_array, validate_data

MISSING = "__missing__"  # a category of its own


def fit_frame(estimator: Any, X: Any, cat_features: Sequence[Any] | None) -> tuple[Any, list[int]]:
    """Check training features and find the categorical ones.

    Parameters
    ----------
    estimator : BaseEstimator
        Gets ``n_features_in_`` and ``feature_names_in_``.
    X : array-like or DataFrame of shape (n_samples, n_features)
        Features; NaN stands for missing numbers.
    cat_features : sequence of int or str, or None
        Categorical columns besides those whose type says so (category, string, object, bool).

    Returns
    -------
    ndarray or DataFrame
        Float features; a DataFrame with string categories where there are any.
    list of int
        Numbers of the categorical columns.

    Raises
    ------
    ValueError
        For infinite numbers, unknown columns, wrong shapes.
    """
    frame = _as_frame(X)
    if isinstance(cat_features, str) or not (cat_features is None or hasattr(cat_features, "__len__")):
        raise TypeError(
            f"cat_features must be a list of columns, got {cat_features!r}; write [{cat_features!r}]"
        )
    if frame is None:
        if cat_features is None or len(cat_features) == 0:
            X = validate_data(estimator, X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
            return _in_order(X), []
        X = np.asarray(X, dtype=object)
        validate_data(estimator, X, skip_check_array=True)
        frame = pd.DataFrame(X)
    else:
        validate_data(estimator, frame, skip_check_array=True)
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise ValueError(f"X must have at least one row and one feature, got shape {frame.shape}")
    named = [_column_number(frame, column) for column in cat_features or ()]
    categorical = sorted({*named, *(i for i in range(frame.shape[1]) if _is_category(frame.iloc[:, i]))})
    return _encode(frame, categorical), categorical


def predict_frame(estimator: Any, X: Any, categorical: Sequence[int]) -> Any:
    """Check features to predict: the same columns in the same order.

    Parameters
    ----------
    estimator : BaseEstimator
        Fitted estimator.
    X : array-like or DataFrame of shape (n_samples, n_features)
        Features.
    categorical : sequence of int
        Numbers of the categorical columns.

    Returns
    -------
    ndarray or DataFrame
        Features as in training.
    """
    frame = _as_frame(X)
    if frame is None and not categorical:
        X = validate_data(
            estimator, X, reset=False, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
        )
        return _in_order(X)
    if frame is None:
        frame = pd.DataFrame(np.asarray(X, dtype=object))
        if hasattr(estimator, "feature_names_in_") and frame.shape[1] == estimator.n_features_in_:
            frame.columns = estimator.feature_names_in_
    validate_data(estimator, frame, reset=False, skip_check_array=True)
    if frame.shape[0] == 0:
        raise ValueError(f"X must have at least one row, got shape {frame.shape}: 0 sample(s)")
    return _encode(frame, categorical)


def _in_order(X: np.ndarray) -> np.ndarray:
    """Copy views whose rows are not one after another, of which LightGBM 4.5 warns."""
    return np.ascontiguousarray(X) if isinstance(X.base, np.ndarray) else X


def _as_frame(X: Any) -> pd.DataFrame | None:
    if isinstance(X, pd.DataFrame):
        twice = list(dict.fromkeys(X.columns[X.columns.duplicated()]))
        if twice:
            raise ValueError(
                f"X must have columns of different names, got {twice[:5]} more than once; rename or drop them"
            )
        return X
    if hasattr(X, "columns") and hasattr(X, "dtypes") and hasattr(X, "to_dict"):  # polars
        return pd.DataFrame(
            {name: np.asarray(X[name].to_list(), dtype=object) for name in X.columns}
        ).infer_objects()
    return None


def _is_category(column: pd.Series) -> bool:
    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype) or str(kind).startswith("dictionary<"):  # of Arrow
        return True
    if pd.api.types.is_string_dtype(kind) and not pd.api.types.is_object_dtype(kind):
        return True
    if pd.api.types.is_object_dtype(kind):
        return not all(
            isinstance(value, (int, float, np.number, np.bool_, Decimal)) or value is None or value is pd.NA
            for value in column
        )
    return False


def _column_number(frame: pd.DataFrame, column: Any) -> int:
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool) and column not in frame.columns:
        if -frame.shape[1] <= column < frame.shape[1]:
            return int(column) % frame.shape[1]
    elif column in frame.columns:
        return list(frame.columns).index(column)
    raise ValueError(
        f"cat_features must name columns of X, got {column!r}; columns: {list(frame.columns)[:20]}"
    )


def _encode(frame: pd.DataFrame, categorical: Sequence[int]) -> Any:
    columns = {}
    for i in range(frame.shape[1]):
        column = frame.iloc[:, i]
        if i in categorical:
            text = column.astype(object).map(_category)
            columns[i] = text.to_numpy(dtype=object)
        else:
            columns[i] = _numbers(column)
    if not categorical:
        return check_array(
            np.stack(list(columns.values()), axis=1), dtype=np.float64, ensure_all_finite="allow-nan"
        )
    numeric = np.stack(
        [values for i, values in columns.items() if i not in categorical] or [np.zeros(len(frame))]
    )
    if np.isinf(numeric).any():
        raise ValueError("X must hold finite numbers or NaN, got infinity")
    return pd.DataFrame({str(i): values for i, values in columns.items()})


def _category(value: Any) -> str:
    number = isinstance(value, (float, np.floating))
    if value is None or value is pd.NA or value is pd.NaT or (number and np.isnan(value)):
        return MISSING
    if isinstance(value, (bool, np.bool_)) or (number and value.is_integer()):
        return str(int(value))
    return str(value)


def _numbers(column: pd.Series) -> np.ndarray:
    if pd.api.types.is_datetime64_any_dtype(column.dtype) or pd.api.types.is_timedelta64_dtype(column.dtype):
        raise ValueError(
            f"column {column.name!r} must hold numbers or categories, got {column.dtype}; turn times into "
            "numbers of one unit, such as days since a date"
        )
    if pd.api.types.is_complex_dtype(column.dtype):
        raise ValueError(f"column {column.name!r} must be real, got {column.dtype}; use two columns")
    try:
        return pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        raise ValueError(
            f"column {column.name!r} must be numeric as in training, got dtype {column.dtype}"
        ) from None
