"""What a fitted distributional model does: predict, explain, save and load."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from boostplugins._blocks import in_blocks
from boostplugins._files import read_model, restoring, write_model
from boostplugins._validation import check_option, check_target, check_weight
from boostplugins.calibration import Recalibrator
from boostplugins.estimators import _distributional_chain as chains
from boostplugins.estimators._frames import predict_frame
from boostplugins.estimators._units import Units
from boostplugins.estimators.probabilistic import ProbabilisticRegressorMixin, quantile_levels
from boostplugins.families import Family, family_from_dict, get_family
from boostplugins.metrics._checks import mean as weighted_mean
from boostplugins.predictive import Predictive
from boostplugins.uncertainty import Uncertainty


class FittedDistributional(ProbabilisticRegressorMixin, BaseEstimator):
    """Prediction side of `DistributionalRegressor`, which trains the models."""

    booster: str
    family: Any
    n_jobs: int | None
    family_: Family
    units_: Units
    models_: list[Any]
    calibration_: Recalibrator | None
    categorical_features_: list[int]
    n_features_in_: int
    history_: list[list[float]]
    selection_: dict[str, float]
    _limits: list[Any]

    @property
    def _trainer(self) -> Any:
        return import_module(f"boostplugins.{self.booster}.distributional_training")

    def _theta(
        self, family: Family, units: Units, scores: Any, model: Any, X: Any, offset: np.ndarray | None
    ) -> np.ndarray:
        """Parameters of one model, (n_samples, K), or of a chain's members, (n_samples, n_members, K)."""
        start, low, high = scores
        if model is None:
            raw = np.tile(start, (len(X), 1))
        else:
            raw = model.raw(X, effective_n_jobs(self.n_jobs))
        moved = units.offset(family, offset)
        if raw.ndim == 3:  # the range of a chain is that of its trees
            raw = np.clip(raw, low, high)
            low, high = -np.inf, np.inf
        if moved is not None:
            raw[..., 0] += moved.reshape(-1, *[1] * (raw.ndim - 2))
        return units.outward(family, family.theta(np.clip(raw, low, high)))

    def _parts(self) -> list[tuple[Any, Any]]:
        """Limits and model of each part of the mixture; without a model its constant."""
        return list(zip(self._limits, self.models_ or [None] * len(self._limits)))

    def _inputs(self, X: Any, offset: ArrayLike | None) -> tuple[Any, np.ndarray | None]:
        check_is_fitted(self, "models_")
        frame = predict_frame(self, X, self.categorical_features_)
        if offset is None:
            return frame, None
        values = check_target(offset, "offset")
        if len(values) != len(frame):
            raise ValueError(f"offset must have {len(frame)} rows as X has, got {len(values)}")
        return frame, values

    def predict_dist(self, X: Any, offset: ArrayLike | None = None) -> Predictive:
        """Predict the whole distribution of the response.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.
        offset : array-like of shape (n_samples,), optional
            Known part of the first raw score, as in `fit`; 0 by default (exposure 1).

        Returns
        -------
        Predictive
            Calibrated distributions; a mixture where there are several models, or a chain's members.
        """
        frame, offset = self._inputs(X, offset)
        theta = [
            self._theta(self.family_, self.units_, limits, model, frame, offset)
            for limits, model in self._parts()
        ]
        if len(theta) > 1:  # members of all models
            theta = [np.concatenate([part.reshape(len(part), -1, part.shape[-1]) for part in theta], axis=1)]
        dist = Predictive(self.family_, theta[0])
        return dist if self.calibration_ is None else self.calibration_.apply(dist)

    def predict(self, X: Any, offset: ArrayLike | None = None) -> np.ndarray:
        """Predict the mean of the response.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.
        offset : array-like of shape (n_samples,), optional
            As for `predict_dist`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictive means, in units of the target.
        """
        given = None if offset is None else np.asarray(offset)
        return in_blocks(lambda rows, off: self.predict_dist(rows, off).mean(), X, given)

    def predict_interval(self, X: Any, coverage: float = 0.9, offset: ArrayLike | None = None) -> np.ndarray:
        """Predict a central interval of the response.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.
        coverage : float, default=0.9
            Probability within the interval, in (0, 1).
        offset : array-like of shape (n_samples,), optional
            As for `predict_dist`.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper end, in units of the target.
        """
        given = None if offset is None else np.asarray(offset)
        return in_blocks(lambda rows, off: self.predict_dist(rows, off).interval(coverage), X, given)

    def predict_quantiles(self, X: Any, q: ArrayLike, offset: ArrayLike | None = None) -> np.ndarray:
        """Predict quantiles of the response.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.
        q : array-like of shape (n_quantiles,)
            Probabilities in (0, 1).
        offset : array-like of shape (n_samples,), optional
            As for `predict_dist`.

        Returns
        -------
        ndarray of shape (n_samples, n_quantiles)
            Quantiles, non-decreasing in `q`, in units of the target.
        """
        levels = quantile_levels(q)

        def quantiles(rows: Any, off: np.ndarray | None) -> np.ndarray:
            dist = self.predict_dist(rows, off)
            return np.stack([dist.ppf(level) for level in levels], axis=1)

        return in_blocks(quantiles, X, None if offset is None else np.asarray(offset))

    def log_score(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, offset: ArrayLike | None = None
    ) -> float:
        """Average the log predictive density (or probability) of responses.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.
        y : array-like of shape (n_samples,)
            Responses; for `IntervalCensored` pairs of limits, as in `fit`.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.
        offset : array-like of shape (n_samples,), optional
            As for `predict_dist`.

        Returns
        -------
        float
            Mean log density, higher is better.
        """
        check_is_fitted(self, "models_")
        seen = self.family_.responses(y)
        given = None if offset is None else np.asarray(offset)
        scores = in_blocks(lambda rows, t, off: self.predict_dist(rows, off).log_pdf(t), X, seen, given)
        return weighted_mean(scores, check_weight(sample_weight, len(scores)))

    def score(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, offset: ArrayLike | None = None
    ) -> float:
        """Coefficient of determination R^2 of the predictive means.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.
        y : array-like of shape (n_samples,)
            Observed responses; pairs of limits have a `log_score` only.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.
        offset : array-like of shape (n_samples,), optional
            As for `predict_dist`.

        Returns
        -------
        float
            At most 1, higher is better.
        """
        check_is_fitted(self, "models_")
        values = np.asarray(y)
        if self.family_.pairs and (values.dtype.names is not None or values.shape[1:] == (2,)):
            raise ValueError(
                f"score needs one observed response a row, got pairs of limits (family {self.family_.name}); "
                "use log_score"
            )
        return float(r2_score(y, self.predict(X, offset), sample_weight=sample_weight))

    def predict_uncertainty(self, X: Any, offset: ArrayLike | None = None) -> Uncertainty:
        """Split the predictive variance into knowledge and data parts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.
        offset : array-like of shape (n_samples,), optional
            As for `predict_dist`.

        Returns
        -------
        Uncertainty
            Variances in squared units of the target; knowledge is 0 for a single model.
        """
        given = None if offset is None else np.asarray(offset)
        return in_blocks(lambda rows, off: self.predict_dist(rows, off).uncertainty(), X, given)

    def contributions(self, X: Any) -> np.ndarray:
        """Share the raw scores among the features (SHAP values), averaged over models and members.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features + 1, n_params)
            Contributions to each parameter's raw score in units of the response, the base value
            last (with the mean of a chain's prior functions); they sum to `predict_raw`.
        """
        frame, _ = self._inputs(X, None)
        factor, shift = self.units_.raw_map(self.family_)
        shares = np.zeros((len(frame), self.n_features_in_ + 1, self.family_.n_params))
        if not self.models_:
            shares[:, -1] = np.mean([limits[0] for limits in self._limits], axis=0)
        for model in self.models_:
            shares += model.contributions(frame, effective_n_jobs(self.n_jobs)) / len(self.models_)
        shares *= factor
        shares[:, -1] += shift
        return shares

    def predict_raw(self, X: Any) -> np.ndarray:
        """Predict raw scores, averaged over models and members, without limits and calibration.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_params)
            Link-scale parameters in units of the response.
        """
        frame, _ = self._inputs(X, None)
        factor, shift = self.units_.raw_map(self.family_)
        if not self.models_:
            start = np.mean([limits[0] for limits in self._limits], axis=0)
            return np.tile(factor * start + shift, (len(frame), 1))
        raw = [self._mean_raw(model, frame) for model in self.models_]
        return np.mean(raw, axis=0) * factor + shift

    def _mean_raw(self, model: Any, frame: Any) -> np.ndarray:
        raw = model.raw(frame, effective_n_jobs(self.n_jobs))
        return raw if raw.ndim == 2 else raw.mean(axis=1)

    def members(self, X: Any) -> np.ndarray:
        """Read the parameters that every model, or every member of a chain, predicts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_members, n_params)
            Parameters of the family in units of the response, before recalibration.
        """
        frame, _ = self._inputs(X, None)
        theta = [
            self._theta(self.family_, self.units_, limits, model, frame, None)
            for limits, model in self._parts()
        ]
        return np.concatenate([part.reshape(len(part), -1, part.shape[-1]) for part in theta], axis=1)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Importance of each feature for each parameter, rows summing to 1, (n_params, n_features)."""
        check_is_fitted(self, "models_")
        total = np.zeros((self.family_.n_params, self.n_features_in_))
        for model in self.models_:
            gains = model.importances()
            total += gains / np.maximum(gains.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        return total / np.maximum(total.sum(axis=1, keepdims=True), np.finfo(float).tiny)

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator: the boosters' own formats and JSON, no executable code.

        Parameters
        ----------
        path : str or Path
            File to write; it is replaced as a whole or not at all.
        """
        check_is_fitted(self, "models_")
        dumped = [model.dump() for model in self.models_]
        state = {
            "booster": getattr(self, "_fitted_on", self.booster),
            "family": self.family_.to_dict(),
            "units": self.units_.to_dict(),
            "limits": [[part.tolist() for part in limits] for limits in self._limits],
            "start": self.start_.tolist(),
            "history": self.history_,
            "selection": self.selection_,
            "calibration": None if self.calibration_ is None else self.calibration_.to_dict(),
            "categorical": self.categorical_features_,
            "n_features": self.n_features_in_,
            "names": getattr(self, "feature_names_in_", np.empty(0)).tolist(),
            "models": [(held, len(parts)) for held, parts in dumped],
        }
        write_model(path, type(self).__name__, state, parts=[part for _, parts in dumped for part in parts])

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
            model = cls()
            model.booster = check_option("booster", state["booster"], ("lightgbm", "catboost"))
            model._fitted_on = model.booster
            model.family = family_from_dict(state["family"])
            model.family_ = get_family(model.family)
            model.units_ = Units(**state["units"])
            model._limits = [tuple(np.array(part) for part in limits) for limits in state["limits"]]
            model.start_ = np.array(state["start"])
            model.history_, model.selection_ = state["history"], state["selection"]
            held = state["calibration"]
            model.calibration_ = None if held is None else Recalibrator.from_dict(held)
            model.categorical_features_ = list(state["categorical"])
            model.n_features_in_ = int(state["n_features"])
            if state["names"]:
                model.feature_names_in_ = np.array(state["names"], dtype=object)
            model.models_ = []
            for part_state, count in state["models"]:
                restore = chains.restore if "chain" in part_state else model._trainer.restore
                model.models_.append(restore(part_state, parts[:count]))
                parts = parts[count:]
            model.n_rounds_ = [part.rounds for part in model.models_]
        return model
