"""What the regressors made of small networks share: checks, preparation, prediction, saving."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from boostplugins._files import read_model, restoring, write_model
from boostplugins._validation import (
    check_integer,
    check_jobs,
    check_option,
    check_real,
    check_target,
    check_weight,
)
from boostplugins._warnings import warn
from boostplugins.estimators._frames import fit_frame, predict_frame
from boostplugins.estimators._labels import seed_of, take_rows, warn_of_column
from boostplugins.estimators._progress import shown
from boostplugins.estimators.probabilistic import ProbabilisticRegressorMixin
from boostplugins.families import Family, Normal
from boostplugins.families.normal_mixture import NormalMixture
from boostplugins.predictive import Predictive
from boostplugins.usnrt.calibration import CALIBRATIONS, GROUPS
from boostplugins.usnrt.encoding import TableEncoder, mean_and_scale
from boostplugins.usnrt.growth import Problem, TreePlan, fit_trees, hold_out
from boostplugins.usnrt.network import Training
from boostplugins.usnrt.pair import PairPlan, Sample
from boostplugins.usnrt.saving import (
    Arrays,
    pack_encoder,
    pack_history,
    pack_models,
    unpack_encoder,
    unpack_history,
    unpack_models,
)
from boostplugins.usnrt.workers import Progress, one_blas_thread

# Standard deviation given to a constant target, relative to its size.
LEAST_SPREAD = 1e-9


class NetworkRegressor(ProbabilisticRegressorMixin, BaseEstimator):
    """Base of the regressors made of small networks; not for direct use."""

    _fitted = "members_"  # what the end of a fit sets
    n_jobs: int | None
    verbose: bool | int
    random_state: int | np.random.Generator | np.random.RandomState | None
    cat_features: Sequence[Any] | None
    dtype: str
    validation_fraction: float

    def _check_network_params(self) -> Training:
        """Check the parameters that all share."""
        check_option("dtype", self.dtype, ("float32", "float64"))
        check_real("validation_fraction", self.validation_fraction, 0.0, 1.0, closed="neither")
        check_jobs(self.n_jobs)
        return Training(
            check_integer("max_epochs", self.max_epochs, 1),
            check_integer("batch_size", self.batch_size, 1),
            check_real("learning_rate", self.learning_rate, 0.0, closed="neither"),
            check_integer("patience", self.patience, 1),
            check_integer("learning_rate_drops", self.learning_rate_drops, 0, "0 stops at the first stall"),
        )

    def _prepare(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, members: int) -> Problem:
        """Check the data and make them ready; sets the encoder and the target's mean and scale."""
        training = self._check_network_params()
        if y is None:
            raise ValueError(
                "y must be given: this estimator requires y to be passed, but the target y is None"
            )
        X, self._categorical = fit_frame(self, X, self.cat_features)
        warn_of_column(y)
        y = check_target(y)
        if len(y) != len(X):
            raise ValueError(f"X and y must have as many rows, got {len(X)} and {len(y)}")
        weight = check_weight(sample_weight, len(y))
        weight = np.ones(len(y)) if weight is None else weight / weight.max()
        used = weight > 0  # a row of weight 0 is no row, in the scan of splits as well
        X, y, weight = take_rows(X, used), y[used], weight[used]
        seed = seed_of(self.random_state)
        held_out = hold_out(len(y), self.validation_fraction, members, seed)
        self._encoder = TableEncoder.fit(X, self._categorical)
        self._center, self._unit = mean_and_scale(y)
        if (y == y[0]).all():
            if len(y) > 1:
                warn(f"y is constant ({y[0]:g}): predictions are this constant")
            self._center, self._unit = float(y[0]), LEAST_SPREAD * max(1.0, abs(float(y[0])))
        table = self._encoder.table(X)
        dtype = np.dtype(self.dtype)
        sample = Sample(
            self._encoder.inputs(table, dtype),
            ((y - self._center) / self._unit).astype(dtype),
            (weight / weight.mean()).astype(dtype),
        )
        return Problem(table, self._encoder.n_levels, sample, held_out, training, seed)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.non_deterministic = False
        return tags

    def _read(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Check rows to predict; what the tree and what the networks see."""
        check_is_fitted(self, self._fitted)
        table = self._encoder.table(predict_frame(self, X, self._categorical))
        return table, self._encoder.inputs(table, np.dtype(self.dtype))

    def _names(self) -> list[str]:
        known = getattr(self, "feature_names_in_", None)
        return (
            [f"x{j}" for j in range(self.n_features_in_)] if known is None else [str(name) for name in known]
        )

    @abstractmethod
    def _pack(self) -> tuple[dict[str, Any], Arrays]:
        """Take apart what `fit` has learned beyond the encoder."""

    @abstractmethod
    def _unpack(self, state: dict[str, Any], arrays: Arrays) -> None:
        """Put together what `_pack` took apart."""

    def save(self, path: str | Path) -> None:
        """Save the fitted model as npz with a JSON head: no executable code.

        Parameters
        ----------
        path : str or Path
            File to write or replace, as a whole or not at all.
        """
        check_is_fitted(self, self._fitted)
        encoder_state, encoder_arrays = pack_encoder(self._encoder)
        own_state, own_arrays = self._pack()
        params = self.get_params(deep=False)
        if isinstance(params["random_state"], (np.random.Generator, np.random.RandomState)):
            params["random_state"] = None  # a generator's state is no part of the model
        names = getattr(self, "feature_names_in_", None)
        state = {
            "params": {name: plain(value) for name, value in params.items()},
            "encoder": encoder_state,
            "categorical": list(self._categorical),
            "target": [self._center, self._unit],
            "names": None if names is None else [str(name) for name in names],
            "own": own_state,
        }
        write_model(path, type(self).__name__, state, encoder_arrays | own_arrays)

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
            params = state["params"]
            model = cls(**{name: tuple(v) if isinstance(v, list) else v for name, v in params.items()})
            model._encoder = unpack_encoder(state["encoder"], arrays)
            model._categorical = [int(j) for j in state["categorical"]]
            model._center, model._unit = (float(value) for value in state["target"])
            model.n_features_in_ = len(model._encoder.levels)
            if state["names"] is not None:
                model.feature_names_in_ = np.array(state["names"], dtype=object)
            model._unpack(state["own"], arrays)
        return model


class PairRegressor(NetworkRegressor):
    """Base of regressors whose members are trees (or single leaves) of mean and variance networks."""

    def _check_pair_params(self) -> None:
        check_integer("n_members", self.n_members, 1)
        check_integer("rounds", self.rounds, 1)
        check_real("beta", self.beta, 0.0, 1.0, remedy="0 is the plain likelihood, 1 squared error")
        check_real("variance_floor", self.variance_floor, 0.0, 1e6, closed="right")
        check_option("calibration", self.calibration, CALIBRATIONS)

    def _fit_members(
        self,
        problem: Problem,
        tree_plan: TreePlan | None,
        hidden: tuple[int, ...],
        callback: Callable[[Progress], object] | None,
    ) -> None:
        plan = self._pair_plan(hidden)
        with shown("boostplugins.usnrt", self.verbose):
            self.members_, self.history_ = fit_trees(problem, tree_plan, plan, self.n_jobs, callback)
        self.n_iter_ = max(len(h.loss) - 1 for leaf in self.history_ for h in leaf)
        self._plan = plan

    def _pair_plan(self, hidden: tuple[int, ...]) -> PairPlan:
        return PairPlan(hidden, self.rounds, float(self.beta), float(self.variance_floor), self.calibration)

    def predict_dist(self, X: Any) -> Predictive:
        """Predict the distribution of the response.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        Predictive
            A Normal a row, or with ``calibration="shape"`` a `NormalMixture`; an equally weighted
            mixture of these if there are several members.
        """
        table, theta = self._normals(X)
        family: Family = Normal()
        if any(pair.correction.shape is not None for member in self.members_ for pair in member.pairs):
            family, theta = NormalMixture(GROUPS), self._shaped(table, theta)
        return Predictive(family, theta[:, 0] if len(self.members_) == 1 else theta)

    def _normals(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """What the trees see, and mean and standard deviation of each row and member."""
        table, inputs = self._read(X)
        theta = np.empty((len(table), len(self.members_), 2))
        with one_blas_thread():
            for number, member in enumerate(self.members_):
                mean, variance = member.predict(table, inputs, self._encoder.n_levels)
                theta[:, number, 0] = self._center + self._unit * mean
                theta[:, number, 1] = self._unit * np.sqrt(variance)
        # Variances of a tiny target in tiny units may underflow.
        theta[..., 1] = np.maximum(theta[..., 1], np.finfo(np.float64).tiny)
        return table, theta

    def _shaped(self, table: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Turn Normals into mixtures of the shapes of the members' errors."""
        n_levels = self._encoder.n_levels
        shape = np.stack([member.shapes(table, n_levels) for member in self.members_], axis=1)
        mean = theta[..., :1] + theta[..., 1:] * shape[..., 0, :]
        # A spike where all held-out errors were 0 is no certainty: the floor holds for it as well.
        least = max(np.sqrt(self._plan.floor) * self._unit, np.finfo(np.float64).tiny)
        spread = np.maximum(theta[..., 1:] * shape[..., 1, :], least)
        return np.concatenate([np.full_like(mean, 1.0 / GROUPS), mean, spread], axis=-1)

    def _pack(self) -> tuple[dict[str, Any], Arrays]:
        state = {
            "hidden": list(self._plan.hidden),
            "floor": self._plan.floor,
            "members": len(self.members_),
            "history": pack_history(self.history_),
        }
        return state, pack_models(self.members_)

    def _unpack(self, state: dict[str, Any], arrays: Arrays) -> None:
        self._plan = self._pair_plan(tuple(int(units) for units in state["hidden"]))
        if "floor" in state:  # not in the first files
            self._plan = replace(self._plan, floor=float(state["floor"]))
        specs, n_inputs = self._plan.specs(), self._encoder.n_inputs
        self.members_ = unpack_models(int(state["members"]), specs, n_inputs, arrays)
        self.history_ = unpack_history(state["history"])
        self.n_iter_ = max(len(h.loss) - 1 for leaf in self.history_ for h in leaf)


def hidden_units(name: str, value: Sequence[int] | None, factors: tuple[int, ...], d: int) -> tuple[int, ...]:
    """Check hidden layers, or take multiples of the number of features.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : sequence of int or None
        Units of each layer.
    factors : tuple of int
        Units by default, as multiples of `d`.
    d : int
        Number of features.

    Returns
    -------
    tuple of int
        Units of each layer.
    """
    if value is None:
        return tuple(factor * d for factor in factors)
    if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, np.ndarray)) or len(value) == 0:
        raise TypeError(
            f"{name} must be a non-empty sequence of integers, got {value!r}; for example ({4 * d}, {2 * d})"
        )
    return tuple(check_integer(f"each unit count of {name}", units, 1) for units in value)


def least_rows(value: int | None, n: int) -> int:
    """Check the least rows of a leaf, or take the paper's max(n / 10, 1000).

    Parameters
    ----------
    value : int or None
        Rows.
    n : int
        Training rows.

    Returns
    -------
    int
        Rows.
    """
    if value is None:
        return max(math.ceil(n / 10), 1000)
    return check_integer("min_samples_leaf", value, 2, "a variance needs two rows")


def plain(value: Any) -> Any:
    """Turn a parameter into what JSON holds.

    Parameters
    ----------
    value : object
        Parameter.

    Returns
    -------
    object
        Numbers, strings, lists.
    """
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    return [plain(item) for item in value] if isinstance(value, (tuple, list)) else value
