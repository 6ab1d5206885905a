"""HBARTRegressorCV: HBART whose prior is chosen by its log score on held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted, indexable

from boostplugins._files import read_model, restoring, write_model
from boostplugins.estimators._bart_base import BayesianTrees, MixingWarning
from boostplugins.estimators._bart_files import pack_params, unpack_params
from boostplugins.estimators._frames import fit_frame
from boostplugins.estimators._refitting import all_or_nothing
from boostplugins.estimators._rows import check_rows
from boostplugins.estimators.hbart import HBARTRegressor
from boostplugins.estimators.probabilistic import ProbabilisticRegressorMixin
from boostplugins.hbart.chains import show_progress
from boostplugins.predictive import Predictive

# The prior variances that the paper proposes to choose among, with two values each of k and (nu, q).
_DEFAULT_GRID = {"k": [2.0, 3.0], "gamma_prior_variance": [0.01, 1.0, 1000.0]}


class HBARTRegressorCV(ProbabilisticRegressorMixin, MetaEstimatorMixin, BaseEstimator):
    """Choose an HBART's prior by cross-validated log score, then fit it to all rows.

    Parameters
    ----------
    estimator : HBARTRegressor or None, default=None
        Model whose arguments are varied; None takes the default one.
    param_grid : dict, sequence of dict or None, default=None
        Arguments to try, such as k, nu, q, gamma_prior_variance, n_trees. None tries k in (2, 3) and
        prior variances of gamma of 0.01, 1 and 1000.
    cv : int, splitter or None, default=None
        Folds; None is 5.
    verbose : bool or int, default=False
        Whether to show the fits done on the standard error stream.

    Attributes
    ----------
    best_estimator_ : HBARTRegressor
        The best arguments' model, fitted to all rows.
    best_params_ : dict
        Those arguments.
    cv_results_ : list of dict
        For each candidate ``params``, ``log_score`` (mean over held-out rows) and ``standard_error``.

    Notes
    -----
    The log score is the mean log predictive density, proper for mean and variance together; squared
    error would not see the prior of gamma.

    There are as many fits as candidates times folds, and one more: 31 with the defaults, each at the cost
    of one fit of the estimator, that is together minutes for some thousand rows. Fewer candidates or folds,
    or an estimator of fewer iterations or trees, are in proportion cheaper; `n_jobs` of the estimator
    runs its chains side by side.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from boostplugins import HBARTRegressor, HBARTRegressorCV
    >>> X = np.random.default_rng(0).random((60, 1))
    >>> small = HBARTRegressor(n_trees=5, n_burn=20, n_draws=20, n_chains=1, random_state=0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     model = HBARTRegressorCV(small, {"k": [2.0, 1000.0]}, cv=2).fit(X, 5.0 * X[:, 0])
    >>> model.best_params_
    {'k': 2.0}
    """

    def __init__(
        self,
        estimator: HBARTRegressor | None = None,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]] | None = None,
        cv: Any = None,
        *,
        verbose: bool | int = False,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> HBARTRegressorCV:
        """Choose and fit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Responses.
        sample_weight : array-like of shape (n_samples,), optional
            Precisions, in fits and in the scores.

        Returns
        -------
        self
            Fitted estimator.
        """
        base = HBARTRegressor() if self.estimator is None else self.estimator
        if not isinstance(base, BayesianTrees):
            raise TypeError(f"estimator must be an HBARTRegressor, got {base!r}")
        table, _ = fit_frame(self, X, base.cat_features)
        _, target, weight, _ = check_rows(table, y, sample_weight, None, "y")
        weight = np.ones(len(target)) if weight is None else weight
        X = indexable(X)[0]
        if not weight.all():  # a row of weight 0 is no row, in folds as well
            X, target, weight = _safe_indexing(X, weight > 0), target[weight > 0], weight[weight > 0]
            sample_weight = weight
        candidates = list(ParameterGrid(_DEFAULT_GRID if self.param_grid is None else self.param_grid))
        folds = list(check_cv(self.cv, target).split(X, target))
        self.cv_results_ = []
        done, total = 0, len(candidates) * len(folds) + 1
        show = show_progress(type(self).__name__, 0, total, "fit") if self.verbose else None
        for params in candidates:
            scores = []
            for fold in folds:
                model = clone(base).set_params(**params, checkpoint=None)
                scores.append(self._score(model, X, target, weight, fold))
                done += 1
                if show is not None:
                    show(done)
            values = np.array(scores)
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            result = {"params": params, "log_score": float(values.mean()), "standard_error": float(error)}
            self.cv_results_.append(result)
        self.best_params_ = max(self.cv_results_, key=lambda result: result["log_score"])["params"]
        self.best_estimator_ = clone(base).set_params(**self.best_params_).fit(X, target, sample_weight)
        if show is not None:
            show(total)
        return self

    def _score(self, model: HBARTRegressor, X: Any, y: np.ndarray, weight: np.ndarray, fold: Any) -> float:
        train, test = fold
        with warnings.catch_warnings():
            # A fold's chains are compared, not reported.
            warnings.simplefilter("ignore", MixingWarning)
            model.fit(_safe_indexing(X, train), y[train], weight[train])
        return model.log_score(_safe_indexing(X, test), y[test], weight[test])

    def predict_dist(self, X: Any) -> Predictive:
        """Predict with the best model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        Predictive
            Mixture of normals, one a draw.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_dist(X)

    def save(self, path: str | Path) -> None:
        """Write the best model and the scores of all candidates to a file, without executable code.

        Parameters
        ----------
        path : str or Path
            File to write or replace; written as a whole or not at all. A splitter as `cv` is not kept.

        Raises
        ------
        ValueError
            Where an argument is a Python function, which a file cannot hold.
        """
        check_is_fitted(self, "best_estimator_")
        best, arrays = self.best_estimator_._pack()
        state = {
            "best": best,
            "base": None if self.estimator is None else pack_params(self.estimator.get_params(deep=False)),
            "cv": int(self.cv) if isinstance(self.cv, (int, np.integer)) else None,
            "verbose": int(self.verbose),
            "results": [{**result, "params": pack_params(result["params"])} for result in self.cv_results_],
            "best_params": pack_params(self.best_params_),
        }
        write_model(path, type(self).__name__, state, arrays)

    @classmethod
    def load(cls, path: str | Path) -> HBARTRegressorCV:
        """Read a model from a file.

        Parameters
        ----------
        path : str or Path
            File that `save` wrote.

        Returns
        -------
        HBARTRegressorCV
            Fitted; predicts the same bits. Its grid is the list of the candidates tried.

        Raises
        ------
        ValueError
            For a file that is no saved model of this class.
        """
        state, arrays, _ = read_model(path, cls.__name__)
        with restoring(path, cls.__name__):
            base = None if state["base"] is None else HBARTRegressor(**unpack_params(state["base"]))
            results = [{**result, "params": unpack_params(result["params"])} for result in state["results"]]
            grid = [{name: [value] for name, value in result["params"].items()} for result in results]
            model = cls(base, grid, state["cv"], verbose=state.get("verbose", False))
            model.cv_results_, model.best_params_ = results, unpack_params(state["best_params"])
            model.best_estimator_ = HBARTRegressor._unpack(state["best"], arrays)
            model.n_features_in_ = model.best_estimator_.n_features_in_
            if hasattr(model.best_estimator_, "feature_names_in_"):
                model.feature_names_in_ = model.best_estimator_.feature_names_in_
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags
