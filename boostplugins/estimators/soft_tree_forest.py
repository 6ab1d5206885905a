"""SoftForestRegressor: soft trees on random parts of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from boostplugins._validation import check_integer, check_jobs, check_real
from boostplugins.estimators._labels import seed_of
from boostplugins.estimators._refitting import all_or_nothing
from boostplugins.estimators.probabilistic import ProbabilisticRegressorMixin
from boostplugins.estimators.soft_tree_base import GrownTreeBase, checked_family, take_rows
from boostplugins.families import Family
from boostplugins.predictive import Predictive
from boostplugins.soft_trees.encoding import Encoder
from boostplugins.soft_trees.fitting import Settings, fit_model
from boostplugins.soft_trees.model import SoftTreeModel
from boostplugins.soft_trees.storage import pack_model, unpack_model


class SoftForestRegressor(ProbabilisticRegressorMixin, GrownTreeBase):
    """Forest of distributional adaptive soft regression trees.

    Each member is a `SoftTreeRegressor` on rows of its own; the prediction is the mixture of the
    members' distributions, whose disagreement is knowledge uncertainty.

    Parameters
    ----------
    family : str or Family, default="normal"
        Distribution of the response.
    n_estimators : int, default=30
        Members.
    max_samples : float, default=0.85
        Share of rows that a member sees, in (0, 1]; with `bootstrap` the share drawn. Smooth trees vary
        little, so that members lose more by missing rows than their mixture gains by differing.
    bootstrap : bool, default=False
        Whether rows are drawn with replacement.
    max_features : float, default=1.0
        Share of features that a member's gates see, in (0, 1].
    ridge : float or "auto", default="auto"
        As in `SoftTreeRegressor`; "auto" chooses it once, on all rows.
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
    studentize : bool, default=True
        As in `SoftTreeRegressor`.
    features : sequence or dict of sequences, optional
        As in `SoftTreeRegressor`.
    structured : sequence or dict of sequences, optional
        As in `SoftTreeRegressor`.
    selection : {"criterion", "validation"}, default="criterion"
        As in `SoftTreeRegressor`.
    validation_fraction : float, default=0.2
        As in `SoftTreeRegressor`.
    cat_features : sequence of int or str, optional
        Categorical columns besides those whose type says so.
    n_jobs : int, optional
        Jobs of joblib, of whichever backend is chosen; never changes a bit of the result.
    verbose : bool or int, default=False
        Whether to show progress of the choice of the ridge.
    random_state : int, Generator, RandomState or None, default=0
        Seed of rows and features.

    Attributes
    ----------
    members_ : list of SoftTreeModel
        Fitted models.
    ridge_ : float
        Ridge of the members.
    family_ : Family
        The distribution.
    importances_ : dict of str to ndarray of shape (n_features,)
        Means of the members' importances.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where X had names.

    Warns
    -----
    UserWarning
        Where a continuous family meets many equal responses, and a spread falls to its floor on them.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.estimators.soft_tree_forest import SoftForestRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(200, 1))
    >>> y = np.abs(X[:, 0]) + 0.1 * rng.normal(size=200)
    >>> forest = SoftForestRegressor(n_estimators=3, ridge=0.3).fit(X, y)
    >>> near, far = forest.predict_uncertainty([[0.5], [6.0]]).knowledge
    >>> bool(near < far)
    True
    """

    _fitted = "members_"

    def __init__(
        self,
        family: str | Family = "normal",
        *,
        n_estimators: int = 30,
        max_samples: float = 0.85,
        bootstrap: bool = False,
        max_features: float = 1.0,
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
        n_jobs: int | None = None,
        verbose: bool | int = False,
        random_state: int | np.random.Generator | np.random.RandomState | None = 0,
    ) -> None:
        self.family = family
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.bootstrap = bootstrap
        self.max_features = max_features
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
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the members.

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
        count = check_integer("n_estimators", self.n_estimators, 1)
        check_real("max_samples", self.max_samples, 0.0, 1.0, closed="right")
        check_real("max_features", self.max_features, 0.0, 1.0, closed="right")
        check_jobs(self.n_jobs)
        seed = seed_of(self.random_state)
        X, y, weight = self._data(X, y, sample_weight)
        family = checked_family(self.family, y)
        settings = self._with_features(settings, family, X, weight)
        if settings.ridge == "auto":
            chosen = self._fit_one(family, X, y, weight, settings)
            settings = replace(settings, ridge=chosen.figures["ridge"])
        self.ridge_ = float(settings.ridge)
        plans = [self._draw(settings, len(y), seed, b) for b in range(count)]
        # The limit is set out here too: threads that set and reset it alone would race.
        with threadpool_limits(1, user_api="blas"):
            self.members_: list[SoftTreeModel] = Parallel(n_jobs=self.n_jobs)(
                delayed(_fit_member)(family, X, y, weight, held, rows, self._encoder) for rows, held in plans
            )
        self.family_ = family
        self.importances_ = {
            name: np.mean([member.importances(X, k) for member in self.members_], axis=0)
            for k, name in enumerate(family.params)
        }
        self._warn_of_ties(self.members_)
        return self

    def _draw(self, settings: Settings, n: int, seed: int, member: int) -> tuple[np.ndarray, Settings]:
        """Rows and features of a member, from its number alone."""
        rng = np.random.default_rng((seed, member))
        size = max(1, round(self.max_samples * n))
        rows = np.sort(rng.integers(n, size=size) if self.bootstrap else rng.permutation(n)[:size])
        if self.max_features == 1.0 or settings.features is None:
            return rows, settings
        features = []
        for held in settings.features:
            keep = max(1, round(self.max_features * len(held)))
            features.append(sorted(rng.permutation(np.asarray(held, dtype=np.int64))[:keep].tolist()))
        return rows, replace(settings, features=tuple(features))

    def members_theta(self, X: Any) -> np.ndarray:
        """Predict each member's parameters.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples, n_members, n_params)
            Parameters.
        """
        X = self._read(X)
        return np.stack([member.theta(X) for member in self.members_], axis=1)

    def predict_dist(self, X: Any) -> Predictive:
        """Predict the distribution of the response.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        Predictive
            An equally weighted mixture of the members' distributions.
        """
        theta = self.members_theta(X)
        return Predictive(self.family_, theta)

    def save(self, path: str | Path) -> None:
        """Save the fitted model as npz with a JSON head: no executable code.

        Parameters
        ----------
        path : str or Path
            File to write or replace, as a whole or not at all.
        """
        check_is_fitted(self, "members_")
        arrays: dict[str, np.ndarray] = {}
        states = [pack_model(member, f"m{b}", arrays) for b, member in enumerate(self.members_)]
        for name, values in self.importances_.items():
            arrays[f"importance.{name}"] = values
        self._write(path, {"members": states, "ridge": self.ridge_}, arrays)

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.members_ = [
            unpack_model(held, f"m{b}", arrays, self._encoder) for b, held in enumerate(state["members"])
        ]
        self.family_, self.ridge_ = self.members_[0].family, float(state["ridge"])
        self.importances_ = {name: arrays[f"importance.{name}"] for name in self.family_.params}


def _fit_member(
    family: Family,
    X: Any,
    y: np.ndarray,
    weight: np.ndarray,
    settings: Settings,
    rows: np.ndarray,
    encoder: Encoder,
) -> SoftTreeModel:
    return fit_model(family, take_rows(X, rows), y[rows], weight[rows], settings, encoder)
