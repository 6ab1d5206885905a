"""What the SGLB estimators share: settings and training of the chains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.model_selection import train_test_split

from boostplugins._validation import (
    check_integer,
    check_jobs,
    check_methods,
    check_option,
    check_real,
)
from boostplugins._warnings import warn
from boostplugins.checkpoints import checkpoint_of
from boostplugins.estimators._labels import nothing_to_split, seed_of, take_rows
from boostplugins.estimators._sglb_saved import BOOSTERS, SGLBModels
from boostplugins.losses import Loss, NormalLikelihood, SquaredError
from boostplugins.masks import MASK_METHODS, NoMask, RowMask
from boostplugins.priors import RandomPrior
from boostplugins.schedules import SCHEDULE_METHODS, Constant, CosineCycle, GradientSchedule

# Steps by the curvature of the losses: a class score's is at most 1/4, that of a mean's direction 1.
_CLASS_STEP, _MEAN_STEP = 0.2, 0.015
# Pseudo-rows that the shrinkage is worth, and its limit for small sets (`benchmarks/shift.py`; class
# scores of few rows without noise would be held back by more).
_CLASS_PRIOR_ROWS, _MEAN_PRIOR_ROWS = 130, 400
_CLASS_MOST_SHRINK, _MEAN_MOST_SHRINK = 0.03, 0.5
# Trees: by depth on CatBoost, leaf by leaf on LightGBM.
_DEPTH, _CLASS_LEAVES, _MEAN_LEAVES = 6, 31, 64
_MOST_DECAY = 40.0  # of shrink * step * iterations: what LightGBM's smallest leaf values still hold
_LEAVES_AT_LEAST = 10  # room that the least leaf size leaves small sets
_FEWEST_MEMBERS = 5
_FEWEST_CYCLES, _LONGEST_CYCLE = 10, 50  # members cost little, and more of them score better
_STEP_NAMES = ("learning_rate", "eta", "shrinkage_rate")
_SEED_STRIDE = 0x9E3779B97F4A7C15  # apart from the noise keys of neighbouring seeds


class SGLBBase(SGLBModels):
    """What classifier and regressor share: settings, their checks, training of the chains."""

    def __init__(
        self,
        loss: str | Loss | None = None,
        *,
        booster: str = "catboost",
        schedule: GradientSchedule | None = None,
        mask: RowMask | None = None,
        temperature: float = 1.0,
        shrink: float | None = None,
        structure_noise: float = 0.1,
        prior: Any = "auto",
        n_estimators: int = 500,
        learning_rate: float | None = None,
        depth: int | None = None,
        min_samples_leaf: int = 30,
        n_chains: int = 1,
        cat_features: Sequence[Any] | None = None,
        early_stopping_rounds: int | None = None,
        validation_fraction: float | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
        random_state: int | np.random.Generator | np.random.RandomState | None = 0,
        booster_params: dict[str, Any] | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 50,
    ) -> None:
        self.loss = loss
        self.booster = booster
        self.schedule = schedule
        self.mask = mask
        self.temperature = temperature
        self.shrink = shrink
        self.structure_noise = structure_noise
        self.prior = prior
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.depth = depth
        self.min_samples_leaf = min_samples_leaf
        self.n_chains = n_chains
        self.cat_features = cat_features
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.booster_params = booster_params
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.non_deterministic = False
        return tags

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Give the settings.

        Parameters
        ----------
        deep : bool, default=True
            Also those of schedule, mask, loss and prior, as ``schedule__length`` and the like.

        Returns
        -------
        dict
            Settings by name.
        """
        params = super().get_params(deep=False)
        if deep:
            for name, value in list(params.items()):
                if is_dataclass(value) and not isinstance(value, type):
                    params |= {f"{name}__{part.name}": getattr(value, part.name) for part in fields(value)}
        return params

    def set_params(self, **params: Any) -> Self:
        """Change settings.

        Parameters
        ----------
        **params : dict
            Settings; ``schedule__length=50`` replaces the schedule by one of that length.

        Returns
        -------
        Self
            This estimator.
        """
        whole = {name: value for name, value in params.items() if "__" not in name}
        super().set_params(**whole)
        parts: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            if "__" in name:
                outer, inner = name.split("__", 1)
                parts.setdefault(outer, {})[inner] = value
        for outer, changes in parts.items():
            held = getattr(self, outer, None)
            known = {part.name for part in fields(held)} if is_dataclass(held) else set()
            if not changes.keys() <= known:
                raise ValueError(f"{outer} has the settings {sorted(known)}, got {sorted(changes)}")
            setattr(self, outer, replace(held, **changes))  # type: ignore[type-var]
        return self

    def _check_settings(self) -> dict[str, Any]:
        """Check everything that needs no data; give the chain's settings."""
        check_option("booster", self.booster, BOOSTERS)
        check_integer("n_estimators", self.n_estimators, 1)
        if self.learning_rate is not None:
            check_real("learning_rate", self.learning_rate, 0.0, 1.0, closed="right")
        if self.depth is not None:
            check_integer("depth", self.depth, 1)
        if self.booster == "catboost" and (self.depth or 1) > 16:
            raise ValueError(f"depth must be at most 16 with CatBoost, got {self.depth}")
        check_integer("min_samples_leaf", self.min_samples_leaf, 1)
        check_integer("n_chains", self.n_chains, 1)
        check_jobs(self.n_jobs)
        if self.temperature != math.inf:
            check_real(
                "temperature", self.temperature, 0.0, closed="neither", remedy="math.inf means no noise"
            )
        if self.shrink is not None:
            check_real("shrink", self.shrink, 0.0)
        check_real("structure_noise", self.structure_noise, 0.0)
        if not (self.prior is None or hasattr(self.prior, "fit") or isinstance(self.prior, str)):
            raise TypeError(f"prior must be a RandomPrior, 'auto' or None, got {self.prior!r}")
        if isinstance(self.prior, str):
            check_option("prior", self.prior, ("auto",))
        if self.validation_fraction is not None:
            check_real("validation_fraction", self.validation_fraction, 0.0, 1.0, closed="neither")
        length = min(max(self.n_estimators // _FEWEST_CYCLES, 1), _LONGEST_CYCLE)
        schedule = CosineCycle(length=length) if self.schedule is None else self.schedule
        mask = NoMask() if self.mask is None else self.mask
        check_methods("schedule", schedule, SCHEDULE_METHODS)
        check_methods("mask", mask, MASK_METHODS)
        if not isinstance(self.booster_params or {}, Mapping):
            raise TypeError(f"booster_params must be a dict or None, got {self.booster_params!r}")
        if self.early_stopping_rounds is not None:
            check_integer("early_stopping_rounds", self.early_stopping_rounds, 1)
            cycle = getattr(schedule, "length", 1)
            if self.early_stopping_rounds < cycle:
                raise ValueError(
                    f"early_stopping_rounds must be at least a cycle ({cycle}), since the score falls and "
                    f"rises within each, got {self.early_stopping_rounds}"
                )
        return {
            "schedule": schedule,
            "mask": mask,
            "temperature": float(self.temperature),
            "structure_noise": float(self.structure_noise),
            "shrink_to": "start",
            "noise": "none" if self.temperature == math.inf else "objective",
        }

    def _train(
        self,
        X: Any,
        y: np.ndarray,
        loss: Loss,
        weight: np.ndarray | None,
        eval_set: tuple[Any, np.ndarray, np.ndarray | None] | None,
        callbacks: Sequence[Any] | None,
        settings: dict[str, Any],
        stratify: bool,
    ) -> None:
        if not isinstance(callbacks, (list, tuple, type(None))):
            raise TypeError(f"callbacks must be a list of callbacks or None, got {callbacks!r}")
        self._fitted_on = self.booster
        seed = seed_of(self.random_state)
        if eval_set is None and self.validation_fraction is not None and len(y) > 1:
            used, held = train_test_split(
                np.arange(len(y)),
                test_size=self.validation_fraction,
                random_state=seed % 2**32,
                stratify=y if stratify and self._can_stratify(y) else None,
            )
            eval_set = (take_rows(X, held), y[held], None if weight is None else weight[held])
            X, y, weight = take_rows(X, used), y[used], None if weight is None else weight[used]
        if self.early_stopping_rounds is not None and eval_set is None:
            raise ValueError(
                "early_stopping_rounds needs held-out rows; pass validation_fraction or eval_set"
            )
        checkpoint = checkpoint_of(self, X, y, weight, eval_set)
        self.constant_ = loss.ready(y, weight).start(y, weight)
        self.loss_ = loss.ready(y, weight)
        # CatBoost reads features in single precision.
        seen = _single(X) if self.booster == "catboost" else X
        if nothing_to_split(seen) or (y == y[0]).all():
            what = "the target does not vary" if (y == y[0]).all() and len(y) > 1 else "no feature varies"
            warn(
                f"{what} over the training rows: the model is the loss's best constant",
            )
            if isinstance(self.loss_, SquaredError):
                spread = float(np.average((y - self.constant_[0]) ** 2, weights=weight))
                self.loss_ = self.loss_.with_noise_variance(max(spread, float(np.finfo(np.float32).tiny)))
            self.models_, self._virtual = [], []
            return
        if isinstance(self.loss_, SquaredError) and self.loss_.noise_variance is None:
            estimate = import_module(f"boostplugins.{self.booster}.noise_variance").of_rows
            self.loss_ = self.loss_.with_noise_variance(estimate(X, y, weight, self.categorical_features_))
        prior = self._fit_prior(X, y, weight)
        step = self.learning_rate
        if step is None:
            step = _CLASS_STEP if loss.classification else _MEAN_STEP
        shrink = self.shrink
        if shrink is None:
            rows, most = (
                (_CLASS_PRIOR_ROWS, _CLASS_MOST_SHRINK)
                if loss.classification
                else (_MEAN_PRIOR_ROWS, _MEAN_MOST_SHRINK)
            )
            shrink = min(rows / len(y), most, _MOST_DECAY / (step * self.n_estimators))
        self._check_step(step, settings["schedule"], loss)
        trees: dict[str, Any] = {}
        if self.booster == "lightgbm" and self.depth is None:
            trees = {"max_depth": -1, "num_leaves": _CLASS_LEAVES if loss.classification else _MEAN_LEAVES}
        finished = [] if checkpoint is None else checkpoint.finished()
        models = [self._trainer.restore(content) for content in finished]
        for chain in range(len(finished), self.n_chains):
            model = self._trainer.train(
                loss=self.loss_,
                prior=None if prior is None else replace(prior, random_state=prior.random_state + chain),
                shrink=shrink,
                random_state=(seed + chain * _SEED_STRIDE) % 2**63,
                X=X,
                y=y,
                sample_weight=weight,
                categorical=self.categorical_features_,
                eval_set=eval_set,
                n_estimators=self.n_estimators,
                learning_rate=step,
                depth=_DEPTH if self.depth is None else self.depth,
                min_samples_leaf=max(1, min(self.min_samples_leaf, len(y) // _LEAVES_AT_LEAST)),
                early_stopping_rounds=self.early_stopping_rounds,
                n_jobs=self.n_jobs,
                verbose=self.verbose,
                callbacks=callbacks or (),
                booster_params=trees | (self.booster_params or {}),
                checkpoint=None if checkpoint is None else checkpoint.stage(finished),
                **settings,
            )
            models.append(model)
            if checkpoint is not None and chain + 1 < self.n_chains:
                finished.append(self._trainer.dump(model))
                checkpoint.stage(finished).save(None)
        if checkpoint is not None:
            checkpoint.remove()
        self.models_: list[Any] = models
        self._virtual = self._ensembles()
        self.loss_ = self._virtual[0].loss
        if self.n_members_ < _FEWEST_MEMBERS and self.n_iterations_ < self.n_estimators:
            warn(
                f"training stopped after {self.n_iterations_} of {self.n_estimators} iterations with "
                f"{self.n_members_} members, too few for knowledge uncertainty; give early stopping more "
                "patience, or leave it out",
            )

    def _can_stratify(self, y: np.ndarray) -> bool:
        counts = np.bincount(y.astype(int))
        held = math.floor((self.validation_fraction or 0.0) * len(y))
        return min(counts) > 1 and min(held, len(y) - held) >= len(counts)

    def _check_step(self, step: float, schedule: GradientSchedule, loss: Loss) -> None:
        """Refuse steps at which a mean would run away: its direction has curvature 1."""
        given = self.booster_params or {}
        step = float(next((given[name] for name in _STEP_NAMES if name in given), step))
        largest = max(schedule.scale(t) for t in range(self.n_estimators))
        if not loss.classification and step * largest >= 2.0:
            raise ValueError(
                f"learning_rate times the schedule's largest scale must be < 2 in regression, got {step:g} * "
                f"{largest:g}; take a smaller learning_rate or max_scale"
            )

    def _fit_prior(self, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
        """Fit the prior to the numbers: how far apart two categories are, no one can say."""
        numbers = [i for i in range(X.shape[1]) if i not in self.categorical_features_]
        prior = self.prior
        if isinstance(prior, str):
            # One chain without cycles has one function, which all its members share.
            alike = isinstance(self.schedule, Constant) and self.n_chains == 1
            prior = None if self.temperature == math.inf or alike or not numbers else RandomPrior()
        if prior is None:
            return None
        if not numbers:
            raise ValueError("prior must be None where all features are categories, got a prior function")
        fitted = prior.fit(X, columns=numbers) if self.categorical_features_ else prior.fit(X)
        return fitted.in_units(self._prior_units(X, y, weight))

    def _prior_units(self, X: Any, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        units = self.loss_.prior_units(y, weight)
        if isinstance(self.loss_, NormalLikelihood):  # noise, not the spread of the whole target
            estimate = import_module(f"boostplugins.{self.booster}.noise_variance").of_rows
            units[0] = math.sqrt(estimate(X, y, weight, self.categorical_features_))
        return units


def _single(X: Any) -> Any:
    """Numbers in single precision, where those closest to each other become one."""
    with np.errstate(over="ignore", under="ignore"):
        if not hasattr(X, "iloc"):
            return X.astype(np.float32)
        return X.astype({name: np.float32 for name in X.columns if X[name].dtype.kind == "f"})
