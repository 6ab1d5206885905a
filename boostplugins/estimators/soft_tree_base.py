"""What the soft tree estimators share: checks, features, settings, explanations, files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from boostplugins._files import read_model, restoring, write_model
from boostplugins._validation import check_integer, check_option, check_real, check_target, check_weight
from boostplugins._warnings import warn
from boostplugins.estimators._frames import fit_frame, predict_frame
from boostplugins.estimators._labels import seed_of, take_rows, warn_of_column
from boostplugins.estimators._progress import shown
from boostplugins.families import Family, get_family
from boostplugins.soft_trees.encoding import Encoder
from boostplugins.soft_trees.fitting import RIDGE_PATH, Settings, fit_model, path_patience
from boostplugins.soft_trees.growth import Growth
from boostplugins.soft_trees.model import SoftTreeModel
from boostplugins.soft_trees.storage import (
    pack_encoder,
    pack_params,
    unpack_encoder,
    unpack_params,
)
from boostplugins.soft_trees.structured import feature_number, prepare


class SoftTreeBase(BaseEstimator):
    """Base of the soft tree estimators; not for direct use."""

    _fitted = "model_"  # what the end of a fit sets
    cat_features: Sequence[Any] | None
    verbose: bool | int
    random_state: int | np.random.Generator | np.random.RandomState | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.non_deterministic = False
        return tags

    def _data(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Any, np.ndarray, np.ndarray]:
        """Check training rows; those of weight 0 are dropped. Sets the encoder."""
        if y is None:
            raise ValueError(
                "y must be given: this estimator requires y to be passed, but the target y is None"
            )
        family = getattr(self, "family", None)
        if isinstance(family, Family) and family.pairs:
            raise ValueError(
                f"family must be one of observed responses, got {family!r}; soft trees do not take limits of "
                "each row, DistributionalRegressor does"
            )
        X, self._categorical = fit_frame(self, X, self.cat_features)
        warn_of_column(y)
        y = check_target(y)
        if len(y) != len(X):
            raise ValueError(f"X and y must have as many rows, got {len(X)} and {len(y)}")
        weight = check_weight(sample_weight, len(y))
        if weight is None:
            weight = np.ones(len(y))
        elif not weight.all():
            used = weight > 0
            X, y, weight = take_rows(X, used), y[used], weight[used]
        self._encoder = Encoder.fit(X, self._categorical, weight)
        return X, y, weight

    def _read(self, X: Any) -> Any:
        check_is_fitted(self, self._fitted)
        return predict_frame(self, X, self._categorical)

    def _names(self) -> list[str]:
        known = getattr(self, "feature_names_in_", None)
        if known is None:
            return [f"x{j}" for j in range(self.n_features_in_)]
        return [str(name) for name in known]

    def _write(self, path: str | Path, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        names = getattr(self, "feature_names_in_", None)
        state = {
            "params": pack_params(self.get_params(deep=False)),
            "encoder": pack_encoder(self._encoder, arrays),
            "categorical": list(self._categorical),
            "names": None if names is None else [str(name) for name in names],
            **state,
        }
        write_model(path, type(self).__name__, state, arrays)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load a saved model.

        Parameters
        ----------
        path : str or Path
            File that `save` wrote.

        Returns
        -------
        estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            For a file that holds no such model.
        """
        state, arrays, _ = read_model(path, cls.__name__)
        with restoring(path, cls.__name__):
            model = cls(**unpack_params(state["params"]))
            model._encoder = unpack_encoder(state["encoder"], arrays)
            model._categorical = [int(j) for j in state["categorical"]]
            model.n_features_in_ = model._encoder.n_features
            if state["names"] is not None:
                model.feature_names_in_ = np.array(state["names"], dtype=object)
            model._restore(state, arrays)
        return model

    def _restore(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        raise NotImplementedError


class GrownTreeBase(SoftTreeBase):
    """Base of the estimators that grow trees by penalised likelihood; not for direct use."""

    def _settings(self) -> Settings:
        """Check the parameters of growth; effects and features follow with the data."""
        if self.ridge != "auto":
            check_real("ridge", self.ridge, 0.0, remedy='"auto" chooses it')
        check_real("node_ridge", self.node_ridge, 0.0)
        check_option("tree", self.tree, ("adaptive", "leaves"))
        check_option("criterion", self.criterion, ("aic", "aicc", "bic", None))
        check_option("df", self.df, ("effective", "coefficients", "leaves"))
        check_option("rule", self.rule, ("best", "each"))
        check_option("selection", self.selection, ("criterion", "validation"))
        check_real("validation_fraction", self.validation_fraction, 0.0, 1.0, closed="neither")
        if self.max_depth is not None:
            check_integer("max_depth", self.max_depth, 1, "None sets no limit")
        if self.ridge == "auto" and self.criterion is None and self.selection == "criterion":
            raise ValueError('ridge="auto" needs a criterion, got None; or use selection="validation"')
        growth = Growth(
            max_leaves=check_integer("max_leaves", self.max_leaves, 1),
            max_depth=self.max_depth,
            criterion=self.criterion,
            df=self.df,
            patience=check_integer("patience", self.patience, 1),
            rule=self.rule,
            joint=bool(self.joint),
        )
        return Settings(
            self.ridge,
            float(self.node_ridge),
            self.tree == "adaptive",
            growth,
            studentize=bool(getattr(self, "studentize", True)),
        )

    def _with_features(self, settings: Settings, family: Family, X: Any, weight: np.ndarray) -> Settings:
        names = self._names()
        every = list(range(self.n_features_in_))
        features, terms = [], []
        chosen = _by_parameter("features", self.features, family)
        effects = _by_parameter("structured", self.structured, family)
        for name in family.params:
            held = chosen.get(name)
            features.append(every if held is None else [feature_number(f, names, "features") for f in held])
            asked = list(effects.get(name) or ())
            terms.append(tuple(prepare(asked, X, names, self._encoder.levels, weight)))
        # Leaves are counted over all parameters' trees: one each is the least.
        growth = replace(settings.growth, max_leaves=settings.growth.max_leaves + family.n_params - 1)
        return replace(settings, features=tuple(features), terms=tuple(terms), growth=growth)

    def _fit_one(
        self, family: Family, X: Any, y: np.ndarray, weight: np.ndarray, settings: Settings
    ) -> SoftTreeModel:
        with shown("boostplugins.soft_trees", self.verbose) as report:
            if settings.ridge == "auto" and self.selection == "validation":
                settings = replace(settings, ridge=self._validated(family, X, y, weight, settings))
            return fit_model(family, X, y, weight, settings, self._encoder, report)

    def _warn_of_ties(self, models: Sequence[SoftTreeModel]) -> None:
        """Say once a fit that a continuous family has met a point mass."""
        met = [model.tied for model in models if model.tied is not None]
        if met:
            trees = f"in {len(met)} of {len(models)} trees, " if len(models) > 1 else ""
            worst = max(met, key=lambda ties: ties.count)
            warn(f"{type(self).__name__}: {trees}{worst.text()}")

    def _validated(
        self, family: Family, X: Any, y: np.ndarray, weight: np.ndarray, settings: Settings
    ) -> float:
        """Ridge of the best log score on held-out rows along the path."""
        n = len(y)
        order = np.random.default_rng(seed_of(self.random_state)).permutation(n)
        held = max(1, round(n * self.validation_fraction))
        if n - held < 1:
            raise ValueError(f'selection="validation" needs at least 2 rows, got {n}')
        test, train = np.sort(order[:held]), np.sort(order[held:])
        best, chosen, waited = -np.inf, RIDGE_PATH[0], 0
        for ridge in RIDGE_PATH:
            model = fit_model(
                family,
                take_rows(X, train),
                y[train],
                weight[train],
                replace(settings, ridge=ridge),
                self._encoder,
            )
            score = float(weight[test] @ family.log_pdf(y[test], model.theta(take_rows(X, test))))
            if score > best:
                best, chosen, waited = score, ridge, 0
            elif any(p.tree.n_splits for p in model.predictors):
                waited += 1
                if waited >= path_patience(n):
                    break
        return chosen


def _by_parameter(argument: str, value: Any, family: Family) -> Mapping[str, Any]:
    """Settings by parameter name; a sequence is for the first parameter (effects) or all (features)."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        unknown = [name for name in value if name not in family.params]
        if unknown:
            raise ValueError(
                f"{argument} must name parameters of {family.name}, got {unknown}; "
                f"parameters: {list(family.params)}"
            )
        return value
    if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, np.ndarray)):
        raise TypeError(f"{argument} must be a list, or a dict of lists by parameter, got {value!r}")
    names = family.params if argument == "features" else family.params[:1]
    return dict.fromkeys(names, value)


def checked_family(family: Any, y: np.ndarray, classes: bool = False) -> Family:
    """Find the family and refuse responses outside its support.

    Parameters
    ----------
    family : str or Family
        Name or instance.
    y : ndarray of shape (n_samples,)
        Responses.
    classes : bool, default=False
        Whether families of classes are allowed.

    Returns
    -------
    Family
        Settled for the data.
    """
    found = get_family(family)
    if found.classification and not classes:
        raise ValueError(f"family {found.name} is for classes; use SoftTreeClassifier")
    found = found.ready(y)
    found.check_support(y)
    if len(y) > 1 and (y == y[0]).all():
        warn(f"y is constant ({y[0]:g}): a constant is fitted")
    return found


def parameter_number(family: Family, parameter: int | str) -> int:
    """Find a distribution parameter.

    Parameters
    ----------
    family : Family
        The family.
    parameter : int or str
        Number or name.

    Returns
    -------
    int
        Its number.

    Raises
    ------
    ValueError
        For an unknown one.
    """
    names = list(family.params)
    if isinstance(parameter, str) and parameter in names:
        return names.index(parameter)
    if isinstance(parameter, (int, np.integer)) and 0 <= parameter < len(names):
        return int(parameter)
    raise ValueError(f"parameter must be one of {names} or its number, got {parameter!r}")
