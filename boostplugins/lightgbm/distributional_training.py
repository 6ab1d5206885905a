"""Training of distributional LightGBM models for the estimator."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np

from boostplugins.families._steps import METRICS, Steps
from boostplugins.lightgbm.distributional import _LAMBDA, _LEAST_CURVATURE
from boostplugins.lightgbm.explaining import gains
from boostplugins.lightgbm.settings import find


class Trained:
    """A booster, its start value and the levels of its categorical features.

    Parameters
    ----------
    booster : lightgbm.Booster
        Trees of all parameters, without the start value.
    start : ndarray of shape (K,)
        Start value.
    levels : dict of int to list of str
        Known levels of the categorical columns.
    history : list of float
        Score of the evaluation set after each round, in the units trained in.
    rounds : int
        Rounds kept.
    """

    def __init__(
        self,
        booster: lightgbm.Booster,
        start: np.ndarray,
        levels: dict[int, list[str]],
        history: list[float],
        rounds: int,
    ) -> None:
        self.booster, self.start, self.levels = booster, start, levels
        self.history, self.rounds = history, rounds

    def raw(self, X: Any, n_jobs: int) -> np.ndarray:
        """Predict raw scores.

        Parameters
        ----------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Rows.
        n_jobs : int
            Threads.

        Returns
        -------
        ndarray of shape (n_samples, K)
            Raw scores.
        """
        coded = encode(X, self.levels)
        predicted = np.asarray(self.booster.predict(coded, raw_score=True, num_threads=n_jobs))
        return predicted.reshape(len(coded), len(self.start)) + self.start

    def contributions(self, X: Any, n_jobs: int) -> np.ndarray:
        """Share raw scores among the features (SHAP values).

        Parameters
        ----------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Rows.
        n_jobs : int
            Threads.

        Returns
        -------
        ndarray of shape (n_samples, n_features + 1, K)
            Contributions; the last is the base value.
        """
        coded = encode(X, self.levels)
        shares = np.asarray(self.booster.predict(coded, pred_contrib=True, num_threads=n_jobs))
        shares = shares.reshape(len(coded), len(self.start), -1).transpose(0, 2, 1).copy()
        shares[:, -1] += self.start
        return shares

    def importances(self) -> np.ndarray:
        """Total gain of each feature for each parameter.

        Returns
        -------
        ndarray of shape (K, n_features)
            Gains.
        """
        return gains(self.booster, len(self.start))

    def dump(self) -> tuple[dict[str, Any], list[bytes]]:
        """Give state and text model.

        Returns
        -------
        tuple of dict and list of bytes
            JSON-ready state; LightGBM's text.
        """
        levels = {str(column): held for column, held in self.levels.items()}
        state = {
            "start": self.start.tolist(),
            "levels": levels,
            "history": self.history,
            "rounds": self.rounds,
        }
        return state, [self.booster.model_to_string().encode()]


def restore(state: dict[str, Any], parts: list[bytes]) -> Trained:
    """Rebuild a model from what `Trained.dump` gave.

    Parameters
    ----------
    state : dict
        State.
    parts : list of bytes
        Text model.

    Returns
    -------
    Trained
        An equal model.
    """
    booster = lightgbm.Booster(model_str=parts[0].decode())
    levels = {int(column): list(held) for column, held in state["levels"].items()}
    start = np.array(state["start"], dtype=np.float64)
    return Trained(booster, start, levels, list(state["history"]), int(state["rounds"]))


def train(
    steps: Steps,
    X: Any,
    *,
    categorical: list[int],
    eval_set: tuple[Any, np.ndarray, np.ndarray | None, np.ndarray | None] | None,
    settings: dict[str, Any],
) -> Trained:
    """Train a model.

    Parameters
    ----------
    steps : Steps
        Training responses, weights and offset, with the family.
    X : ndarray or DataFrame of shape (n_samples, n_features)
        Features.
    categorical : list of int
        Numbers of the categorical columns.
    eval_set : tuple or None
        Features, responses, weights and offset of the rows watched.
    settings : dict
        ``rounds``, ``patience`` (None for no early stopping), ``metric``, ``learning_rate``,
        ``depth``, ``min_samples_leaf``, ``l2``, ``seed``, ``n_jobs``, ``verbose``, ``more``.

    Returns
    -------
    Trained
        The model, cut back to its best round where early stopping was asked for.
    """
    turns = len(steps.start)
    levels = find_levels(X, categorical)
    offset = 0.0 if steps.offset is None else steps.offset
    shape = (len(steps.y), turns)
    gradient, curvature = np.empty(shape, np.float32, order="F"), np.empty(shape, np.float32, order="F")
    params = _params(settings, turns)
    rate = float(find(params, "learning_rate"))

    def objective(preds: np.ndarray, _: Any) -> tuple[np.ndarray, np.ndarray]:
        steps.descend(preds.reshape(shape), offset, rate, (gradient, curvature))
        return (gradient[:, 0], curvature[:, 0]) if turns == 1 else (gradient, curvature)

    data = lightgbm.Dataset(encode(X, levels), np.zeros(len(steps.y)), categorical_feature=categorical)
    callbacks: list[Any] = []
    history: dict[str, Any] = {}
    watched: dict[str, Any] = {}
    if eval_set is not None:
        watched = _watch(steps, eval_set, levels, data, settings["metric"])
        callbacks.append(lightgbm.record_evaluation(history))
        if settings["patience"] is not None:
            callbacks.append(lightgbm.early_stopping(settings["patience"], verbose=False))
        if settings["verbose"]:
            callbacks.append(lightgbm.log_evaluation(int(settings["verbose"])))
    # Rounds in which no tree split leave no trees behind, and constants move: note both.
    noted: list[tuple[int, np.ndarray]] = []

    def note(env: Any) -> None:
        noted.append((env.model.current_iteration(), steps.start.copy()))

    note.order = 1  # type: ignore[attr-defined]
    first = steps.start.copy()
    params["objective"] = objective
    booster = lightgbm.train(params, data, settings["rounds"], callbacks=[note, *callbacks], **watched)
    best = booster.best_iteration if settings["patience"] is not None else 0
    kept, start = noted[best - 1]
    if kept < booster.current_iteration():
        booster = lightgbm.Booster(
            model_str=booster.model_to_string(num_iteration=kept), params={"verbose": -1}
        )
    booster.free_dataset()
    steps.start = first
    rounds = best if best > 0 else settings["rounds"]
    return Trained(booster, start, levels, history.get("valid", {}).get(settings["metric"], []), rounds)


def _params(settings: dict[str, Any], turns: int) -> dict[str, Any]:
    depth, given = settings["depth"], settings["more"]
    params = {
        "num_class": turns,
        "metric": "None",
        "learning_rate": settings["learning_rate"],
        "max_depth": depth,
        "num_leaves": 2 ** min(depth, 16),
        # LightGBM guesses the rows of a leaf from its curvature; with one row a leaf it must not.
        "min_data_in_leaf": settings["min_samples_leaf"] if settings["min_samples_leaf"] > 1 else 0,
        "min_data_in_bin": 1,
        "min_sum_hessian_in_leaf": _LEAST_CURVATURE,
        "lambda_l2": _LAMBDA if settings["l2"] is None else settings["l2"],
        "feature_pre_filter": False,
        "num_threads": settings["n_jobs"],
        "seed": settings["seed"] % 2**31,
        "deterministic": True,
        "force_col_wise": True,
        "verbosity": -1,
    }
    for name in list(params):  # LightGBM would take the main name, ours, of the two
        if lightgbm.basic._ConfigAliases.get(name) & given.keys():
            del params[name]
    return params | given


def _watch(
    steps: Steps,
    eval_set: tuple[Any, np.ndarray, np.ndarray | None, np.ndarray | None],
    levels: dict[int, list[str]],
    data: lightgbm.Dataset,
    metric: str,
) -> dict[str, Any]:
    X, y, weight, offset = eval_set

    def score(preds: np.ndarray, _: Any) -> tuple[str, float, bool]:
        raw = preds.reshape(len(y), len(steps.start)) + steps.start
        raw[:, 0] += 0.0 if offset is None else offset
        theta = steps.family.theta(np.clip(raw, steps.low, steps.high))
        rows = np.minimum(METRICS[metric](steps.family, y, theta), 1e100)
        return metric, float(np.average(rows, weights=weight)), False

    valid = lightgbm.Dataset(encode(X, levels), np.zeros(len(y)), reference=data)
    return {"valid_sets": [valid], "valid_names": ["valid"], "feval": score}


def find_levels(X: Any, categorical: list[int]) -> dict[int, list[str]]:
    """List the levels of categorical columns.

    Parameters
    ----------
    X : ndarray or DataFrame of shape (n_samples, n_features)
        Training features.
    categorical : list of int
        Numbers of the categorical columns.

    Returns
    -------
    dict of int to list of str
        Sorted levels.
    """
    return {column: sorted(set(X.iloc[:, column])) for column in categorical}


def encode(X: Any, levels: dict[int, list[str]]) -> np.ndarray:
    """Turn categories into their numbers; levels never seen become missing.

    Parameters
    ----------
    X : ndarray or DataFrame of shape (n_samples, n_features)
        Features.
    levels : dict of int to list of str
        Known levels.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        Numbers.
    """
    if not levels:
        return np.asarray(X)
    coded = np.empty(X.shape)
    for column in range(X.shape[1]):
        values = X.iloc[:, column]
        if column in levels:
            number = {level: float(place) for place, level in enumerate(levels[column])}
            coded[:, column] = [number.get(value, np.nan) for value in values]
        else:
            coded[:, column] = values
    return coded
