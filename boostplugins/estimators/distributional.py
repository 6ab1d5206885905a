"""DistributionalRegressor: every parameter of the response's distribution is boosted."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike

from boostplugins._validation import check_integer, check_option, check_real
from boostplugins.calibration import Recalibrator
from boostplugins.estimators._distributional_fitted import FittedDistributional
from boostplugins.estimators._frames import fit_frame, predict_frame
from boostplugins.estimators._labels import nothing_to_split, seed_of
from boostplugins.estimators._rows import Rows, check_rows, held_out, pick
from boostplugins.estimators._selection import folds, select
from boostplugins.estimators._units import Units
from boostplugins.families import Family, get_family
from boostplugins.families._steps import METRICS, Steps, step_exponent
from boostplugins.predictive import Predictive

_LOGGER = logging.getLogger(__name__)


class DistributionalRegressor(FittedDistributional):
    """Regressor that boosts every parameter of the response's distribution.

    Responses are standardised inside as far as the family allows, so that predictions follow any
    change of units. Scales of location-scale families stay above 1e-4 of the best constant scale.

    Parameters
    ----------
    family : str or Family, default="normal"
        Distribution of the response: a name, a GAMLSS short name, a `Family`, or "auto" for the one
        with the best cross-validated log score.
    booster : {"lightgbm", "catboost"}, default="lightgbm"
        Who grows the trees.
    step : {"fisher", "natural"} or float in [0, 1], optional
        How rows count within a leaf: by their Fisher information to this power (1 is "fisher", 0
        "natural"). By default "natural" for families with a location, whose noisy rows would
        otherwise hardly count and keep their noise, "fisher" for others.
    n_estimators : int, default=500
        Rounds; each grows a tree for every parameter.
    learning_rate : float, default=0.05
        Shrinkage of each tree, in (0, 1].
    depth : int, default=3
        Depth of the trees.
    min_samples_leaf : int, optional
        Least rows of a leaf; by default a twentieth of the rows, at most 20, with LightGBM, and no
        rule with CatBoost, whose symmetric trees know none (with one they grow depth-wise).
    l2 : float, optional
        Ridge on leaf values, in units of Fisher information; 1 by default.
    early_stopping_rounds : int, optional
        Rounds without a better score of held-out rows before training stops.
    validation_fraction : float, optional
        Share of rows held out for early stopping and calibration.
    n_folds : int, optional
        Train so many models, each with one fold held out for early stopping and calibration;
        predictions are their mixture, and their disagreement is knowledge uncertainty.
    refit : bool, default=True
        Train again on all rows, for the best number of rounds, after `validation_fraction` has
        served; never with ``calibration="conformal"``, whose promise would be lost.
    calibration : {"scale", "conformal"}, optional
        Recalibration on the held-out rows, see `Recalibrator`.
    metric : {"nll", "crps"}, default="nll"
        Score that early stopping watches.
    cat_features : sequence of int or str, optional
        Categorical columns besides those whose type says so.
    n_jobs : int, optional
        Threads; 1 by default, -1 for all. Results do not depend on it.
    verbose : int, default=0
        Show the held-out score every so many rounds.
    random_state : int, Generator, RandomState or None, default=0
        Seed; an integer gives the same model anywhere.
    booster_params : dict, optional
        Further parameters of the booster.

    Attributes
    ----------
    family_ : Family
        Distribution fitted.
    models_ : list
        Trained models, one a fold (or one); empty where no feature could be used.
    start_ : ndarray of shape (K,)
        Raw scores of the best constant, in units of the response.
    units_ : Units
        Standardisation of the response.
    n_rounds_ : list of int
        Rounds kept by each model.
    history_ : list of list of float
        Held-out score after each round, in units of the response; one list a model.
    calibration_ : Recalibrator or None
        Correction learnt from held-out rows.
    selection_ : dict of str to float
        Cross-validated log scores of the families tried, best first (``family="auto"``).
    n_features_in_ : int
        Number of features.
    categorical_features_ : list of int
        Numbers of the categorical columns.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins import DistributionalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (400, 2))
    >>> y = X[:, 0] + np.exp(X[:, 1]) * rng.normal(size=400)
    >>> model = DistributionalRegressor("normal", n_estimators=100).fit(X, y)
    >>> sd = model.predict_dist([[0.0, -1.0], [0.0, 1.0]]).std()
    >>> bool(sd[0] < sd[1]), model.predict_interval([[0.0, 0.0]], coverage=0.8).shape
    (True, (1, 2))
    """

    def __init__(
        self,
        family: str | Family = "normal",
        *,
        booster: str = "lightgbm",
        step: str | float | None = None,
        n_estimators: int = 500,
        learning_rate: float = 0.05,
        depth: int = 3,
        min_samples_leaf: int | None = None,
        l2: float | None = None,
        early_stopping_rounds: int | None = None,
        validation_fraction: float | None = None,
        n_folds: int | None = None,
        refit: bool = True,
        calibration: str | None = None,
        metric: str = "nll",
        cat_features: Sequence[Any] | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.Generator | np.random.RandomState | None = 0,
        booster_params: dict[str, Any] | None = None,
    ) -> None:
        self.family = family
        self.booster = booster
        self.step = step
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.depth = depth
        self.min_samples_leaf = min_samples_leaf
        self.l2 = l2
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_fraction = validation_fraction
        self.n_folds = n_folds
        self.refit = refit
        self.calibration = calibration
        self.metric = metric
        self.cat_features = cat_features
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.booster_params = booster_params

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
        eval_set: tuple[Any, ...] | list[tuple[Any, ...]] | None = None,
    ) -> Self:
        """Train the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features; NaN stands for missing numbers.
        y : array-like of shape (n_samples,)
            Responses within the family's support.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, used in the start value, the gradient, the held-out score and the calibration;
            rows of weight 0 are left out.
        offset : array-like of shape (n_samples,), optional
            Known part of the first parameter's raw score, such as the log exposure of counts.
        eval_set : tuple, or list with one, optional
            Held-out ``(X, y)``, ``(X, y, sample_weight)`` or ``(X, y, sample_weight, offset)``; it
            is used instead of `validation_fraction`.

        Returns
        -------
        DistributionalRegressor
            This estimator.
        """
        self._check_settings(eval_set is not None)
        if not isinstance(self.family, str) or self.family != "auto":
            get_family(self.family)
        frame, self.categorical_features_ = fit_frame(self, X, self.cat_features)
        rows = check_rows(frame, y, sample_weight, offset, "y")
        held = self._held(eval_set)
        if rows[2] is not None and (rows[2] == 0).any():
            rows = pick(rows, np.flatnonzero(rows[2] > 0))
        seed = seed_of(self.random_state)
        self.family_ = self._choose_family(rows, seed)
        for part, name in ((rows, "y"), (held, "y of eval_set")):
            if part is not None:
                self.family_.check_support(part[1], name)
        self.units_ = Units.of(self.family_, rows[1], rows[2])
        self._train_all(rows, held, seed)
        return self

    def _check_settings(self, has_eval_set: bool) -> None:
        check_option("booster", self.booster, ("lightgbm", "catboost"))
        if self.step is not None:
            step_exponent(self.step)
        check_integer("n_estimators", self.n_estimators, 1)
        check_real("learning_rate", self.learning_rate, 0.0, 1.0, closed="right")
        check_integer("depth", self.depth, 1)
        if self.min_samples_leaf is not None:
            check_integer("min_samples_leaf", self.min_samples_leaf, 1)
        if self.l2 is not None:
            check_real("l2", self.l2, 0.0)
        check_option("metric", self.metric, tuple(METRICS))
        if self.validation_fraction is not None:
            check_real("validation_fraction", self.validation_fraction, 0.0, 1.0, closed="neither")
        if self.n_folds is not None:
            check_integer("n_folds", self.n_folds, 2, "use None for a single model")
            if has_eval_set or self.validation_fraction is not None:
                raise ValueError("n_folds holds rows out itself; pass no eval_set and no validation_fraction")
        holds_out = has_eval_set or self.n_folds is not None or self.validation_fraction is not None
        if self.early_stopping_rounds is not None:
            check_integer("early_stopping_rounds", self.early_stopping_rounds, 1)
        for name in ("early_stopping_rounds", "calibration"):
            if getattr(self, name) is not None and not holds_out:
                raise ValueError(f"{name} needs held-out rows; pass validation_fraction, n_folds or eval_set")
        if self.calibration is not None:
            check_option("calibration", self.calibration, ("scale", "conformal"))

    def _held(self, eval_set: tuple[Any, ...] | list[tuple[Any, ...]] | None) -> Rows | None:
        if eval_set is None:
            return None
        X, y, weight, offset = held_out(eval_set, 4)
        frame = predict_frame(self, X, self.categorical_features_)
        return check_rows(frame, y, weight, offset, "y of eval_set")

    def _choose_family(self, rows: Rows, seed: int) -> Family:
        self.selection_: dict[str, float] = {}
        if not (isinstance(self.family, str) and self.family == "auto"):
            return get_family(self.family).ready(rows[1])

        def held_out(family: Family, used: np.ndarray, held: np.ndarray) -> np.ndarray:
            train, test = pick(rows, used), pick(rows, held)
            units = Units.of(family, train[1], train[2])
            quick = self._settings(len(used), seed) | {
                "rounds": min(self.n_estimators, 100),
                "learning_rate": max(self.learning_rate, 0.1),
                "patience": None,
                "verbose": 0,
            }
            steps, model = self._train_one(family, units, train, None, quick)
            theta = self._theta(family, units, steps, model, test[0], test[3])
            return Predictive(family, theta).log_pdf(test[1])

        family, self.selection_ = select(rows[1], rows[2], seed, held_out)
        listed = ", ".join(f"{name} {score:.4f}" for name, score in self.selection_.items())
        _LOGGER.info("family %r has the best cross-validated log score of: %s", family, listed)
        return family

    def _settings(self, n: int, seed: int) -> dict[str, Any]:
        default = 1 if self.booster == "catboost" else max(1, min(20, n // 20))
        return {
            "rounds": self.n_estimators,
            "patience": self.early_stopping_rounds,
            "metric": self.metric,
            "learning_rate": float(self.learning_rate),
            "depth": self.depth,
            "min_samples_leaf": default if self.min_samples_leaf is None else self.min_samples_leaf,
            "l2": self.l2,
            "seed": seed,
            "n_jobs": effective_n_jobs(self.n_jobs),
            "verbose": int(self.verbose),
            "more": dict(self.booster_params or {}),
        }

    def _train_one(
        self, family: Family, units: Units, rows: Rows, held: Rows | None, settings: dict[str, Any]
    ) -> tuple[Steps, Any]:
        X, y, weight, offset = rows
        step = ("natural" if family.locations else "fisher") if self.step is None else self.step
        steps = Steps(family, units.inward(y), weight, units.offset(family, offset), step_exponent(step))
        if nothing_to_split(X):
            return steps, None
        watched = None
        if held is not None:
            watched = (held[0], units.inward(held[1]), held[2], units.offset(family, held[3]))
        model = self._trainer.train(
            steps, X, categorical=self.categorical_features_, eval_set=watched, settings=settings
        )
        return steps, model

    def _train_all(self, rows: Rows, held: Rows | None, seed: int) -> None:
        family, units, n = self.family_, self.units_, len(rows[1])
        settings = self._settings(n, seed)
        if self.n_folds is not None and n < self.n_folds:
            raise ValueError(f"n_folds must be at most the number of rows, got {self.n_folds} and {n}")
        if self.n_folds is not None:
            plan: list[tuple[Rows, Rows | None]] = [
                (pick(rows, used), pick(rows, out)) for used, out in folds(n, self.n_folds, seed)
            ]
        elif held is None and self.validation_fraction is not None and n > 1:
            parts = folds(n, max(round(1.0 / self.validation_fraction), 2), seed)
            if self.validation_fraction > 0.5:
                raise ValueError(f"validation_fraction must be at most 0.5, got {self.validation_fraction}")
            used, out = next(parts)
            plan = [(pick(rows, used), pick(rows, out))]
        else:
            plan = [(rows, held)]
        trained = [self._train_one(family, units, train, out, settings) for train, out in plan]
        self.models_ = [model for _, model in trained if model is not None]
        self._limits = [(steps.start, steps.low, steps.high) for steps, _ in trained]
        self.history_ = [
            [units.score(family, self.metric, value) for value in model.history] for model in self.models_
        ]
        self.calibration_ = self._calibrate(trained, [out for _, out in plan])
        again = self.refit and self.calibration != "conformal" and plan[0][0] is not rows
        if again and self.n_folds is None and self.models_:
            rounds = self.models_[0].rounds
            steps, model = self._train_one(
                family, units, rows, None, settings | {"rounds": max(rounds, 1), "patience": None}
            )
            self.models_ = [model]
            self._limits = [(steps.start, steps.low, steps.high)]
        self.n_rounds_ = [model.rounds for model in self.models_]
        factor, shift = units.raw_map(family)
        self.start_ = factor * self._limits[0][0] + shift
        if not self.models_:
            warnings.warn(
                "no feature varies over the training rows: the model is the family's best constant",
                UserWarning,
                stacklevel=3,
            )

    def _calibrate(self, trained: list[tuple[Steps, Any]], held: list[Rows | None]) -> Recalibrator | None:
        if self.calibration is None:
            return None
        theta, y, weight = [], [], []
        for (steps, model), out in zip(trained, held):
            if out is None:
                continue
            theta.append(self._theta(self.family_, self.units_, steps, model, out[0], out[3]))
            y.append(out[1])
            weight.append(np.ones(len(out[1])) if out[2] is None else out[2])
        dist = Predictive(self.family_, np.concatenate(theta))
        made = Recalibrator(self.calibration).fit(np.concatenate(y), dist, np.concatenate(weight))
        if self.n_folds is not None and self.calibration == "scale" and self.family_.locations:
            made.factor_ = self._factor_of_mixture(made.factor_, trained, held)
        return made

    def _factor_of_mixture(
        self, factor: float, trained: list[tuple[Steps, Any]], held: list[Rows | None]
    ) -> float:
        """Turn the factor that calibrates single members into the one for their mixture.

        Let V be the variance of the member means. The mixture's mean errs by V less than a member's
        (squared), and the mixture holds V already: 2 V / sigma^2 are counted too often.
        """
        shares = []
        for out in held:
            assert out is not None
            theta = np.stack(
                [
                    self._theta(self.family_, self.units_, steps, model, out[0], out[3])
                    for steps, model in trained
                ],
                axis=1,
            )
            means, data = self.family_.mean(theta), self.family_.var(theta).mean(axis=1)
            shares.append(np.minimum(means.var(axis=1) / data, 0.5 * factor**2))
        square = factor**2 - 2.0 * float(np.mean(np.concatenate(shares)))
        return float(np.sqrt(max(square, 0.25 * factor**2)))
