"""SoftTreeRegressor: one smooth adaptive tree for each parameter of a distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from boostplugins.estimators._labels import seed_of
from boostplugins.estimators._refitting import all_or_nothing
from boostplugins.estimators.probabilistic import ProbabilisticRegressorMixin
from boostplugins.estimators.soft_tree_base import (
    GrownTreeBase,
    checked_family,
    parameter_number,
)
from boostplugins.families import Family
from boostplugins.predictive import Predictive
from boostplugins.soft_trees.explain import coefficient_table, gate_table
from boostplugins.soft_trees.storage import pack_model, unpack_model


class SoftTreeRegressor(ProbabilisticRegressorMixin, GrownTreeBase):
    r"""Distributional adaptive soft regression tree [1]_.

    Each parameter of the response's distribution has a tree whose splits are smooth gates
    :math:`1 / (1 + e^{-(\omega_0 + x'\omega)})` on all features. Trees grow together, split by split,
    by the penalised likelihood; after each split all gates and coefficients are optimised jointly.

    Parameters
    ----------
    family : str or Family, default="normal"
        Distribution of the response.
    ridge : float or "auto", default="auto"
        Penalty of squared gate weights on standardised features, in units of log likelihood; "auto"
        walks down a path and takes the best by `selection`.
    node_ridge : float, default=0.03
        Penalty of squared node coefficients, the response being at scale 1 where the family follows;
        parameters after the first (deviation, shape) have 30 times as much.
    max_leaves : int, default=64
        Most leaves of all trees together, beyond one for each parameter but the first.
    max_depth : int, optional
        Most gates on a path.
    criterion : {"bic", "aic", "aicc", None}, default="bic"
        What decides when growth stops. A model is not kept, whatever its criterion, where its degrees of
        freedom pass half the rows, or where a spread falls on rows that the mean has taken up. None
        grows as long as the penalised likelihood rises.
    df : {"effective", "coefficients", "leaves"}, default="effective"
        Degrees of freedom in the criterion: trace of the penalised information; the count of
        coefficients (the paper's text); the count of leaves (its software).
    patience : int, default=6
        Splits without a better criterion before growth stops; they are removed.
    tree : {"adaptive", "leaves"}, default="adaptive"
        Coefficients at every node (AdaSoRT) or only in leaves (SoRT).
    rule : {"best", "each"}, default="best"
        One split a step, the best over all parameters, or the best of each parameter in turn.
    joint : bool, default=True
        Whether all gates and coefficients are optimised jointly; otherwise gates stay as they were
        made, and coefficients follow by iteratively weighted least squares.
    studentize : bool, default=True
        Whether parameters after the first (deviation, shape) are fitted a last time to studentised
        residuals: those of a mean that has adapted to its rows are too small, most of all where rows
        are few. False keeps the maximum of the penalised likelihood.
    features : sequence or dict of sequences, optional
        Features (numbers or names) that gates see; a dict gives them by parameter name.
    structured : sequence or dict of sequences, optional
        `Linear` and `Smooth` effects beside the tree; a dict gives them by parameter name, a
        sequence is for the first parameter.
    selection : {"criterion", "validation"}, default="criterion"
        What ``ridge="auto"`` goes by: the criterion, or the log score of held-out rows.
    validation_fraction : float, default=0.2
        Share of rows held out when ``selection="validation"``; the model is then refitted on all.
    cat_features : sequence of int or str, optional
        Categorical columns besides those whose type says so.
    verbose : bool or int, default=False
        Whether to show progress.
    random_state : int, Generator, RandomState or None, default=0
        Draws the validation rows; nothing else is random.

    Attributes
    ----------
    model_ : SoftTreeModel
        Trees and effects.
    family_ : Family
        The distribution.
    figures_ : dict of str to float
        Ridge, log likelihood, penalised log likelihood, degrees of freedom, criterion.
    path_ : ndarray of shape (n_steps, 4)
        Leaves, penalised log likelihood, degrees of freedom, criterion along the growth.
    importances_ : dict of str to ndarray of shape (n_features,)
        Share of each feature in the changes of each parameter's raw score.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where X had names.

    Warns
    -----
    UserWarning
        Where a continuous family meets many equal responses, and a spread falls to its floor on them.

    Notes
    -----
    Features are standardised inside; a missing number is the mean, with a column that marks it if
    there were some in training. Sample weights count as repeated rows.

    References
    ----------
    .. [1] Umlauf, Klein (2022), Distributional adaptive soft regression trees. arXiv:2210.10389.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.estimators.soft_tree import SoftTreeRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(400, 1))
    >>> y = np.abs(X[:, 0]) + 0.1 * np.exp(X[:, 0] / 2) * rng.normal(size=400)
    >>> model = SoftTreeRegressor(ridge=0.1).fit(X, y)
    >>> np.abs(model.predict([[-1.0], [1.0]]) - 1.0).max() < 0.1
    np.True_
    >>> quiet, loud = model.predict_dist([[-1.5], [1.5]]).std()
    >>> bool(quiet < loud)
    True
    """

    def __init__(
        self,
        family: str | Family = "normal",
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
        studentize: bool = True,
        features: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
        structured: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
        selection: str = "criterion",
        validation_fraction: float = 0.2,
        cat_features: Sequence[Any] | None = None,
        verbose: bool | int = False,
        random_state: int | np.random.Generator | np.random.RandomState | None = 0,
    ) -> None:
        self.family = family
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
        self.studentize = studentize
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
            Responses within the family's support.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, counted as repeated rows.

        Returns
        -------
        self
            The fitted estimator.
        """
        settings = self._settings()
        seed_of(self.random_state)
        X, y, weight = self._data(X, y, sample_weight)
        family = checked_family(self.family, y)
        settings = self._with_features(settings, family, X, weight)
        self.model_ = self._fit_one(family, X, y, weight, settings)
        self.importances_ = {name: self.model_.importances(X, k) for k, name in enumerate(family.params)}
        self._warn_of_ties([self.model_])
        return self

    @property
    def family_(self) -> Family:
        """Distribution of the response."""
        check_is_fitted(self, "model_")
        return self.model_.family

    @property
    def figures_(self) -> dict[str, float]:
        """Figures of the fit."""
        check_is_fitted(self, "model_")
        return self.model_.figures

    @property
    def path_(self) -> np.ndarray:
        """Figures along the growth."""
        check_is_fitted(self, "model_")
        return self.model_.path

    def predict_dist(self, X: Any) -> Predictive:
        """Predict the distribution of the response.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        Predictive
            One distribution a row.
        """
        X = self._read(X)
        return Predictive(self.model_.family, self.model_.theta(X))

    def predict_raw(self, X: Any, hard: bool = False) -> np.ndarray:
        """Predict the raw scores (link scale) of all parameters.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows to predict.
        hard : bool, default=False
            Whether each gate decides for one side; a tree then has as many values as leaves.

        Returns
        -------
        ndarray of shape (n_samples, n_params)
            Raw scores.
        """
        X = self._read(X)
        return self.model_.harden(X) if hard else self.model_.raw(X)

    def effects(self, X: Any, parameter: int | str = 0) -> dict[str, np.ndarray]:
        """Decompose a raw score into structured, coarse and fine parts.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows.
        parameter : int or str, default=0
            Parameter of the distribution.

        Returns
        -------
        dict of str to ndarray of shape (n_samples,)
            Structured effects by name; ``level 0`` (constant) to ``level d`` (finest) of the tree.
            They sum to the raw score.
        """
        X = self._read(X)
        k = parameter_number(self.model_.family, parameter)
        labels, effects = self.model_.structured(X, k)
        levels = self.model_.levels(X, k)
        return dict(zip(labels, effects.T)) | {f"level {d}": part for d, part in enumerate(levels.T)}

    def coefficients(self, parameter: int | str = 0) -> list[dict[str, Any]]:
        """Report the linear effects, and the strength of the smooth ones.

        Parameters
        ----------
        parameter : int or str, default=0
            Parameter of the distribution.

        Returns
        -------
        list of dict
            For a linear effect: name, estimate, standard_error (raw score for a unit of the
            feature). For a smooth one: name, its coefficients and their standard_errors.
        """
        check_is_fitted(self, "model_")
        return coefficient_table(self.model_, parameter_number(self.model_.family, parameter))

    def partial_effect(
        self, X: Any, feature: int | str, parameter: int | str = 0, grid: ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Average a raw score over rows with one feature set to given values.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows to average over.
        feature : int or str
            Number or name of the feature.
        parameter : int or str, default=0
            Parameter of the distribution.
        grid : array-like, optional
            Values; by default 30 quantiles of a number, the levels of a category.

        Returns
        -------
        grid, effect : ndarray of shape (n_grid,)
            Values and average raw scores.
        """
        from boostplugins.soft_trees.structured import feature_number

        X = self._read(X)
        j = feature_number(feature, self._names(), "feature")
        if grid is None:
            held = self.model_.encoder.levels[j]
            column = X.iloc[:, j] if hasattr(X, "iloc") else X[:, j]
            grid = held if held is not None else np.unique(np.nanquantile(column, np.linspace(0, 1, 30)))
        values = np.asarray(grid)
        return values, self.model_.partial(X, parameter_number(self.model_.family, parameter), j, values)

    def tree_data(self, parameter: int | str = 0) -> list[dict[str, Any]]:
        """Describe a tree's nodes and gates, with places for a picture.

        Parameters
        ----------
        parameter : int or str, default=0
            Parameter of the distribution.

        Returns
        -------
        list of dict
            A node each: node, parent, depth, x, coefficient, and for a divided node its gate in
            units of the features.
        """
        check_is_fitted(self, "model_")
        k = parameter_number(self.model_.family, parameter)
        return gate_table(self.model_, k, self._names())

    def save(self, path: str | Path) -> None:
        """Save the fitted model as npz with a JSON head: no executable code.

        Parameters
        ----------
        path : str or Path
            File to write or replace, as a whole or not at all.
        """
        check_is_fitted(self, "model_")
        arrays: dict[str, np.ndarray] = {}
        state = {"model": pack_model(self.model_, "m", arrays)}
        for name, values in self.importances_.items():
            arrays[f"importance.{name}"] = values
        self._write(path, state, arrays)

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.model_ = unpack_model(state["model"], "m", arrays, self._encoder)
        self.importances_ = {name: arrays[f"importance.{name}"] for name in self.model_.family.params}
