"""Six tasks with rows from elsewhere, and how uncertainty is scored on them.

Every task has training, validation and test rows of one domain and out-of-domain rows: another place,
season, year or kind. Seeds drive split and subsample. Regression targets are standardised by the
training rows. Data: the staged folder (see `boostplugins.datasets`); the spiral is generated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import log_softmax

from boostplugins.datasets import load_staged
from boostplugins.metrics import ood_auc, prr

TASKS = ("spiral", "covtype", "beijing", "wine", "gas", "bike")
WINDS = ["N", "NNE", "NE", "ENE", "E", "ESE", "SE", "SSE", "S", "SSW", "SW", "WSW", "W", "WNW", "NW", "NNW"]


@dataclass
class Task:
    """One split: X and y of train, val and test, X of the out-of-domain rows, classes, trees."""

    X: dict[str, np.ndarray]
    y: dict[str, np.ndarray]
    n_classes: int
    n_trees: int


def load_task(name: str, seed: int) -> Task:
    """Split one task by one seed."""
    if name == "spiral":
        return _spiral(seed)
    rng = np.random.default_rng(seed)
    X, y, domain, shifted, sizes = {
        "covtype": _covtype,
        "beijing": _beijing,
        "wine": _wine,
        "gas": _gas,
        "bike": _bike,
    }[name]()
    inside, outside = rng.permutation(np.flatnonzero(domain)), rng.permutation(np.flatnonzero(shifted))
    cuts = np.cumsum(sizes[:3])
    rows = {
        "train": inside[: cuts[0]],
        "val": inside[cuts[0] : cuts[1]],
        "test": inside[cuts[1] : cuts[2]],
        "ood": outside[: sizes[3]],
    }
    n_classes = 0
    if name in ("covtype", "beijing"):
        classes = np.unique(y[domain])
        y, n_classes = np.searchsorted(classes, y), len(classes)
    else:
        y = (y - y[rows["train"]].mean()) / y[rows["train"]].std()
    split = {part: y[rows[part]] for part in ("train", "val", "test")}
    return Task({part: X[index] for part, index in rows.items()}, split, n_classes, 500)


def _spiral(seed: int) -> Task:
    rng = np.random.default_rng([11, seed])
    points, labels = arms(rng, 2000)
    test, test_labels = arms(rng, 1500)
    order = rng.permutation(len(labels))
    train, val = order[:4500], order[4500:]
    side = np.linspace(-600.0, 600.0, 60)
    grid = np.array(np.meshgrid(side, side)).reshape(2, -1).T
    far = grid[np.hypot(grid[:, 0], grid[:, 1]) > 450.0]
    rows = {"train": points[train], "val": points[val], "test": test, "ood": far}
    y = {"train": labels[train], "val": labels[val], "test": test_labels}
    return Task({part: nine_features(xy) for part, xy in rows.items()}, y, 3, 1000)


def arms(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    points = []
    for arm in range(3):
        r = np.sqrt(rng.random(n)) * 6 * np.pi
        angle = r + 2 * np.pi * arm / 3
        x = -np.cos(angle) * r**2 + 0.4 * rng.standard_normal(n) * r**1.5
        y = np.sin(angle) * r**2 + 0.4 * rng.standard_normal(n) * r**1.5
        points.append(np.column_stack([x, y]))
    return np.concatenate(points), np.repeat(np.arange(3), n)


def nine_features(xy: np.ndarray) -> np.ndarray:
    x, y = xy.T
    return np.column_stack([x, y, x + y, x - y, 2 * x + y, x - 2 * y, x + 2 * y, 2 * x - y, np.hypot(x, y)])


def _covtype():
    X, y, _, _ = load_staged("covtype20k")
    area = X["wilderness_area"].to_numpy().astype(int)
    X = X.drop(columns=["wilderness_area", "soil_type"]).to_numpy(np.float64)
    return X, y.to_numpy(), np.isin(area, (1, 3)), area == 4, (5000, 1500, 2500, 2500)


def _beijing():
    X, y, _, _ = load_staged("beijing_multisite")
    station, month = X["station"].astype(str), X["month"].astype(int)
    wind = X["wd"].astype(str).map({name: i * np.pi / 8 for i, name in enumerate(WINDS)}).astype(float)
    numbers = X[["hour", "TEMP", "PRES", "DEWP", "RAIN", "WSPM"]].to_numpy(np.float64)
    features = np.column_stack([numbers, np.sin(wind), np.cos(wind)])
    known = y.notna().to_numpy()
    domain = known & station.isin(["Aotizhongxin", "Dongsi", "Tiantan"]) & month.isin([9, 10, 11, 12, 1, 2])
    shifted = known & (station == "Huairou") & month.isin([3, 4, 5])
    levels = np.digitize(y.to_numpy(np.float64), [15.5, 35.5, 75.5, 150.5])
    return features, levels, domain.to_numpy(), shifted.to_numpy(), (4500, 1000, 1800, 1220)


def _wine():
    parts = []
    for colour in ("wine_red", "wine_white"):
        X, y, _, _ = load_staged(colour)
        parts.append(X.assign(target=y).drop_duplicates().to_numpy(np.float64))
    both = np.concatenate(parts)
    red = np.arange(len(both)) < len(parts[0])
    return both[:, :-1], both[:, -1], red, ~red, (870, 217, 272, 1500)


def _gas():
    X, y, _, extra = load_staged("gas_turbine")
    year = (X["year"] if "year" in X else extra["year"]).to_numpy().astype(int)
    X = X.drop(columns=["year"], errors="ignore").to_numpy(np.float64)
    return X, y.to_numpy(np.float64), year <= 2013, year >= 2014, (6000, 1500, 2500, 2500)


def _bike():
    X, y, _, extra = load_staged("bike_hour")
    second = (X["yr"] if "yr" in X else extra["yr"]).to_numpy().astype(int) == 1
    X = X.drop(columns=["yr"], errors="ignore")
    X = X.apply(lambda column: pd.to_numeric(column.astype(str))).to_numpy(np.float64)
    return X, y.to_numpy(np.float64), ~second, second, (5200, 1300, 2145, 2145)


def entropy(p: np.ndarray) -> np.ndarray:
    """Entropy in nats."""
    return -np.sum(p * np.log(np.maximum(p, 1e-12)), axis=-1)


def score_classes(task: Task, proba: dict[str, np.ndarray]) -> dict[str, float]:
    """Score members' class probabilities, (n, M, K) for val, test and ood."""
    total = {part: entropy(p.mean(axis=1)) for part, p in proba.items()}
    knowledge = {part: total[part] - entropy(p).mean(axis=1) for part, p in proba.items()}
    mean, y = proba["test"].mean(axis=1), task.y["test"]
    wrong = (mean.argmax(axis=1) != y).astype(float)
    fit = -np.mean(np.log(np.clip(mean[np.arange(len(y)), y], 1e-6, 1.0)))
    return {"fit": 1.0 - wrong.mean(), "nll": fit} | _ranks(knowledge, total, wrong)


def score_means(
    task: Task, mean: dict[str, np.ndarray], data: dict[str, np.ndarray] | None
) -> dict[str, float]:
    """Score members' means, (n, M), and mean data variances, (n,) (1 if the model has none)."""
    centre = {part: m.mean(axis=1) for part, m in mean.items()}
    knowledge = {part: m.var(axis=1) for part, m in mean.items()}
    noise = {part: np.ones(len(m)) if data is None else data[part] for part, m in mean.items()}

    def loss(part: str, factor: float) -> float:
        variance = knowledge[part] + factor * noise[part]
        error = (task.y[part] - centre[part]) ** 2
        return float(0.5 * np.mean(np.log(2 * np.pi * variance) + error / variance))

    factors = np.geomspace(1e-4, 1e5, 300)
    best = factors[np.argmin([loss("val", factor) for factor in factors])]
    total = {part: knowledge[part] + best * noise[part] for part in knowledge}
    error = (task.y["test"] - centre["test"]) ** 2
    return {"fit": float(np.sqrt(error.mean())), "nll": loss("test", best)} | _ranks(knowledge, total, error)


def _ranks(knowledge: dict, total: dict, error: np.ndarray) -> dict[str, float]:
    return {
        "ku": ood_auc(knowledge["test"], knowledge["ood"]),
        "tu": ood_auc(total["test"], total["ood"]),
        "prr_tu": prr(error, total["test"]),
        "prr_ku": prr(error, knowledge["test"]),
    }


def softmax(raw: np.ndarray) -> np.ndarray:
    """Probabilities of raw class scores."""
    return np.exp(log_softmax(raw, axis=-1))
