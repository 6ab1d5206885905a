"""Distributional boosting with CatBoost: any family, at about the cost of a built-in loss.

CatBoost calls a Python objective with several outputs once a row, some hundred times slower than
its own losses. An objective with one output is called with whole blocks of rows. So the K
parameters take turns here: in one ordinary training run tree t belongs to parameter t mod K, the
objective keeps every row's K raw scores beside the booster, and after training each parameter's
trees are read out of the model by setting the leaves of all others to zero.

Measured for a Normal, 300 rounds of depth 3 with one thread (CPU seconds, n = 5 000 / 20 000):
interleaved 1.0 / 1.7, built-in RMSEWithUncertainty 0.5 / 1.1, one fit for each tree 6.7 / 24, a
per-row objective 15 for n = 20 000.
"""

from __future__ import annotations

import json
from typing import Any

import catboost
import numpy as np
from numpy.typing import ArrayLike

from boostplugins._validation import check_integer, check_target, check_weight
from boostplugins.catboost.callback import interruptible
from boostplugins.catboost.distributional_models import METADATA_KEY, least_scores, raw_scores, split_model
from boostplugins.catboost.distributional_settings import check_settings
from boostplugins.catboost.distributional_state import Clock, Fit, Score, Watch
from boostplugins.families import Family, get_family
from boostplugins.families._steps import Steps, check_metric, step_exponent
from boostplugins.predictive import Predictive

# Row numbers travel as float32 targets, exact up to here.
_MOST_ROWS = 2**24
_ONE_HOT = 255  # CatBoost's own limit on the CPU


class Distributional:
    """Distributional objective for CatBoost, parameters taking turns tree by tree.

    The target that CatBoost sees is the row's number (that is how an objective can know its rows),
    so categorical features are one-hot encoded up to 255 levels and encoded by their frequency
    beyond; target statistics would be meaningless. Sample weights act in the start value, gradient,
    leaf counts and metric, once each. An offset is added to the first raw score in training and is
    to be given again to predict.

    Parameters
    ----------
    family : str or Family, default="normal"
        Distribution of the response.
    step : {"fisher", "natural"} or float in [0, 1], optional
        How rows count within a leaf: by their Fisher information to this power (1 is "fisher", 0
        "natural"). By default "natural" for families with a location, whose noisy rows would
        otherwise hardly count and keep their noise, "fisher" for others.
    metric : {"nll", "crps"}, default="nll"
        Score of the evaluation set that early stopping watches.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.catboost import Distributional
    >>> x = np.linspace(0, 1, 200)[:, None]
    >>> y = 100 + x[:, 0] + (0.1 + x[:, 0]) * np.random.default_rng(0).normal(size=200)
    >>> loss = Distributional("normal")
    >>> model = loss.fit(x, y, rounds=20, learning_rate=0.1, thread_count=1)
    >>> bool(abs(loss.predict_dist(model, x).mean().mean() - 100.5) < 0.1)
    True
    """

    no_jit = True  # CatBoost would compile the method without its state

    def __init__(
        self, family: str | Family = "normal", step: str | float | None = None, metric: str = "nll"
    ) -> None:
        self.family = get_family(family)
        self.step = ("natural" if self.family.locations else "fisher") if step is None else step
        self.metric_name = check_metric(metric, self.family)
        step_exponent(self.step)
        if self.family.n_params == 0:
            raise ValueError(
                f"family {self.family.name} must know its number of classes here; pass n_classes"
            )
        self._fit: Fit | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Distributional:
        # CatBoost copies its loss several times a fit; callback and metric must see the same state.
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_fit": None}

    def __repr__(self) -> str:
        return f"Distributional({self.family!r}, step={self.step!r}, metric={self.metric_name!r})"

    def catboost_params(self) -> dict[str, Any]:
        """Give the parameters that CatBoost needs for this objective.

        Returns
        -------
        dict
            To be merged with one's own; ``iterations`` counts trees, K to a round.
        """
        return {
            "loss_function": self,
            "eval_metric": Score(self),
            "leaf_estimation_method": "Newton",
            "leaf_estimation_iterations": 1,
            "leaf_estimation_backtracking": "No",
            "boosting_type": "Plain",
            "bootstrap_type": "No",
            "random_strength": 0.0,
            "boost_from_average": False,
            "l2_leaf_reg": 1.0,
        }

    @staticmethod
    def categorical_params() -> dict[str, Any]:
        """Give the parameters that categorical features need on top.

        Returns
        -------
        dict
            One-hot encoding up to 255 levels, frequencies beyond: both free of the target.
        """
        counter = ["Counter"]
        return {
            "one_hot_max_size": _ONE_HOT,
            "max_ctr_complexity": 1,
            "simple_ctr": counter,
            "combinations_ctr": counter,
        }

    def pool(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        **options: Any,
    ) -> catboost.Pool:
        """Make the training pool and settle the start value.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as CatBoost takes them.
        y : array-like of shape (n_samples,)
            Responses.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.
        offset : array-like of shape (n_samples,), optional
            Known part of the first raw score, such as log exposure.
        **options : object
            Passed to `catboost.Pool`, such as ``cat_features``.

        Returns
        -------
        catboost.Pool
            Pool whose target is the row's number.

        Raises
        ------
        ValueError
            For responses outside the family's support, and for more than 2**24 rows.
        """
        y, weight, offset = _checked(self.family, y, sample_weight, offset, "y")
        if len(y) > _MOST_ROWS:
            raise ValueError(f"y must have at most {_MOST_ROWS} rows, got {len(y)}; use LightGBM for more")
        steps = Steps(self.family, y, weight, offset, step_exponent(self.step))
        self._fit = Fit(steps, offset)
        weight = None if weight is None else steps.weight
        return catboost.Pool(X, np.arange(len(y), dtype=np.float32), weight=weight, **options)

    def eval_pool(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        **options: Any,
    ) -> catboost.Pool:
        """Make the evaluation pool; call `pool` first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Responses.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.
        offset : array-like of shape (n_samples,), optional
            Known part of the first raw score.
        **options : object
            Passed to `catboost.Pool`.

        Returns
        -------
        catboost.Pool
            Pool whose target is minus one, minus the row's number.
        """
        if self._fit is None:
            raise ValueError("eval_pool needs the start value: call pool(X, y) first")
        y, weight, offset = _checked(self.family, y, sample_weight, offset, "y of the evaluation set")
        self._fit.watch = Watch(self._fit.steps, y, weight, offset)
        return catboost.Pool(X, -1.0 - np.arange(len(y), dtype=np.float32), weight=weight, **options)

    def callback(self) -> Clock:
        """Make the callback that tells the objective whose turn it is.

        Returns
        -------
        object
            To be passed in ``callbacks=[...]`` of every fit.
        """
        return Clock(self)

    def calc_ders_range(self, approxes: Any, targets: Any, weights: Any) -> np.ndarray:
        """Give CatBoost the first and second derivatives of a block of rows.

        Parameters
        ----------
        approxes : array of shape (n_block,)
            Sum of all trees so far, of every parameter.
        targets : array of shape (n_block,)
            Row numbers.
        weights : array of shape (n_block,) or None
            Weights; already known from the pool.

        Returns
        -------
        ndarray of shape (n_block, 2)
            Derivatives of the log likelihood in the parameter whose turn it is.
        """
        if self._fit is None:
            raise ValueError("train on loss.pool(X, y), or use loss.fit(X, y)")
        return self._fit.derivatives(np.asarray(approxes), np.asarray(targets))

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        rounds: int = 300,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        eval_set: tuple[Any, ...] | list[tuple[Any, ...]] | None = None,
        early_stopping_rounds: int | None = None,
        cat_features: Any = None,
        **params: Any,
    ) -> catboost.CatBoost:
        """Train a model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, as CatBoost takes them.
        y : array-like of shape (n_samples,)
            Responses.
        rounds : int, default=300
            Rounds; each grows one tree for every parameter.
        sample_weight, offset : array-like of shape (n_samples,), optional
            As for `pool`.
        eval_set : tuple, or list with one, optional
            ``(X, y)``, ``(X, y, sample_weight)`` or ``(X, y, sample_weight, offset)``.
        early_stopping_rounds : int, optional
            Rounds without a better score of the evaluation set before training stops; the model is
            cut back to its best round.
        cat_features : sequence, optional
            Categorical columns.
        **params : object
            CatBoost's parameters, such as ``depth`` and ``learning_rate``.

        Returns
        -------
        catboost.CatBoost
            Trained model, which knows its family and start value also after ``save_model``.

        Raises
        ------
        ValueError
            For responses outside the family's support, and settings under which parameters cannot take
            turns.
        """
        rounds = check_integer("rounds", rounds, 1)
        if "iterations" in params:
            raise ValueError("iterations counts trees, not rounds; pass rounds instead")
        turns = self.family.n_params
        train = self.pool(X, y, sample_weight, offset, cat_features=cat_features)
        settings: dict[str, Any] = {
            "verbose": False,
            "allow_writing_files": False,
            **self.catboost_params(),
            **(self.categorical_params() if cat_features is not None and len(cat_features) else {}),
            **params,
            "iterations": rounds * turns,
        }
        check_settings(settings, self)
        if self._fit is not None:  # CatBoost multiplies the ridge by the mean weight
            settings["l2_leaf_reg"] /= float(self._fit.steps.weight.mean())
        if isinstance(eval_set, list) and len(eval_set) == 1:
            eval_set = eval_set[0]
        held = None if eval_set is None else self.eval_pool(*eval_set, cat_features=cat_features)
        if held is None:
            if not settings["verbose"]:
                settings["metric_period"] = rounds * turns
        elif early_stopping_rounds is not None:
            settings["od_type"] = "Iter"
            settings["od_wait"] = turns * check_integer("early_stopping_rounds", early_stopping_rounds, 1)
        stop = held is not None and early_stopping_rounds is not None
        model = catboost.CatBoost(settings)
        try:
            with interruptible():
                model.fit(train, eval_set=held, callbacks=[self.callback()], use_best_model=stop)
        except catboost.CatBoostError as error:
            if "All features are either constant or ignored" not in str(error):
                raise
            raise ValueError("X must have a feature that is not constant, got none") from error
        return self.finish(model)

    def finish(self, model: catboost.CatBoost) -> catboost.CatBoost:
        """Write family and start value into a model's metadata.

        Parameters
        ----------
        model : catboost.CatBoost
            Model just trained on `pool`; changed in place.

        Returns
        -------
        catboost.CatBoost
            The model.

        Raises
        ------
        ValueError
            For a model that was not trained as this objective needs.
        """
        fit = self._fit
        if fit is None:
            raise ValueError("finish needs a fit: train on loss.pool(X, y) first")
        check_settings(model.get_params(), self)
        if model.tree_count_ < fit.trees and (fit.watch is None or fit.watch.trees < 0):
            raise ValueError(
                f"eval_set must be a pool of loss.eval_pool(X, y): the model was cut back to "
                f"{model.tree_count_} of {fit.trees} trees by a score of other rows, which says nothing"
            )
        steps = fit.steps
        model.get_metadata()[METADATA_KEY] = json.dumps(
            {"family": self.family.to_dict(), "start": steps.start.tolist(), "low": steps.low.tolist()}
        )
        return model

    def split(self, model: catboost.CatBoost) -> list[catboost.CatBoost]:
        """Cut a model into one ordinary CatBoost model for each parameter.

        Parameters
        ----------
        model : catboost.CatBoost
            Trained or reloaded model.

        Returns
        -------
        list of K catboost.CatBoost
            Their raw predictions are the raw scores; SHAP values, importances and export work.
        """
        return split_model(model)[1]

    def predict_dist(self, model: catboost.CatBoost, X: Any, offset: ArrayLike | None = None) -> Predictive:
        """Predict distributions.

        Parameters
        ----------
        model : catboost.CatBoost
            Trained or reloaded model.
        X : array-like of shape (n_samples, n_features)
            Rows.
        offset : array-like of shape (n_samples,), optional
            As in training.

        Returns
        -------
        Predictive
            One distribution a row.
        """
        family, parts = split_model(model)
        raw = raw_scores(parts, X)
        if offset is not None:
            raw[:, 0] += np.asarray(offset, dtype=np.float64)
        return Predictive(family, family.theta(np.maximum(raw, least_scores(model))))


def _checked(
    family: Family, y: ArrayLike, weight: ArrayLike | None, offset: ArrayLike | None, name: str
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    values = family.responses(y, name)
    family.check_support(values, name)
    if offset is not None:
        offset = check_target(offset, "offset")
        if len(offset) != len(values):
            raise ValueError(f"offset must have {len(values)} rows, got {len(offset)}")
    return values, check_weight(weight, len(values)), offset
