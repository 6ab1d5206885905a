"""Training of distributional CatBoost models for the estimator."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import catboost
import numpy as np

from boostplugins.catboost.callback import interruptible
from boostplugins.catboost.distributional import Distributional
from boostplugins.catboost.distributional_models import raw_scores, split_model
from boostplugins.catboost.distributional_settings import check_settings, merged
from boostplugins.catboost.distributional_state import Fit, Watch
from boostplugins.catboost.explaining import shares_of
from boostplugins.families._steps import Steps


class Trained:
    """Models of the parameters, start value included.

    Parameters
    ----------
    parts : list of K catboost.CatBoost
        One model a parameter.
    rounds : int
        Rounds kept.
    categorical : list of int
        Numbers of the categorical columns.
    history : list of float
        Score of the evaluation set after each round, in the units trained in.
    """

    def __init__(
        self, parts: list[catboost.CatBoost], rounds: int, categorical: list[int], history: list[float]
    ) -> None:
        self.parts, self.rounds, self.categorical, self.history = parts, rounds, categorical, history

    def _pool(self, X: Any) -> catboost.Pool:
        return catboost.Pool(X, cat_features=self.categorical or None)

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
        return raw_scores(self.parts, self._pool(X), thread_count=n_jobs)

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
        return shares_of(self.parts, self._pool(X), thread_count=n_jobs)

    def importances(self) -> np.ndarray:
        """Importance of each feature for each parameter.

        Returns
        -------
        ndarray of shape (K, n_features)
            CatBoost's prediction value changes.
        """
        return np.stack([part.get_feature_importance(type="PredictionValuesChange") for part in self.parts])

    def dump(self) -> tuple[dict[str, Any], list[bytes]]:
        """Give state and models.

        Returns
        -------
        tuple of dict and list of bytes
            JSON-ready state; CatBoost's binary models.
        """
        state = {"rounds": self.rounds, "categorical": self.categorical, "history": self.history}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.cbm"
            parts = []
            for part in self.parts:
                part.save_model(str(path))
                parts.append(path.read_bytes())
        return state, parts


def restore(state: dict[str, Any], parts: list[bytes]) -> Trained:
    """Rebuild a model from what `Trained.dump` gave.

    Parameters
    ----------
    state : dict
        State.
    parts : list of bytes
        Models.

    Returns
    -------
    Trained
        An equal model.
    """
    models = [catboost.CatBoost().load_model(blob=part) for part in parts]
    return Trained(models, int(state["rounds"]), list(state["categorical"]), list(state["history"]))


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
        As for LightGBM's `train`.

    Returns
    -------
    Trained
        The model, cut back to its best round where early stopping was asked for.
    """
    turns = len(steps.start)
    loss = Distributional(steps.family, steps.exponent, settings["metric"])
    loss._fit = Fit(steps, steps.offset)
    pool = catboost.Pool(
        X,
        np.arange(len(steps.y), dtype=np.float32),
        weight=None if (steps.weight == 1.0).all() else steps.weight,
        cat_features=categorical or None,
    )
    held = None
    params: dict[str, Any] = {
        **loss.catboost_params(),
        **(loss.categorical_params() if categorical else {}),
        "iterations": settings["rounds"] * turns,
        "learning_rate": settings["learning_rate"],
        "depth": min(settings["depth"], 16),
        # CatBoost multiplies the ridge by the mean weight.
        "l2_leaf_reg": (1.0 if settings["l2"] is None else settings["l2"]) / float(steps.weight.mean()),
        "random_seed": settings["seed"] % 2**31,
        "thread_count": settings["n_jobs"],
        "verbose": False if eval_set is None else max(settings["verbose"], 0) * turns or False,
        "allow_writing_files": False,
        **_leaf_rule(settings["min_samples_leaf"]),
    }
    params = merged(params, settings["more"])
    check_settings(params, loss)
    if eval_set is None:
        if not params.get("verbose"):
            params["metric_period"] = settings["rounds"] * turns
    else:
        X_held, y, weight, offset = eval_set
        loss._fit.watch = Watch(steps, y, weight, offset)
        held = catboost.Pool(
            X_held, -1.0 - np.arange(len(y), dtype=np.float32), cat_features=categorical or None
        )
        if settings["patience"] is not None:
            params |= {"od_type": "Iter", "od_wait": settings["patience"] * turns}
    model = catboost.CatBoost(params)
    stop = held is not None and settings["patience"] is not None
    with interruptible():
        model.fit(pool, eval_set=held, callbacks=[loss.callback()], use_best_model=stop)
    loss.finish(model)
    watch = loss._fit.watch
    history = [] if watch is None else watch.history
    return Trained(split_model(model)[1], model.tree_count_ // turns, categorical, history)


def _leaf_rule(min_samples_leaf: int) -> dict[str, Any]:
    """Symmetric trees know no least leaf; depth-wise trees do."""
    if min_samples_leaf <= 1:
        return {}
    return {"grow_policy": "Depthwise", "min_data_in_leaf": min_samples_leaf}
