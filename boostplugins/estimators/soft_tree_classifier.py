"""SoftTreeClassifier: class probabilities by smooth adaptive trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from boostplugins._validation import refuse_times
from boostplugins.estimators._labels import refuse_odd_labels, seed_of, warn_of_column
from boostplugins.estimators._refitting import all_or_nothing
from boostplugins.estimators._saved import pack_labels, unpack_labels
from boostplugins.estimators.soft_tree_base import GrownTreeBase
from boostplugins.families import Family, get_family
from boostplugins.families.categorical import Categorical
from boostplugins.predictive import Predictive
from boostplugins.soft_trees.storage import pack_model, unpack_model
from boostplugins.uncertainty import Uncertainty


class SoftTreeClassifier(ClassifierMixin, GrownTreeBase):
    """Soft tree for classes: one tree for the log odds, or one a class through the softmax.

    Parameters
    ----------
    ridge : float or "auto", default="auto"
        As in `SoftTreeRegressor`.
    node_ridge : float, default=0.03
        As in `SoftTreeRegressor`.
    max_leaves : int, default=64
        As in `SoftTreeRegressor`.
    max_depth : int, optional
        As in `SoftTreeRegressor`.
    criterion : {"bic", "aic", "aicc", None}, default="bic"
        As in `SoftTreeRegressor`.
    df : {"effective", "coefficients", "leaves"}, default="effective"
        As in `SoftTreeRegressor`.
    patience : int, default=6
        As in `SoftTreeRegressor`.
    tree : {"adaptive", "leaves"}, default="adaptive"
        As in `SoftTreeRegressor`.
    rule : {"best", "each"}, default="best"
        As in `SoftTreeRegressor`.
    joint : bool, default=True
        As in `SoftTreeRegressor`.
    features : sequence or dict of sequences, optional
        Features that gates see; a dict gives them by parameter ("p" for two classes, else "p0", ...).
    structured : sequence or dict of sequences, optional
        `Linear` and `Smooth` effects; a sequence is for the first parameter.
    selection : {"criterion", "validation"}, default="criterion"
        As in `SoftTreeRegressor`.
    validation_fraction : float, default=0.2
        As in `SoftTreeRegressor`.
    cat_features : sequence of int or str, optional
        Categorical columns besides those whose type says so.
    verbose : bool or int, default=False
        Whether to show progress.
    random_state : int, Generator, RandomState or None, default=0
        Draws the validation rows; nothing else is random.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    model_ : SoftTreeModel
        Trees and effects.
    importances_ : dict of str to ndarray of shape (n_features,)
        Share of each feature in the changes of each raw score.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where X had names.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.estimators.soft_tree_classifier import SoftTreeClassifier
    >>> X = np.linspace(-2, 2, 200)[:, None]
    >>> y = np.where(np.abs(X[:, 0]) < 1, "inside", "outside")
    >>> SoftTreeClassifier(ridge=0.1).fit(X, y).predict([[0.0], [1.8]]).tolist()
    ['inside', 'outside']
    """

    def __init__(
        self,
        *,
        ridge: float | str = "auto",
        node_ridge: float = 0.03,
        max_leaves: int = 64,
        max_depth: int | None = None,
        criterion: str | None = "bic",
        df: str = "effective",
        patience: int = 6,
        tree: str = "adaptive",
        rule: str = "best",
        joint: bool = True,
        features: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
        structured: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
        selection: str = "criterion",
        validation_fraction: float = 0.2,
        cat_features: Sequence[Any] | None = None,
        verbose: bool | int = False,
        random_state: int | np.random.Generator | np.random.RandomState | None = 0,
    ) -> None:
        self.ridge = ridge
        self.node_ridge = node_ridge
        self.max_leaves = max_leaves
        self.max_depth = max_depth
        self.criterion = criterion
        self.df = df
        self.patience = patience
        self.tree = tree
        self.rule = rule
        self.joint = joint
        self.features = features
        self.structured = structured
        self.selection = selection
        self.validation_fraction = validation_fraction
        self.cat_features = cat_features
        self.verbose = verbose
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Features; NaN for missing.
        y : array-like of shape (n_samples,)
            Class labels of any sortable type.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, counted as repeated rows.

        Returns
        -------
        self
            The fitted estimator.
        """
        settings = self._settings()
        seed_of(self.random_state)
        classes, codes = np.unique(_labels(y), return_inverse=True)
        X, numbers, weight = self._data(X, codes.astype(np.float64), sample_weight)
        if len(classes) < 2:
            raise ValueError(f"y must hold at least 2 classes, got 1 class only: {classes[0]!r}")
        if len(np.unique(numbers)) < 2:
            raise ValueError("y must hold at least 2 classes with positive sample_weight, got 1 class")
        self.classes_ = classes
        family: Family = get_family("bernoulli") if len(classes) == 2 else Categorical(len(classes))
        settings = self._with_features(settings, family, X, weight)
        self.model_ = self._fit_one(family, X, numbers, weight, settings)
        self.importances_ = {name: self.model_.importances(X, k) for k, name in enumerate(family.params)}
        return self

    def predict_dist(self, X: Any) -> Predictive:
        """Predict the distribution of class numbers.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        Predictive
            Of the numbers of `classes_`.
        """
        X = self._read(X)
        return Predictive(self.model_.family, self.model_.theta(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict class probabilities.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities in the order of `classes_`.
        """
        return self.predict_dist(X).probabilities()

    def predict(self, X: Any) -> np.ndarray:
        """Predict the most probable class.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def predict_uncertainty(self, X: Any) -> Uncertainty:
        """Split the predictive entropy; a single tree has no knowledge part.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        Uncertainty
            Entropies in nats.
        """
        return self.predict_dist(X).uncertainty()

    def save(self, path: str | Path) -> None:
        """Save the fitted model as npz with a JSON head: no executable code.

        Parameters
        ----------
        path : str or Path
            File to write or replace, as a whole or not at all.
        """
        check_is_fitted(self, "model_")
        arrays: dict[str, np.ndarray] = {}
        state = {"model": pack_model(self.model_, "m", arrays), "classes": pack_labels(self.classes_)}
        for name, values in self.importances_.items():
            arrays[f"importance.{name}"] = values
        self._write(path, state, arrays)

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.model_ = unpack_model(state["model"], "m", arrays, self._encoder)
        self.classes_ = unpack_labels(state["classes"])
        self.importances_ = {name: arrays[f"importance.{name}"] for name in self.model_.family.params}


def _labels(y: Any) -> np.ndarray:
    if y is None:
        raise ValueError("y must be given: this estimator requires y to be passed, but the target y is None")
    warn_of_column(y)
    values = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"y must have shape (n_samples,), got {values.shape}")
    refuse_times("y", values)
    refuse_odd_labels("y", values)
    check_classification_targets(values)
    return values
