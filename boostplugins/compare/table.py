"""The tidy table of a comparison, and its short form for the eye."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

_MOST_DECIMALS = 6
COLUMNS = (
    "model", "metric", "better", "mean", "se", "difference", "difference_se", "n_folds", "error",
)  # fmt: skip


def make_table(
    records: Sequence[dict[str, Any]], models: Sequence[str], better: Mapping[str, str]
) -> pd.DataFrame:
    """Average the scores over folds.

    Parameters
    ----------
    records : sequence of dict
        What the fits gave.
    models : sequence of str
        Names, the first being the reference.
    better : mapping of str to str
        Scores to show and which way is better.

    Returns
    -------
    DataFrame
        A row for each model and score; see `compare`.
    """
    n_folds = 1 + max(record["fold"] for record in records)
    share = np.mean([record["n_test"] / max(record["n_train"], 1) for record in records])
    rows = []
    for metric, way in better.items():
        first = _by_fold(records, models[0], metric, n_folds)
        for model in models:
            values = _by_fold(records, model, metric, n_folds)
            mean, se = _mean_and_error(values, share)
            with np.errstate(invalid="ignore"):
                difference = _mean_and_error(values - first, share)
            rows.append(
                (model, metric, way, mean, se, *difference, _finished(records, model),
                 _errors(records, model))
            )  # fmt: skip
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    order = {name: i for i, name in enumerate(models)}
    return table.sort_values("model", key=lambda column: column.map(order), kind="stable", ignore_index=True)


def _by_fold(records: Sequence[dict[str, Any]], model: str, metric: str, n_folds: int) -> np.ndarray:
    values = np.full(n_folds, np.nan)
    for record in records:
        if record["model"] == model and record["error"] is None:
            values[record["fold"]] = record["scores"].get(metric, np.nan)
    return values


def _mean_and_error(values: np.ndarray, share: float) -> tuple[float, float]:
    """Mean over folds, and its standard error by Nadeau and Bengio's rule."""
    values = values[~np.isnan(values)]
    if not len(values):
        return np.nan, np.nan
    mean = float(values.mean())
    if len(values) < 2 or not np.isfinite(values).all():
        return mean, np.nan
    # Folds share training rows: 1/K alone would promise too much.
    return mean, float(values.std(ddof=1) * np.sqrt(1.0 / len(values) + share))


def _finished(records: Sequence[dict[str, Any]], model: str) -> int:
    return sum(record["model"] == model and record["error"] is None for record in records)


def _errors(records: Sequence[dict[str, Any]], model: str) -> str | None:
    failed = [record for record in records if record["model"] == model and record["error"] is not None]
    if not failed:
        return None
    first = min(failed, key=lambda record: record["fold"])  # records come in the order they were ready
    more = f" (and {len(failed) - 1} more folds)" if len(failed) > 1 else ""
    return f"fold {first['fold']}: {first['error']}{more}"


def summary(
    table: pd.DataFrame, metrics: Sequence[str] | None = None, digits: int = 2, differences: bool = False
) -> pd.DataFrame:
    """Show a comparison with a row for each model: mean ± standard error.

    A star marks a score whose paired difference from the first model is beyond two standard errors.

    Parameters
    ----------
    table : DataFrame
        What `compare` gave.
    metrics : sequence of str, optional
        Scores to show; by default those that any model has.
    digits : int, default=2
        Significant digits of the standard errors, which decide those of the means.
    differences : bool, default=False
        Show the paired differences from the first model instead of the means.

    Returns
    -------
    DataFrame
        Texts, a row a model; the last column holds errors, where there are any.

    Examples
    --------
    >>> import pandas as pd
    >>> from boostplugins.compare import summary
    >>> row = {"model": "a", "metric": "rmse", "better": "lower", "mean": 1.2345, "se": 0.1,
    ...        "difference": 0.0, "difference_se": 0.0, "n_folds": 5, "error": None}
    >>> summary(pd.DataFrame([row])).loc["a", "rmse"]
    '1.23 ± 0.10'
    """
    if metrics is None:
        held = table.groupby("metric", sort=False)["mean"].count()
        metrics = list(held.index[held > 0])
    models = list(table["model"].unique())
    out = pd.DataFrame(index=pd.Index(models, name="model"))
    for metric in metrics:
        part = table[table["metric"] == metric].set_index("model")
        out[metric] = [
            _text(part.loc[model], digits, differences) if model in part.index else "" for model in models
        ]
    errors = table.groupby("model", sort=False)["error"].first()
    if errors.notna().any():
        out["error"] = ["" if pd.isna(errors[model]) else errors[model] for model in models]
    return out


def _text(row: pd.Series, digits: int, difference: bool) -> str:
    names = ("difference", "difference_se") if difference else ("mean", "se")
    mean, se = (float(row[name]) for name in names)
    if np.isnan(mean):
        return ""
    if not np.isfinite(mean):
        return f"{mean}"
    if difference and mean == 0.0 and se == 0.0:
        return "0"
    star = "*" if abs(row["difference"]) > 2.0 * row["difference_se"] > 0 else ""
    size = se if se > 0 else abs(mean)
    # Without an error the mean itself gets two digits more.
    wanted = digits - 1 if se > 0 else digits + 1
    decimals = min(max(wanted - math.floor(math.log10(size)), 0), _MOST_DECIMALS) if size > 0 else digits
    error = f" ± {se:.{decimals}f}" if se >= 0 else ""
    return f"{mean:{'+' if difference else ''}.{decimals}f}{error}{star}"
