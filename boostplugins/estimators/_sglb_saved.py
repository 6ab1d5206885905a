"""What the fitted SGLB estimators share: the boosters' models, reading of members, pickles, files."""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from boostplugins._blocks import in_blocks
from boostplugins._files import read_model, restoring, write_model
from boostplugins._validation import check_option
from boostplugins.estimators._frames import predict_frame
from boostplugins.estimators._saved import pack_labels, unpack_labels
from boostplugins.losses import loss_from_dict
from boostplugins.uncertainty import Uncertainty
from boostplugins.virtual_ensemble import VirtualEnsemble

BOOSTERS = ("catboost", "lightgbm")


class SGLBModels(BaseEstimator):
    """Trained chains of an estimator, and what can be asked of them."""

    booster: str
    models_: list[Any]
    _virtual: list[VirtualEnsemble]

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_virtual"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "models_" in state:
            self._virtual = self._ensembles()

    @property
    def _trainer(self) -> Any:
        """Module that trains and reads the models: of the booster that made them, whatever is set since."""
        return import_module(f"boostplugins.{getattr(self, '_fitted_on', self.booster)}.training")

    def _ensembles(self) -> list[VirtualEnsemble]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # said once, by `fit`
            return [VirtualEnsemble(self._trainer.reader(model)) for model in self.models_]

    @property
    def n_members_(self) -> int:
        """Members of the ensemble, over all chains."""
        check_is_fitted(self, "models_")
        return sum(len(ensemble.ends) for ensemble in self._virtual) or 1

    @property
    def n_iterations_(self) -> int:
        """Iterations of the first chain, fewer than `n_estimators` after early stopping."""
        check_is_fitted(self, "models_")
        return self._trainer.reader(self.models_[0]).n_iterations if self.models_ else 0

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator: the boosters' own formats and JSON, no executable code.

        Parameters
        ----------
        path : str or Path
            File to write; it is replaced as a whole or not at all.
        """
        check_is_fitted(self, "models_")
        state = {
            "constant": self.constant_.tolist(),
            "loss": self.loss_.to_dict(),
            "categorical": self.categorical_features_,
            "n_features": self.n_features_in_,
            "names": getattr(self, "feature_names_in_", np.empty(0)).tolist(),
            "booster": getattr(self, "_fitted_on", self.booster),
        }
        if hasattr(self, "classes_"):
            state["classes"] = pack_labels(self.classes_)
        parts = [self._trainer.dump(model) for model in self.models_]
        write_model(path, type(self).__name__, state, parts=parts)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a fitted estimator.

        Parameters
        ----------
        path : str or Path
            File that `save` wrote.

        Returns
        -------
        Self
            An estimator that predicts; settings of training are at their defaults.

        Raises
        ------
        ValueError
            For a file that is no saved model, or another estimator's.
        """
        state, _, parts = read_model(path, cls.__name__)
        with restoring(path, cls.__name__):
            model: Any = cls(booster=check_option("booster", state["booster"], BOOSTERS))
            model._fitted_on = state["booster"]
            model.constant_ = np.array(state["constant"])
            model.loss_ = loss_from_dict(state["loss"])
            model.categorical_features_ = list(state["categorical"])
            model.n_features_in_ = int(state["n_features"])
            if state["names"]:
                model.feature_names_in_ = np.array(state["names"], dtype=object)
            if "classes" in state:
                model.classes_ = unpack_labels(state["classes"], state.get("class_type"))
            model.models_ = [model._trainer.restore(part) for part in parts]
            model._virtual = model._ensembles()
        return model

    def members(self, X: Any) -> np.ndarray:
        """Read the raw scores of every member of every chain.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_members, n_outputs)
            Raw scores.
        """
        check_is_fitted(self, "models_")
        X = predict_frame(self, X, self.categorical_features_)
        if not self.models_:
            return np.broadcast_to(self.constant_, (len(X), 1, len(self.constant_))).copy()
        return np.concatenate([ensemble.members(X) for ensemble in self._virtual], axis=1)

    def predict_uncertainty(self, X: Any) -> Uncertainty:
        """Split the uncertainty of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        Uncertainty
            Knowledge, data and total: variances in squared units of the target (regression) or nats
            (classification).
        """
        check_is_fitted(self, "models_")
        return in_blocks(lambda rows: self.loss_.uncertainty(self.members(rows)), X)
