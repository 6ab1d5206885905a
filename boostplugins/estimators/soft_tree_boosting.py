"""SoftBoostingRegressor: boosting of small soft trees for all parameters of a distribution."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from boostplugins._validation import check_integer, check_real
from boostplugins.estimators._labels import seed_of
from boostplugins.estimators._progress import shown
from boostplugins.estimators._refitting import all_or_nothing
from boostplugins.estimators.probabilistic import ProbabilisticRegressorMixin
from boostplugins.estimators.soft_tree_base import SoftTreeBase, checked_family
from boostplugins.families import Family, family_from_dict
from boostplugins.predictive import Predictive
from boostplugins.soft_trees.boosting import Boosted, BoostingPlan, boost
from boostplugins.soft_trees.objective import Penalty
from boostplugins.soft_trees.storage import pack_tree, unpack_tree
from boostplugins.soft_trees.units import Units, response_units


class SoftBoostingRegressor(ProbabilisticRegressorMixin, SoftTreeBase):
    """Gradient boosting with small soft trees on the score of a distribution.

    In each round every parameter's tree is fitted to its score, weighted by the Fisher information,
    and a share of it is added to the raw score.

    Parameters
    ----------
    family : str or Family, default="normal"
        Distribution of the response.
    n_estimators : int, default=300
        Most rounds.
    learning_rate : float, default=0.1
        Share of each tree that is added.
    max_leaves : int, default=4
        Leaves of each tree.
    ridge : float, default=0.1
        Penalty of squared gate weights on standardised features.
    node_ridge : float, default=0.1
        Penalty of squared node coefficients.
    subsample : float, default=1.0
        Share of rows that each round sees, in (0, 1].
    validation_fraction : float or None, default=0.1
        Share of rows held out to choose the number of rounds; None uses all rows and all rounds.
    patience : int, default=20
        Rounds without a better validation score before boosting stops.
    cat_features : sequence of int or str, optional
        Categorical columns besides those whose type says so.
    verbose : bool or int, default=False
        Whether to show progress.
    random_state : int, Generator, RandomState or None, default=0
        Seed of validation rows and subsamples.

    Attributes
    ----------
    boosted_ : Boosted
        The trees.
    family_ : Family
        The distribution.
    n_iter_, best_iteration_ : int
        Rounds run, and rounds kept.
    history_ : dict of str to ndarray
        Mean log scores "training" and "validation" after each round, the constant's first, in units
        of the response.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where X had names.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.estimators.soft_tree_boosting import SoftBoostingRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(300, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=300)
    >>> SoftBoostingRegressor(n_estimators=60).fit(X, y).score(X, y) > 0.95
    True
    """

    _fitted = "boosted_"

    def __init__(
        self,
        family: str | Family = "normal",
        *,
        n_estimators: int = 300,
        learning_rate: float = 0.1,
        max_leaves: int = 4,
        ridge: float = 0.1,
        node_ridge: float = 0.1,
        subsample: float = 1.0,
        validation_fraction: float | None = 0.1,
        patience: int = 20,
        cat_features: Sequence[Any] | None = None,
        verbose: bool | int = False,
        random_state: int | np.random.Generator | np.random.RandomState | None = 0,
    ) -> None:
        self.family = family
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_leaves = max_leaves
        self.ridge = ridge
        self.node_ridge = node_ridge
        self.subsample = subsample
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.cat_features = cat_features
        self.verbose = verbose
        self.random_state = random_state

    def _plan(self) -> BoostingPlan:
        if self.validation_fraction is not None:
            check_real("validation_fraction", self.validation_fraction, 0.0, 1.0, closed="neither")
        return BoostingPlan(
            check_integer("n_estimators", self.n_estimators, 1),
            check_real("learning_rate", self.learning_rate, 0.0, 1.0, closed="right"),
            check_integer("max_leaves", self.max_leaves, 2),
            Penalty(check_real("ridge", self.ridge, 0.0), check_real("node_ridge", self.node_ridge, 0.0)),
            check_real("subsample", self.subsample, 0.0, 1.0, closed="right"),
            check_integer("patience", self.patience, 1),
            seed_of(self.random_state),
        )

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Boost.

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
        plan = self._plan()
        X, y, weight = self._data(X, y, sample_weight)
        family = checked_family(self.family, y)
        self._units = response_units(family, y, weight)
        x = self._encoder.transform(X)
        standard = (y - self._units.shift) / self._units.scale
        if (y == y[0]).all():
            self._keep(family, Boosted(family.init(standard, weight), (), np.zeros(1), np.empty(0)))
            return self
        train, held = self._hold_out(len(y), plan.seed)
        held_out = None if held is None else (x[held], standard[held], weight[held])
        with shown("boostplugins.soft_trees", self.verbose) as report:
            boosted = boost(family, x[train], standard[train], weight[train], plan, held_out, report)
        self._keep(family, boosted)
        return self

    def _hold_out(self, n: int, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
        if self.validation_fraction is None or n < 2:
            return np.arange(n), None
        order = np.random.default_rng(seed).permutation(n)
        count = min(max(1, round(self.validation_fraction * n)), n - 1)
        return np.sort(order[count:]), np.sort(order[:count])

    def _keep(self, family: Family, boosted: Boosted) -> None:
        self.family_, self.boosted_ = family, boosted
        self.best_iteration_ = len(boosted.rounds)
        self.n_iter_ = max(len(boosted.training) - 1, 1)
        change = self._units.log_scale(family)
        self.history_ = {
            "training": boosted.training - change,
            "validation": boosted.validation - change,
        }

    def predict_raw(self, X: Any, n_rounds: int | None = None) -> np.ndarray:
        """Predict the raw scores (link scale) of all parameters.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows to predict.
        n_rounds : int, optional
            Rounds to add up; all that were kept by default.

        Returns
        -------
        ndarray of shape (n_samples, n_params)
            Raw scores.
        """
        X = self._read(X)
        raw = self.boosted_.raw(self._encoder.transform(X), n_rounds)
        return raw * self._units.factor + self._units.add

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
        raw = self.predict_raw(X)
        return Predictive(self.family_, self.family_.theta(raw))

    def save(self, path: str | Path) -> None:
        """Save the fitted model as npz with a JSON head: no executable code.

        Parameters
        ----------
        path : str or Path
            File to write or replace, as a whole or not at all.
        """
        check_is_fitted(self, "boosted_")
        arrays: dict[str, np.ndarray] = {"start": self.boosted_.start}
        for r, trees in enumerate(self.boosted_.rounds):
            for k, tree in enumerate(trees):
                pack_tree(tree, f"{r}.{k}", arrays)
        arrays |= {"training": self.boosted_.training, "validation": self.boosted_.validation}
        arrays |= {"factor": self._units.factor, "add": self._units.add}
        state = {
            "family": self.family_.to_dict(),
            "rounds": len(self.boosted_.rounds),
            "units": [self._units.scale, self._units.shift],
        }
        self._write(path, state, arrays)

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        family = family_from_dict(state["family"])
        rounds = tuple(
            tuple(unpack_tree(f"{r}.{k}", arrays) for k in range(family.n_params))
            for r in range(int(state["rounds"]))
        )
        width = len(self._encoder.source)
        if any(tree.omega.shape[1] != width for trees in rounds for tree in trees):
            raise ValueError("trees and columns do not fit together")
        scale, shift = (float(value) for value in state["units"])
        self._units = Units(scale, shift, arrays["factor"], arrays["add"])
        self._keep(family, Boosted(arrays["start"], rounds, arrays["training"], arrays["validation"]))
