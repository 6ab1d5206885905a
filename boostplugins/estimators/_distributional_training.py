"""Training side of DistributionalRegressor: choice of the family, models, recalibration."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from boostplugins._warnings import warn
from boostplugins.calibration import Recalibrator
from boostplugins.estimators import _distributional_chain as chains
from boostplugins.estimators._distributional_fitted import FittedDistributional
from boostplugins.estimators._holding_out import MANY, HoldingOut
from boostplugins.estimators._labels import nothing_to_split
from boostplugins.estimators._rows import Rows, pick
from boostplugins.estimators._selection import comparable_log_score, folds, select, split, whole_numbers
from boostplugins.estimators._units import Units
from boostplugins.families import Family, get_family
from boostplugins.families._steps import Steps, limits, step_exponent
from boostplugins.predictive import Predictive

_LOGGER = logging.getLogger(__name__)
# Ridge in units of Fisher information: held-out rows say when to stop, without them it is the one brake.
_L2_STOPPED, _L2_ALONE = 1.0, 10.0
# Noise in CatBoost's choice of splits, its own default, for the single models of many rows, which no
# ensemble averages over; few rows of little noise it costs more than it gives.
_RANDOM_STRENGTH = 1.0


# Start, least and greatest raw scores of a model.
RawRange = tuple[np.ndarray, np.ndarray, np.ndarray]


class TrainedDistributional(FittedDistributional):
    """What `DistributionalRegressor` does between checked rows and fitted models."""

    n_estimators: int
    learning_rate: float
    depth: int
    min_samples_leaf: int | None
    l2: float | None
    step: str | float | None
    refit: bool
    metric: str
    verbose: int
    booster_params: dict[str, Any] | None
    n_rounds_: list[int]
    start_: np.ndarray
    _sampling: bool

    def _choose_family(self, rows: Rows, seed: int) -> Family:
        self.selection_: dict[str, float] = {}
        if not (isinstance(self.family, str) and self.family == "auto"):
            return get_family(self.family).ready(rows[1])

        whole = whole_numbers(rows[1])

        def held_out(family: Family, used: np.ndarray, held: np.ndarray) -> np.ndarray:
            train, test = pick(rows, used), pick(rows, held)
            units = Units.of(family, train[1], train[2])
            quick = self._settings(len(used), seed, None) | {
                "rounds": min(self.n_estimators, 100),
                "learning_rate": max(self.learning_rate, 0.1),
                "verbose": 0,
            }
            scores, model = self._boost(family, units, train, None, quick)
            theta = self._theta(family, units, scores, model, test[0], test[3])
            return comparable_log_score(Predictive(family, theta), test[1], whole)

        family, self.selection_ = select(rows[1], rows[2], seed, held_out)
        listed = ", ".join(f"{name} {score:.4f}" for name, score in self.selection_.items())
        _LOGGER.info("family %r has the best cross-validated log score of: %s", family, listed)
        return family

    def _settings(self, n: int, seed: int, patience: int | None) -> dict[str, Any]:
        l2 = self.l2
        if l2 is None:
            l2 = _L2_ALONE if patience is None else _L2_STOPPED
        default = 1 if self.booster == "catboost" else max(1, min(20, n // 20))
        return {
            "rounds": self.n_estimators,
            "patience": patience,
            "metric": self.metric,
            "learning_rate": float(self.learning_rate),
            "depth": self.depth,
            "min_samples_leaf": default if self.min_samples_leaf is None else self.min_samples_leaf,
            "l2": l2,
            "seed": seed,
            "n_jobs": effective_n_jobs(self.n_jobs),
            "verbose": int(self.verbose),
            "more": dict(self.booster_params or {}),
        }

    def _train_one(
        self, family: Family, units: Units, rows: Rows, held: Rows | None, settings: dict[str, Any]
    ) -> tuple[RawRange, Any]:
        if self._sampling:
            return self._sample(family, units, rows, held, settings["seed"])
        return self._boost(family, units, rows, held, settings)

    def _boost(
        self, family: Family, units: Units, rows: Rows, held: Rows | None, settings: dict[str, Any]
    ) -> tuple[RawRange, Any]:
        X, y, weight, offset = rows
        step = ("natural" if family.locations else "fisher") if self.step is None else self.step
        known = units.offset(family, offset)
        steps = Steps(units.standard(family), units.inward(family, y), weight, known, step_exponent(step))
        scores = (steps.start, steps.low, steps.high)
        if nothing_to_split(X):
            return scores, None
        watched = None
        if held is not None:
            watched = (held[0], units.inward(family, held[1]), held[2], units.offset(family, held[3]))
        model = self._trainer.train(
            steps, X, categorical=self.categorical_features_, eval_set=watched, settings=settings
        )
        return scores, model

    def _sample(
        self, family: Family, units: Units, rows: Rows, held: Rows | None, seed: int
    ) -> tuple[RawRange, Any]:
        """Train a chain; where nothing can be learnt, as without one, there is the best constant."""
        X, y, weight, _ = rows
        inward, offset = units.inward(family, y), units.offset(family, rows[3])
        inner = units.standard(family)
        if nothing_to_split(X) or ((y == y[0]).all() and offset is None):
            start = inner.init(inward, weight, offset)
            return (start, *limits(inner, start)), None
        start, limit, chain = chains.train(self, inner, X, inward, weight, offset, seed)
        scores = (start, *np.array(limit).T)
        if held is not None:
            theta = self._theta(inner, Units(), scores, chain, held[0], units.offset(family, held[3]))
            seen = units.inward(family, held[1])
            chain.history = chains.history(inner, theta, seen, held[2], self.metric)
        return scores, chain

    def _plan(
        self, rows: Rows, held: Rows | None, holding: HoldingOut, seed: int
    ) -> list[tuple[Rows, Rows | None]]:
        """Rows to train on and rows held out, a pair for each model."""
        n, fraction = len(rows[1]), holding.validation_fraction
        if holding.n_folds is not None and n < holding.n_folds:
            raise ValueError(f"n_folds must be at most the number of rows, got {holding.n_folds} and {n}")
        if held is None and fraction is not None and n < 2:
            raise ValueError(f"validation_fraction needs at least two rows (of weight > 0), got {n}")
        if holding.n_folds is not None:
            return [(pick(rows, used), pick(rows, out)) for used, out in folds(n, holding.n_folds, seed)]
        if held is None and fraction is not None:
            used, out = split(n, fraction, seed)
            return [(pick(rows, used), pick(rows, out))]
        return [(rows, held)]

    def _train_all(self, rows: Rows, held: Rows | None, holding: HoldingOut, seed: int) -> None:
        family, units = self.family_, self.units_
        settings = self._settings(len(rows[1]), seed, holding.patience)
        if self.booster == "catboost" and holding.n_folds is None and len(rows[1]) >= MANY:
            settings["more"] = {"random_strength": _RANDOM_STRENGTH} | settings["more"]
        plan = self._plan(rows, held, holding, seed)
        trained = [
            self._train_one(
                family, units, train, out, settings | {"seed": seed + (k if self._sampling else 0)}
            )
            for k, (train, out) in enumerate(plan)
        ]
        self.calibration_ = self._calibrate(holding, trained, [out for _, out in plan])
        again = self.refit and holding.calibration != "conformal" and plan[0][0] is not rows
        self.history_ = [
            [units.score(family, self.metric, value, _observed(family, out)) for value in model.history]
            if out is not None
            else []
            for (_, model), (_, out) in zip(trained, plan)
            if model is not None
        ]
        if again and holding.n_folds is None:
            rounds = 1 if trained[0][1] is None else max(trained[0][1].rounds, 1)
            trained = [
                self._train_one(family, units, rows, None, settings | {"rounds": rounds, "patience": None})
            ]
        # Where no feature could be used at all, the constants of the folds make the mixture.
        trained = [part for part in trained if part[1] is not None] or trained
        self._limits = [scores for scores, _ in trained]
        self._fitted_on = self.booster
        self.models_ = [model for _, model in trained if model is not None]
        self.n_rounds_ = [model.rounds for model in self.models_]
        factor, shift = units.raw_map(family)
        self.start_ = factor * self._limits[0][0] + shift
        if not self.models_:
            warn(
                "no feature varies over the training rows: the model is the family's best constant",
            )

    def _calibrate(
        self, holding: HoldingOut, trained: list[tuple[RawRange, Any]], held: list[Rows | None]
    ) -> Recalibrator | None:
        if holding.calibration is None:
            return None
        theta, y, weight = [], [], []
        for (scores, model), out in zip(trained, held):
            if out is None:
                continue
            theta.append(self._theta(self.family_, self.units_, scores, model, out[0], out[3]))
            y.append(out[1])
            weight.append(np.ones(len(out[1])) if out[2] is None else out[2])
        dist = Predictive(self.family_, np.concatenate(theta))
        made = Recalibrator(holding.calibration).fit(np.concatenate(y), dist, np.concatenate(weight))
        single = holding.n_folds is not None and not dist.is_mixture
        if single and holding.calibration == "scale" and self.family_.locations:
            made.factor_ = self._factor_of_mixture(made.factor_, trained, held)
        return made

    def _factor_of_mixture(
        self, factor: float, trained: list[tuple[RawRange, Any]], held: list[Rows | None]
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
                    self._theta(self.family_, self.units_, scores, model, out[0], out[3])
                    for scores, model in trained
                ],
                axis=1,
            )
            means, data = self.family_.mean(theta), self.family_.var(theta).mean(axis=1)
            shares.append(np.minimum(means.var(axis=1) / data, 0.5 * factor**2))
        square = factor**2 - 2.0 * float(np.mean(np.concatenate(shares)))
        return float(np.sqrt(max(square, 0.25 * factor**2)))


def _observed(family: Family, held: Rows | None) -> float:
    """Weighted share of held-out rows that have a density; censored ones have a probability."""
    if held is None:
        return 1.0
    return float(np.average(family.observed(held[1]), weights=held[2]))
