"""Distributional boosting with LightGBM: every parameter of a distribution is a raw output."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from boostplugins._validation import check_weight
from boostplugins.families import Family, get_family
from boostplugins.families._steps import METRICS, Steps, check_metric, step_exponent
from boostplugins.predictive import Predictive

# A leaf's curvature is a sum of Fisher information; one unit more is the prior of one typical row.
_LAMBDA = 1.0
# LightGBM's own floor of a leaf's curvature, 1e-3, would block splits where the information is
# small; at 0 rounding lets it cut off leaves without a row, which it then dies of.
_LEAST_CURVATURE = 1e-9
# Row numbers travel as float32 labels, exact up to here.
_MOST_ROWS = 2**24


@dataclass
class _Run:
    """A fit that the objective knows: its data set by its labels, its rows in `lightgbm.cv`, and whether
    the callback was seen, which adds the start value to the model."""

    source: weakref.ref[np.ndarray]
    steps: Steps
    rows: Any
    called: bool = False


class Distributional:
    """Objective of `lightgbm.train` and LightGBM's scikit-learn estimators.

    LightGBM starts a custom objective at zero and its `predict` knows no start value. Here the best
    constant is found from the training rows, used in every round, and added to the leaves of the
    first trees by `callback`: predictions include it, in memory, in pickles and in text files.
    Sample weights act in the start value, the gradient and the metric, once each; initial scores
    (offsets of the first parameter, such as log exposure) are respected, and are to be added to
    raw predictions as always with LightGBM. Responses that are pairs of limits travel by `labels`.

    Parameters
    ----------
    family : str or Family, default="normal"
        Distribution of the response.
    step : {"fisher", "natural"} or float in [0, 1], default="fisher"
        "fisher" weighs rows by their Fisher information (a leaf's value is the Fisher scoring step
        of its rows), "natural" averages natural gradients; numbers lie between.
    metric : {"nll", "crps"}, default="nll"
        Score that `metric` computes and early stopping watches.

    Notes
    -----
    Boosting types "gbdt" and "goss" are supported; "dart" and "rf" rescale their trees and so would
    rescale the start value. The leaves of linear trees have no room for it.

    Examples
    --------
    >>> import lightgbm, numpy as np
    >>> from boostplugins.lightgbm import Distributional
    >>> x = np.linspace(0, 1, 200)[:, None]
    >>> y = 100 + x[:, 0] + (0.1 + x[:, 0]) * np.random.default_rng(0).normal(size=200)
    >>> loss = Distributional("normal")
    >>> booster = lightgbm.train({**loss.lightgbm_params(), "verbose": -1, "num_threads": 1},
    ...     lightgbm.Dataset(x, y), 20, callbacks=[loss.callback()], feval=loss.metric)
    >>> bool(abs(loss.predict_dist(booster, x).mean().mean() - 100.5) < 0.1)
    True
    """

    def __init__(
        self, family: str | Family = "normal", step: str | float = "fisher", metric: str = "nll"
    ) -> None:
        self.family = get_family(family)
        self.step = step
        self.metric_name = check_metric(metric, self.family)
        step_exponent(step)
        if self.family.n_params == 0:
            raise ValueError(
                f"family {self.family.name} must know its number of classes here; pass n_classes"
            )
        self._told = np.empty(0)  # responses that labels name, see `labels`
        self._runs: list[_Run] = []
        self._pending: list[tuple[Any, int, float]] = []
        self._rate = 0.1

    def __deepcopy__(self, memo: dict[int, Any]) -> Distributional:
        # LightGBM trains a deep copy of its parameters; the callback must see the same runs.
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_runs": [], "_pending": [], "_told": np.empty(0)}

    def __repr__(self) -> str:
        return f"Distributional({self.family!r}, step={self.step!r}, metric={self.metric_name!r})"

    def lightgbm_params(self) -> dict[str, Any]:
        """Give the parameters that LightGBM needs for this objective.

        Returns
        -------
        dict
            Objective, number of outputs, and settings that keep the fit independent of the units
            of the response; to be merged with one's own.
        """
        return {
            "objective": self,
            "num_class": self.family.n_params,
            "metric": "None",
            "min_sum_hessian_in_leaf": _LEAST_CURVATURE,
            "lambda_l2": _LAMBDA,
        }

    def labels(self, y: ArrayLike) -> np.ndarray:
        """Give labels to responses that are pairs of limits, which a LightGBM label cannot hold.

        Parameters
        ----------
        y : array-like of shape (n_samples, 2)
            Responses of one data set, training or validation; this object remembers them.

        Returns
        -------
        ndarray of shape (n_samples,), dtype float32
            Their numbers, for ``lightgbm.Dataset(X, loss.labels(y))``; plain responses stay as they are.

        Raises
        ------
        ValueError
            For responses outside the family's support, and for more than 2**24 of them.

        Examples
        --------
        >>> import numpy as np
        >>> from boostplugins.families import IntervalCensored
        >>> from boostplugins.lightgbm import Distributional
        >>> loss = Distributional(IntervalCensored())
        >>> loss.labels([[1.0, 1.0], [2.0, np.inf]])
        array([0., 1.], dtype=float32)
        """
        rows = self.family.responses(y)
        self.family.check_support(rows)
        if not self.family.pairs:
            return rows
        first = len(self._told)
        if first + len(rows) > _MOST_ROWS:
            raise ValueError(f"y must have at most {_MOST_ROWS} rows in all, got {first + len(rows)}")
        self._told = np.concatenate([self._told, rows]) if first else rows
        return np.arange(first, len(self._told), dtype=np.float32)

    def _responses(self, source: Any) -> np.ndarray:
        """Responses of a data set by its labels."""
        values = np.asarray(source, dtype=np.float64)
        if not self.family.pairs:
            return values
        if not (values == np.clip(np.floor(values), 0, len(self._told) - 1)).all():
            raise ValueError(
                f"labels for {self.family!r} must be those of loss.labels(y), which it remembers"
            )
        return self._told[values.astype(np.intp)]

    def callback(self) -> _BakeStart:
        """Make the callback that adds the start value to the model.

        Returns
        -------
        callable
            To be passed in ``callbacks=[...]`` of every fit.
        """
        return _BakeStart(self)

    def __call__(
        self, first: Any, second: Any, weight: ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute gradients and curvatures.

        Parameters
        ----------
        first, second : ndarray and Dataset, or ndarray and ndarray
            Predictions and data (`lightgbm.train`), or responses and predictions (scikit-learn).
        weight : array-like of shape (n_samples,), optional
            Weights, where scikit-learn's interface passes them.

        Returns
        -------
        tuple of ndarray of shape (n_samples, K)
            Gradients of the negative log likelihood, expected second derivatives.

        Raises
        ------
        ValueError
            For labels outside the family's support, bad weights, and a fit without the callback.
        """
        source, preds, weight = _unpack(first, second, weight)
        raw = self._shaped(preds, len(source))
        run = self._find(source)
        if run is None or _no_tree_yet(raw, second):
            run = self._begin(source, raw, weight, getattr(second, "used_indices", None))
        elif not run.called:
            raise ValueError(
                "callbacks must hold loss.callback(), of this very objective: without it the model lacks its "
                "start value"
            )
        steps = run.steps
        shape = (len(source), self.family.n_params)
        out = np.empty(shape, np.float32, order="F"), np.empty(shape, np.float32, order="F")
        moved = steps.descend(raw, 0.0, self._rate, out)
        self._pending.extend((source, k, step) for k, step in moved)
        return (out[0][:, 0], out[1][:, 0]) if shape[1] == 1 else out

    def metric(self, first: Any, second: Any, weight: Any = None) -> tuple[str, float, bool]:
        """Score predictions: pass as ``feval`` or ``eval_metric``.

        Parameters
        ----------
        first, second : ndarray and Dataset, or ndarray and ndarray
            As for the objective.
        weight : array-like of shape (n_samples,), optional
            Weights.

        Returns
        -------
        tuple
            Name, weighted mean score with all constants, and False: lower is better.
        """
        source, preds, weight = _unpack(first, second, weight)
        y = self._responses(source)
        raw = self._shaped(preds, len(y))
        run = self._find(source) or self._training_of(getattr(second, "used_indices", None))
        if run is not None:
            raw = np.clip(raw + run.steps.start, run.steps.low, run.steps.high)
        score = METRICS[self.metric_name](self.family, y, self.family.theta(raw))
        return self.metric_name, float(np.average(score, weights=weight)), False

    def predict_dist(
        self, booster: Any, X: Any, offset: ArrayLike | None = None, **options: Any
    ) -> Predictive:
        """Predict distributions from a model trained with this objective.

        Parameters
        ----------
        booster : Booster or LGBMModel
            Trained or reloaded model.
        X : array-like of shape (n_samples, n_features)
            Rows.
        offset : array-like of shape (n_samples,), optional
            Known part of the first raw score, as given in training by `init_score`.
        **options : object
            Passed to the booster's `predict`, such as ``num_iteration``.

        Returns
        -------
        Predictive
            One distribution a row.
        """
        booster = getattr(booster, "booster_", booster)
        raw = self._shaped(booster.predict(X, raw_score=True, **options), None)
        if offset is not None:
            raw = raw.copy()
            raw[:, 0] += np.asarray(offset, dtype=np.float64)
        return Predictive(self.family, self.family.theta(raw))

    def _shaped(self, preds: ArrayLike, n: int | None) -> np.ndarray:
        k = self.family.n_params
        raw = np.asarray(preds, dtype=np.float64)
        raw = raw[:, None] if raw.ndim == 1 and k == 1 else raw
        if raw.ndim != 2 or raw.shape[1] != k or (n is not None and len(raw) != n):
            raise ValueError(
                f"predictions for {self.family.name} must have shape ({'n' if n is None else n}, {k}), "
                f"got {raw.shape}; is num_class={k} set, as lightgbm_params() does?"
            )
        return raw

    def _find(self, source: Any) -> _Run | None:
        return next((run for run in reversed(self._runs) if run.source() is source), None)

    def _training_of(self, rows: Any) -> _Run | None:
        """Fit that validation rows belong to: in `lightgbm.cv`, the one that left them out."""
        for run in reversed(self._runs):
            if rows is None or run.rows is None or rows[0] not in run.rows:
                return run
        return None

    def _begin(self, source: Any, raw: np.ndarray, weight: ArrayLike | None, rows: Any) -> _Run:
        """Start a fit: what the booster predicts before its first tree are initial scores."""
        y = self._responses(source)
        self.family.check_support(y, "label")
        steps = Steps(
            self.family,
            y,
            check_weight(weight, len(y), "weight"),
            raw[:, 0] if raw.any() else None,
            step_exponent(self.step),
        )
        if raw[:, 1:].any():  # scores of an earlier model: they hold its start value
            steps.start = np.zeros(self.family.n_params)
        run = _Run(weakref.ref(source), steps, rows)
        # Folds of `lightgbm.cv` take turns: all of them are kept, until their data sets are gone.
        others = [held for held in self._runs if held.source() is not None and held.source() is not source]
        self._runs = [*others, run]
        return run


class _BakeStart:
    """Callback that adds the start value to the leaves of the first trees."""

    order = 1
    before_iteration = False

    def __init__(self, loss: Distributional) -> None:
        self.loss = loss
        self.counts: dict[int, tuple[int, int]] = {}

    def __call__(self, env: Any) -> None:
        boosters = getattr(env.model, "boosters", None) or [env.model]
        # Of this round, whose lone leaves the next one may move: schedules change it.
        self.loss._rate = float(_named(env.params, ("learning_rate", "shrinkage_rate", "eta"), 0.1))
        for booster in boosters:
            run = self.loss._find(booster.train_set.get_label())
            if run is not None:
                run.called = True
        if env.iteration == env.begin_iteration:
            self._begin(env, boosters)
            return
        turns = self.loss.family.n_params
        for number, booster in enumerate(boosters):
            source = booster.train_set.get_label()
            earlier, latest = self.counts[number]
            now = booster.num_trees()
            self.counts[number] = (latest, now)
            for _, k, step in [item for item in self.loss._pending if item[0] is source]:
                if latest > earlier:  # the lone leaf of last round's tree
                    tree = latest - turns + k
                    booster.set_leaf_output(tree, 0, booster.get_leaf_output(tree, 0) + step)
                else:  # no tree split in last round, and LightGBM kept none: the latest there are
                    bake_start(booster, np.eye(turns)[k] * step)
        self.loss._pending = []

    def _begin(self, env: Any, boosters: list[Any]) -> None:
        kind = _named(env.params, ("boosting", "boosting_type", "boost"), "gbdt")
        if kind in ("dart", "rf", "random_forest"):
            raise ValueError(
                f"boosting must be 'gbdt' or 'goss', got {kind!r}: it would rescale the start value"
            )
        if _named(env.params, ("linear_tree", "linear_trees"), False) not in (False, "false", None):
            raise ValueError(
                "linear_tree must be False, got True: linear leaves have no room for the start value; "
                "DistributionalRegressor, which keeps it apart, takes booster_params={'linear_tree': True}"
            )
        self.loss._pending = []
        for number, booster in enumerate(boosters):
            self.counts[number] = (0, booster.num_trees())
            run = self.loss._find(booster.train_set.get_label())
            if run is not None:
                bake_start(booster, run.steps.start)


def _named(params: dict[str, Any], names: tuple[str, ...], default: Any) -> Any:
    """Value of a parameter under any of its names."""
    return next((params[name] for name in names if name in params), default)


def bake_start(booster: Any, start: np.ndarray) -> None:
    """Add a constant to each output by way of its latest tree's leaves.

    Parameters
    ----------
    booster : lightgbm.Booster
        Model; changed in place.
    start : ndarray of shape (K,)
        What to add.
    """
    first = booster.num_trees() - len(start)
    trees = booster.dump_model(num_iteration=1, start_iteration=first // len(start))["tree_info"]
    for k, value in enumerate(start):
        for leaf in range(trees[k]["num_leaves"]):  # one, for a tree without a split
            held = booster.get_leaf_output(first + k, leaf)
            booster.set_leaf_output(first + k, leaf, held + float(value))


def _no_tree_yet(raw: np.ndarray, data: Any) -> bool:
    """Say whether predictions are the initial scores: a fit begins, maybe on a data set of an earlier one."""
    if not raw.any():
        return True
    first = data.get_init_score() if hasattr(data, "get_init_score") else None
    return first is not None and np.array_equal(raw, np.reshape(first, raw.shape, order="F"))


def _unpack(first: Any, second: Any, weight: ArrayLike | None) -> tuple[Any, np.ndarray, Any]:
    """Tell `lightgbm.train`'s (preds, data) from scikit-learn's (y_true, y_pred, weight)."""
    if hasattr(second, "get_label"):
        return second.get_label(), first, second.get_weight()
    return first, second, weight
