"""Read the states of a chain out of a trained CatBoost model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from catboost import CatBoost, Pool

from boostplugins.catboost.turns import part_models

METADATA_KEY = "boostplugins"
_MOST_STAGES = 200  # of one walk: each costs a pass over the rows, members or not
_OWN_LOSSES = ("RMSE", "Logloss", "CrossEntropy", "MultiClass", "RMSEWithUncertainty")


@dataclass(frozen=True)
class CatBoostReader:
    """States of the chain that trained a CatBoost model.

    Parameters
    ----------
    model : CatBoost
        Trained model.
    description : dict, optional
        Description of the chain (`CyclicalSGLB.to_dict`) for a model that does not carry its own.
    """

    model: Any
    description: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.model, CatBoost):
            raise TypeError(f"model must be a CatBoost model, got {type(self.model).__name__}")
        if not self.model.is_fitted():
            raise ValueError("model must be fitted, got an unfitted one; call fit or load_model first")
        if self.description is None:
            object.__setattr__(self, "description", self._carried())

    @cached_property
    def _options(self) -> dict[str, Any]:
        text = dict(self.model.get_metadata()).get("params")
        return json.loads(text) if text else {}

    def _carried(self) -> dict[str, Any]:
        metadata = dict(self.model.get_metadata())
        if METADATA_KEY in metadata:
            return json.loads(metadata[METADATA_KEY])
        name = str(self._options.get("loss_function", {}).get("type", ""))
        if name not in _OWN_LOSSES:
            raise ValueError(
                f"the model (loss {name or 'unknown'}) does not say which chain it is; train it with "
                "**loss.catboost_params(), or pass chain=loss"
            )
        langevin = bool(self._boosting.get("langevin")) or bool(self._boosting.get("posterior_sampling"))
        return {
            "loss": {"name": "Logloss" if name == "CrossEntropy" else name},
            "schedule": {"kind": "constant"},
            "noise": "catboost" if langevin else "none",
            "prior": None,
        }

    @property
    def _boosting(self) -> dict[str, Any]:
        return self._options.get("boosting_options", {})

    @cached_property
    def _start(self) -> np.ndarray:
        """Start value outside of the trees, of a chain whose parameters take turns; empty for others."""
        return np.array((self.description or {}).get("start", ()), dtype=np.float64)

    @property
    def n_iterations(self) -> int:
        """Iterations of the chain: trees of the model, or rounds of trees where parameters take turns."""
        return int(self.model.tree_count_) // max(len(self._start), 1)

    @property
    def feature_names(self) -> list[str]:
        """Names of the features, in the order of the model."""
        return list(self.model.feature_names_)

    @property
    def n_outputs(self) -> int:
        """Raw scores a row."""
        if len(self._start):
            return len(self._start)
        return int(np.size(self.model.get_scale_and_bias()[1]))

    @cached_property
    def _tail(self) -> np.ndarray:
        """Log of the shrinkage that the state after k iterations met later, k = 0 .. n_iterations."""
        rate = float(self._boosting.get("model_shrink_rate") or 0.0)
        step = float(self._boosting.get("learning_rate", 0.0))
        trees = int(self.model.tree_count_)
        later = np.arange(1, self._trained)
        if self._boosting.get("model_shrink_mode", "Constant") == "Constant":
            factors = np.full(len(later), 1.0 - rate * step)
        else:
            factors = 1.0 - rate / later
        logs = np.concatenate([[0.0], np.log(factors)]) if trees else np.empty(0)
        return np.append(np.cumsum(logs[::-1])[::-1], 0.0)[: trees + 1]

    @property
    def _trained(self) -> int:
        """Trees when shrinkage went into the leaves: ``model.shrink`` takes some away afterwards."""
        metadata, left = dict(self.model.get_metadata()), int(self.model.tree_count_)
        if "training" not in metadata or json.loads(metadata["output_options"])["use_best_model"]:
            return left  # CatBoost itself cuts back to the best tree before
        return max(left, len(json.loads(metadata["training"])["metrics"]["learn_metrics_history"]))

    def states(self, X: Any, ends: np.ndarray) -> np.ndarray:
        """Read raw scores after given numbers of iterations, in one pass over the trees.

        Parameters
        ----------
        X : Pool or array-like of shape (n_samples, n_features)
            Rows.
        ends : ndarray of shape (n_members,)
            Increasing numbers of iterations, >= 1.

        Returns
        -------
        ndarray of shape (n_samples, n_members, n_outputs)
            Exact states of the chain, without the random prior function.
        """
        if len(self._start):
            return self._states_in_turn(X, np.asarray(ends) * len(self._start))
        pool = self.pool(X)
        out = np.empty((len(ends), pool.num_row(), self.n_outputs))
        step = int(np.gcd.reduce(ends))
        if step * _MOST_STAGES >= ends[-1]:  # one object walks the trees and keeps the rows quantised
            walk = self.model.staged_predict(
                pool, prediction_type="RawFormulaVal", ntree_end=int(ends[-1]), eval_period=step
            )
            places = {int(end): member for member, end in enumerate(ends)}
            for stage, scores in enumerate(walk, start=1):
                if step * stage in places:
                    out[places[step * stage]] = np.reshape(scores, out.shape[1:])
        else:
            total, previous = np.zeros(out.shape[1:]), 0
            for member, end in enumerate(ends.tolist()):
                total += self._scores(pool, previous, end)
                out[member], previous = total, end
        if self._tail[ends].any():
            out *= np.exp(-self._tail[ends])[:, None, None]
        return out.transpose(1, 0, 2)

    @cached_property
    def _parts(self) -> list[CatBoostReader]:
        """A reader for each raw score of a chain in turns."""
        ones = np.ones(int(self.model.tree_count_))
        models = part_models(self.model, ones, np.zeros(len(self._start)))
        return [CatBoostReader(model, {"turn": turn}) for turn, model in enumerate(models)]

    def _states_in_turn(self, X: Any, trees: np.ndarray) -> np.ndarray:
        pool = self.pool(X)
        return np.concatenate([part.states(pool, trees) for part in self._parts], axis=2) + self._start

    def average(self, ends: np.ndarray) -> list[CatBoost]:
        """Make ordinary models whose predictions are the means of some states, one a raw score.

        Parameters
        ----------
        ends : ndarray of shape (n_members,)
            Numbers of iterations of a chain in turns.

        Returns
        -------
        list of CatBoost
            Their contributions and importances are those of the mean.
        """
        trees = np.asarray(ends) * len(self._start)
        later = np.exp(-self._tail[trees])
        held = np.arange(int(self.model.tree_count_))[:, None] < trees
        return part_models(self.model, (held * later).mean(axis=1), self._start)

    def _scores(self, pool: Pool, start: int, end: int) -> np.ndarray:
        scores = self.model.predict(pool, prediction_type="RawFormulaVal", ntree_start=start, ntree_end=end)
        return np.reshape(scores, (pool.num_row(), self.n_outputs))

    def pool(self, X: Any) -> Pool:
        """Bring rows into the form that the booster takes.

        Parameters
        ----------
        X : Pool or array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        Pool
            Rows, with the model's categorical and text features.
        """
        if isinstance(X, Pool):
            return X
        return Pool(
            X,
            cat_features=self.model.get_cat_feature_indices() or None,
            text_features=self.model.get_text_feature_indices() or None,
            embedding_features=self.model.get_embedding_feature_indices() or None,
        )
