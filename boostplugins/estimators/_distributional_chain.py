"""Chains of a family behind the same interface as boosted models: members in place of one prediction."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np

from boostplugins._validation import check_methods, check_real
from boostplugins.estimators._row_likelihood import rows_as_labels
from boostplugins.families import Family, Support
from boostplugins.losses import FamilyLikelihood
from boostplugins.masks import MASK_METHODS, NoMask
from boostplugins.predictive import Predictive
from boostplugins.priors import RandomPrior
from boostplugins.schedules import SCHEDULE_METHODS, Constant, CosineCycle
from boostplugins.virtual_ensemble import VirtualEnsemble

# Pseudo-rows that the shrinkage is worth, its limit for small sets, and the most that it may take away
# over a chain (what LightGBM's smallest leaf values still hold).
_PRIOR_ROWS, _MOST_SHRINK, _MOST_DECAY = 400, 0.5, 40.0
_STRUCTURE_NOISE = 0.1
_LEAF, _LEAVES_AT_LEAST = 30, 10
_LARGEST_STEP = 2.0  # directions have curvature 1: larger steps run away

Limits = tuple[tuple[float, float], ...]


class Chain:
    """A trained chain, its members and what they say.

    Parameters
    ----------
    booster : {"lightgbm", "catboost"}
        Who grew the trees.
    model : Booster or CatBoost
        Trained model.
    """

    history: tuple[float, ...] = ()

    def __init__(self, booster: str, model: Any) -> None:
        self.booster, self.model = booster, model
        self._read()

    def _read(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # said once, by `fit`
            self._reader = _training(self.booster).reader(self.model)
            self.ensemble = VirtualEnsemble(self._reader)

    def __getstate__(self) -> dict[str, Any]:
        return {"booster": self.booster, "model": self.model, "history": self.history}

    def __setstate__(self, state: dict[str, Any]) -> None:
        history = state.pop("history", ())
        self.__init__(**state)  # type: ignore[misc]
        self.history = history

    @property
    def rounds(self) -> int:
        """Iterations of the chain."""
        return self._reader.n_iterations

    def raw(self, X: Any, n_jobs: int) -> np.ndarray:
        """Predict the members' raw scores.

        Parameters
        ----------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Rows.
        n_jobs : int
            Threads; those of the training are used.

        Returns
        -------
        ndarray of shape (n_samples, n_members, K)
            Raw scores.
        """
        return self.ensemble.members(X)

    def contributions(self, X: Any, n_jobs: int) -> np.ndarray:
        """Share the members' mean raw scores among the features (SHAP values).

        Parameters
        ----------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Rows.
        n_jobs : int
            Threads; those of the training are used.

        Returns
        -------
        ndarray of shape (n_samples, n_features + 1, K)
            Contributions; the last is the base value and the mean of the prior functions.
        """
        shares = _explaining(self.booster).contributions(self._reader, X, self.ensemble.ends)
        shares[:, -1] += self.ensemble.prior_values(X, shares.shape[2]).mean(axis=1)
        return shares

    def importances(self) -> np.ndarray:
        """Importance of each feature for each parameter.

        Returns
        -------
        ndarray of shape (K, n_features)
            The booster's own.
        """
        return _explaining(self.booster).importances(self._reader, self.ensemble.ends)

    def dump(self) -> tuple[dict[str, Any], list[bytes]]:
        """Give state and model.

        Returns
        -------
        tuple of dict and list of bytes
            JSON-ready state; the booster's own format.
        """
        return {"chain": self.booster}, [_training(self.booster).dump(self.model)]


def restore(state: dict[str, Any], parts: list[bytes]) -> Chain:
    """Rebuild a chain from what `Chain.dump` gave.

    Parameters
    ----------
    state : dict
        State.
    parts : list of bytes
        Model.

    Returns
    -------
    Chain
        An equal chain.
    """
    return Chain(state["chain"], _training(state["chain"]).restore(parts[0]))


def check(estimator: Any) -> bool:
    """Check the settings of a chain.

    Parameters
    ----------
    estimator : DistributionalRegressor
        Estimator with ``schedule``, ``mask``, ``temperature``, ``shrink`` and ``prior``.

    Returns
    -------
    bool
        Whether a chain is asked for: any of the first three is given.

    Raises
    ------
    ValueError
        For values out of range, and settings that a chain does not know.
    """
    asked = [name for name in ("schedule", "mask", "temperature") if getattr(estimator, name) is not None]
    if not asked:
        for name in ("shrink", "prior"):
            if getattr(estimator, name) not in (None, "auto"):
                raise ValueError(f"{name} belongs to a chain; pass schedule, mask or temperature too")
        return False
    for name, methods in (("schedule", SCHEDULE_METHODS), ("mask", MASK_METHODS)):
        if getattr(estimator, name) is not None:
            check_methods(name, getattr(estimator, name), methods)
    if estimator.temperature is not None:
        check_real(
            "temperature",
            estimator.temperature,
            0.0,
            closed="neither",
            remedy="1 samples the posterior, larger is colder; pass none for no noise",
        )
    if estimator.shrink is not None:
        check_real("shrink", estimator.shrink, 0.0)
    if isinstance(estimator.prior, str) and estimator.prior != "auto":
        raise ValueError(f"prior must be 'auto', None or a RandomPrior, got {estimator.prior!r}")
    if estimator.early_stopping_rounds not in (None, "auto"):
        raise ValueError("early_stopping_rounds must be None with a chain, which is read at its cycles' ends")
    for name in ("step", "l2"):
        if getattr(estimator, name) is not None:
            raise ValueError(f"{name} must be None with {asked[0]}: the chain settles steps and shrinkage")
    return True


def train(
    estimator: Any,
    family: Family,
    X: Any,
    y: np.ndarray,
    weight: np.ndarray | None,
    offset: np.ndarray | None,
    seed: int,
) -> tuple[np.ndarray, Limits, Chain]:
    """Train a chain.

    Parameters
    ----------
    estimator : DistributionalRegressor
        Settings.
    family : Family
        Distribution.
    X : ndarray or DataFrame of shape (n_samples, n_features)
        Features.
    y : ndarray of shape (n_samples,)
        Standardised responses.
    weight : ndarray of shape (n_samples,) or None
        Weights.
    offset : ndarray of shape (n_samples,) or None
        Known part of the first raw score, standardised.
    seed : int
        Seed of the noise.

    Returns
    -------
    start : ndarray of shape (K,)
        Raw scores of the best constant.
    limits : tuple of tuple of float
        Least and greatest raw score of each parameter.
    chain : Chain
        The chain.
    """
    n, rounds, step = len(y), estimator.n_estimators, float(estimator.learning_rate)
    points = family.points(y) if offset is None or 0 not in family.locations else family.points(y) - offset
    loss: FamilyLikelihood
    if offset is None and not family.pairs:
        y = _as_labels(y, family.support)
        loss = FamilyLikelihood(family).ready(y, weight)
    else:
        loss, y = rows_as_labels(family, y, offset, weight)
    schedule = estimator.schedule
    if schedule is None:
        schedule = CosineCycle(length=max(rounds // 10, 1))
    largest = max(schedule.scale(t) for t in range(rounds))
    if step * largest >= _LARGEST_STEP:
        raise ValueError(
            f"learning_rate times the schedule's largest scale must be < 2, got {step:g} * {largest:g}; take "
            "a smaller learning_rate or max_scale"
        )
    shrink = estimator.shrink
    if shrink is None:
        shrink = min(_PRIOR_ROWS / n, _MOST_SHRINK, _MOST_DECAY / (step * rounds))
    model = _training(estimator.booster).train(
        loss=loss,
        schedule=schedule,
        mask=NoMask() if estimator.mask is None else estimator.mask,
        temperature=1.0 if estimator.temperature is None else float(estimator.temperature),
        shrink=shrink,
        shrink_to="start",
        noise="objective",
        structure_noise=_STRUCTURE_NOISE,
        prior=_prior(estimator, loss, X, y, points, weight, schedule),
        random_state=seed,
        X=X,
        y=y,
        sample_weight=weight,
        categorical=estimator.categorical_features_,
        eval_set=None,
        n_estimators=rounds,
        learning_rate=step,
        depth=estimator.depth,
        min_samples_leaf=_least_leaf(estimator, n),
        early_stopping_rounds=None,
        n_jobs=1 if estimator.n_jobs is None else estimator.n_jobs,
        verbose=int(estimator.verbose),
        callbacks=(),
        booster_params=dict(estimator.booster_params or {}),
    )
    assert loss.limits is not None
    return loss.start(y, weight), loss.limits, Chain(estimator.booster, model)


def history(
    family: Family, theta: np.ndarray, y: np.ndarray, weight: np.ndarray | None, metric: str
) -> tuple[float, ...]:
    """Score held-out rows under the mixture of a chain's members so far.

    Parameters
    ----------
    family : Family
        Distribution.
    theta : ndarray of shape (n_samples, n_members, K)
        Parameters that the members predict.
    y : ndarray of shape (n_samples,)
        Responses.
    weight : ndarray of shape (n_samples,) or None
        Weights.
    metric : {"nll", "crps"}
        Which score.

    Returns
    -------
    tuple of float
        Mean scores after each member, lower is better.
    """
    told = []
    for count in range(1, theta.shape[1] + 1):
        dist = Predictive(family, theta[:, :count])
        score = dist.crps(y) if metric == "crps" else -dist.log_pdf(y)
        told.append(float(np.average(np.minimum(score, 1e100), weights=weight)))
    return tuple(told)


def _least_leaf(estimator: Any, n: int) -> int:
    given = estimator.min_samples_leaf
    if given is None and estimator.booster == "catboost":
        return 1  # symmetric trees, which know no least leaf
    return max(1, min(_LEAF if given is None else given, n // _LEAVES_AT_LEAST))


def _prior(
    estimator: Any,
    loss: FamilyLikelihood,
    X: Any,
    y: np.ndarray,
    points: np.ndarray,
    weight: np.ndarray | None,
    schedule: Any,
) -> Any:
    prior, categorical = estimator.prior, estimator.categorical_features_
    numbers = [i for i in range(X.shape[1]) if i not in categorical]
    if isinstance(prior, str):  # one function alone would be shared by all members
        silent = not numbers or not loss.family.locations or isinstance(schedule, Constant)
        prior = None if silent else RandomPrior()
    if prior is None:
        return None
    if not loss.family.locations:
        raise ValueError(
            f"prior must be None for family {loss.family.name}: prior functions are for locations, on a log "
            "scale they would grow without limit"
        )
    if not numbers:
        raise ValueError("prior must be None where all features are categories, got a prior function")
    units = loss.prior_units(y, weight)
    # Noise, not the spread of all responses.
    noise = import_module(f"boostplugins.{estimator.booster}.noise_variance")
    units[list(loss.family.locations)] = np.sqrt(noise.of_rows(X, points, weight, categorical))
    fitted = prior.fit(X, columns=numbers) if categorical else prior.fit(X)
    return fitted.in_units(units)


def _as_labels(y: np.ndarray, support: Support) -> np.ndarray:
    """Keep responses within the support where a booster rounds them to float32."""
    short = y.astype(np.float32)
    outside = ~support.contains(short)
    if not outside.any():
        return y
    low, high = np.float32(support.low), np.float32(support.high)
    low = low if support.closed_low else np.nextafter(low, np.float32(np.inf))
    high = high if support.closed_high else np.nextafter(high, np.float32(-np.inf))
    return np.where(outside, np.clip(short, low, high).astype(np.float64), y)


def _training(booster: str) -> Any:
    return import_module(f"boostplugins.{booster}.training")


def _explaining(booster: str) -> Any:
    return import_module(f"boostplugins.{booster}.explaining")
