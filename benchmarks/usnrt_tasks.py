"""The data sets of the USNRT paper that are at hand, as its code prepares them, and what it published.

Which columns the paper used is read off its code's list of variables; numbers of rows and features are
its table I.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from boostplugins.datasets import load_staged


@dataclass(frozen=True)
class Published:
    """What the paper printed, all times 100.

    ``ece``, ``tce``, ``sharpness``: of HNN, extra trees, random forest and USNRT. ``rmse``, ``nll``: of
    its deep ensemble and its USNRT ensemble.
    """

    ece: tuple[float, float, float, float]
    tce: tuple[float, float, float, float]
    sharpness: tuple[float, float, float, float]
    rmse: tuple[float, float]
    nll: tuple[float, float]


@dataclass(frozen=True)
class Task:
    """A data set: what is left out of it, whether it is the paper's, and what was published on it.

    ``same``: the paper's rows (but for one, on naval) and features. ``units``: most hidden units of a
    layer; ``rows``: most rows, drawn at random.
    """

    note: str
    published: Published | None
    drop: tuple[str, ...] = ()
    same: bool = True
    units: int = 240
    rows: int | None = None


TASKS = {
    "naval": Task(
        "Conditional: the paper's 15 features; it has 11,933 of our 11,934 rows (it read one as a header)",
        Published(
            (5.91, 15.80, 11.49, 2.14),
            (2.39, 24.47, 20.50, 1.57),
            (3.56, 37.06, 24.36, 8.56),
            (3.53, 9.61),
            (-239.25, -183.49),
        ),
        drop=("gt_comp_inlet_air_temp",),
    ),
    "appliances": Task(
        "Appliances: the paper's rows and 27 features",
        Published(
            (8.68, 14.68, 13.87, 5.59),
            (11.24, 19.25, 18.76, 6.33),
            (64.03, 75.59, 72.23, 54.51),
            (80.33, 79.19),
            (64.49, 41.06),
        ),
        drop=("nsm", "weekday"),
    ),
    "election": Task(
        "Real-time: the paper's rows and 23 features",
        Published(
            (13.79, 23.11, 22.90, 2.34),
            (14.96, 24.11, 23.71, 2.55),
            (2.01, 1.81, 1.74, 2.84),
            (6.75, 6.05),
            (-598.80, -525.96),
        ),
        drop=("territoryName", "Party", "TimeElapsed"),
    ),
    "steel": Task(
        "Industry: the paper's rows and 9 features, 3 of them categories",
        Published(
            (3.44, 8.87, 11.53, 2.49),
            (3.36, 20.14, 20.71, 3.64),
            (1.26, 6.82, 4.09, 1.83),
            (2.52, 3.24),
            (-415.01, -378.31),
        ),
        drop=("month",),
    ),
    "beijing_pm25": Task(
        "Beijing: the paper's rows and 8 features, year and wind direction as categories",
        Published(
            (3.73, 7.28, 6.04, 3.33),
            (4.29, 11.77, 8.86, 2.23),
            (64.78, 74.93, 67.41, 62.19),
            (73.06, 72.50),
            (73.48, 69.60),
        ),
        drop=("month", "day", "hour"),
    ),
    "protein": Task(
        "Physicochemical: the paper's rows and 9 features",
        Published(
            (3.07, 5.51, 6.03, 2.72),
            (2.47, 10.09, 10.87, 2.56),
            (60.58, 79.79, 67.73, 60.45),
            (62.98, 63.72),
            (81.60, 76.76),
        ),
    ),
    "metro_traffic": Task(
        "Traffic: the paper's rows and 6 features, holiday and weather as categories",
        Published(
            (3.74, 3.45, 3.51, 3.67),
            (7.59, 6.62, 6.89, 7.29),
            (96.61, 95.94, 95.04, 95.50),
            (96.76, 96.26),
            (137.47, 136.80),
        ),
        drop=("year", "month", "weekday", "hour", "weather_description"),
    ),
    "blog_feedback": Task(
        "Blog: the paper's rows (the official training part) and 276 features (4 are constant there)",
        Published(
            (15.43, 17.79, 17.02, 12.40),
            (19.12, 21.46, 20.63, 14.21),
            (56.60, 27.46, 24.81, 35.62),
            (95.53, 76.58),
            (-69.01, -126.42),
        ),
        units=64,
    ),
    "tetouan_power": Task(
        "Power: the paper's rows and 5 features",
        Published(
            (2.26, 2.53, 2.09, 2.04),
            (2.52, 7.06, 6.66, 2.29),
            (70.93, 79.00, 69.37, 70.32),
            (80.19, 79.67),
            (91.85, 89.82),
        ),
        drop=("month", "weekday", "hour", "minute"),
    ),
    "facebook_v1_noderived": Task(
        "Facebook1: 27 of the paper's 52 features, 15,000 of its 40,949 rows: not the same data",
        Published(
            (9.81, 14.33, 12.23, 7.80),
            (12.53, 18.78, 15.29, 9.29),
            (27.96, 21.96, 18.03, 17.46),
            (75.76, 69.00),
            (-150.55, -179.14),
        ),
        same=False,
        rows=15_000,
    ),
    "online_news_part": Task(
        "shares of news, 9,874 rows: not in the paper, whose Online is about the coding of videos",
        None,
        same=False,
    ),
}


def load_task(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Load a data set as the paper prepared it; scales are left to the estimators."""
    task = TASKS[name]
    X, target, _, extra = load_staged(name)
    X, y = X.drop(columns=list(task.drop)), target.to_numpy(np.float64)
    if name == "beijing_pm25":
        X["year"] = X["year"].astype(int).astype(str).astype("category")
    if name == "blog_feedback":
        train = extra["split"].to_numpy() == 0
        X, y = X[train].reset_index(drop=True), y[train]
        X = X.loc[:, X.nunique() > 1]
    if task.rows is not None and len(y) > task.rows:
        keep = np.random.default_rng(0).permutation(len(y))[: task.rows]
        X, y = X.iloc[keep].reset_index(drop=True), y[keep]
    return X, y


def categories(X: pd.DataFrame) -> list[int]:
    """Numbers of the categorical columns."""
    return [j for j, kind in enumerate(X.dtypes) if str(kind) == "category"]
