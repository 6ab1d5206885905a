"""Objectives for several raw scores: CatBoost asks for them row by row.

A call costs about a microsecond before any work, so everything that can be made ready for all rows
(mask, weights of the noise, random function) is, once an iteration; what is left a row is plain
Python arithmetic on a handful of floats, quicker there than any array operation.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from catboost import MultiTargetCustomObjective

from boostplugins.catboost.binding import FitSettings
from boostplugins.catboost.state import TrainingState
from boostplugins.losses import Loss, NormalLikelihood, Softmax
from boostplugins.losses.normal import _MAX_SQUARE
from boostplugins.noise import Stream

_Row = tuple[list[float], None]
_Direction = Callable[[float, list[float], float, list[float]], list[float]]


class _RowByRow:
    """Common part: which row is asked for, the census of the first tree, the rows' lists."""

    no_jit = True  # CatBoost would compile the method without its state

    def __init__(self, state: TrainingState, y: np.ndarray | None) -> None:
        self.state = state
        self.y = None if y is None else y.tolist()
        n = state.n_rows
        self._labels = np.zeros(n)
        self._weights = np.ones(n)
        self._start: list[float] | None = None
        self._pull: list[float] | None = None
        self._direction = _row_direction(state.loss)
        self._iteration, self._stage = -1, -1
        self._calls = itertools.count()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def _turn(self, call: int) -> None:
        """Make the lists of the pass that begins with this call."""
        state = self.state
        stage = Stream.STRUCTURE if call < state.structure_rows else Stream.LEAVES
        outputs = range(state.loss.n_outputs)
        if state.noise_size > 0:
            noise = np.stack([state.noise(stage, output) for output in outputs], axis=1)
            self._noise = (state.size(stage) * noise).tolist()
        else:
            self._noise = [[0.0] * len(outputs)] * state.n_rows
        kept = state.kept.tolist() if len(state.kept) else None
        self._gain = (
            [state.alpha] * state.n_rows if kept is None else [state.alpha if keep else 0.0 for keep in kept]
        )
        self._offset = state.offset.T.tolist() if len(state.offset) else None
        self._iteration, self._stage = state.iteration, stage

    def _ders(self, row: int, call: int, approx: Any, label: float, weight: float) -> _Row:
        state = self.state
        if state.iteration == 0:
            return self._first_tree(row, call, label, weight)
        raw = approx.tolist()
        if self._pull is not None:  # CatBoost shrank the start as well: look from where the chain stands
            raw = [score + state.learning_rate * pull for score, pull in zip(raw, self._pull)]
        if self._offset is not None:
            raw = [score + shift for score, shift in zip(raw, self._offset[row])]
        noise = self._noise[row]
        if weight != 1.0:
            root = math.sqrt(weight)
            noise = [root * draw for draw in noise]
        d = self._direction(label, raw, weight * self._gain[row], noise)
        if self._pull is not None:
            d = [step + weight * pull for step, pull in zip(d, self._pull)]
        return d, None

    def _first_tree(self, row: int, call: int, label: float, weight: float) -> _Row:
        if call < self.state.structure_rows:
            self._labels[row], self._weights[row] = label, weight
            return [0.0] * self.state.loss.n_outputs, None
        if self._start is None:
            start = self.state.begin(self._labels, self._weights)
            self._start = (start / self.state.learning_rate).tolist()
            self._pull = self.state.pull.tolist() if self.state.pull.any() else None
        return [weight * value for value in self._start], None


class RowsByCount(_RowByRow):
    """Objective for classes as CatBoost passes them: rows are counted as they come, in one thread."""

    def calc_ders_multi(self, approxes: np.ndarray, target: float, weight: float) -> _Row:
        """Derivatives of a row.

        Parameters
        ----------
        approxes : ndarray of shape (n_outputs,)
            Raw scores.
        target : float
            Label.
        weight : float
            Weight.

        Returns
        -------
        list of float
            Ascent direction.
        None
            No second derivatives: leaves are means.
        """
        n = self.state.n_rows
        call = next(self._calls) % (2 * n)
        if (call == 0 or call == n) and self.state.iteration:
            self._turn(call)
        row = call if call < n else call - n
        return self._ders(row, call, approxes, target, weight)


class RowsByNumber(_RowByRow, MultiTargetCustomObjective):
    """Objective for a chain's pool: the second target is the row's number."""

    def calc_ders_multi(self, approxes: np.ndarray, targets: np.ndarray, weight: float) -> _Row:
        """Derivatives of a row.

        Parameters
        ----------
        approxes : ndarray of shape (n_outputs,)
            Raw scores.
        targets : ndarray of shape (n_outputs,)
            Label, then the row's number.
        weight : float
            Weight.

        Returns
        -------
        list of float
            Ascent direction.
        None
            No second derivatives: leaves are means.
        """
        state = self.state
        call = next(self._calls) if self._iteration == state.iteration else self._restart()
        if state.iteration and (call >= state.structure_rows) != (self._stage == Stream.LEAVES):
            with state.lock:
                self._turn(call)
        row = int(targets[1])
        return self._ders(row, call, approxes, self.y[row], weight)  # type: ignore[index]

    def _restart(self) -> int:
        with self.state.lock:
            if self._iteration != self.state.iteration:
                self._calls = itertools.count()
                self._stage = -1
                if self.state.iteration:
                    self._turn(0)
                self._iteration = self.state.iteration
            return next(self._calls)


def _softmax(label: float, raw: list[float], gain: float, noise: list[float]) -> list[float]:
    top = max(raw)
    powers = [math.exp(score - top) for score in raw]
    share = gain / sum(powers)
    d = [draw - share * power for draw, power in zip(noise, powers)]
    d[int(label)] += gain
    return d


def _normal(loss: NormalLikelihood) -> _Direction:
    low, high = loss.log_sigma(np.array([[0.0, -math.inf], [0.0, math.inf]])).tolist()

    def direction(label: float, raw: list[float], gain: float, noise: list[float]) -> list[float]:
        sigma = math.exp(min(max(raw[1], low), high))
        residual = label - raw[0]
        square = min((residual / sigma) ** 2, _MAX_SQUARE)
        return [gain * residual + sigma * noise[0], gain * (square - 1.0) + noise[1]]

    return direction


def _any_loss(loss: Loss) -> _Direction:
    def direction(label: float, raw: list[float], gain: float, noise: list[float]) -> list[float]:
        score = np.array([raw])
        step = gain * np.asarray(loss.direction(np.array([label]), score))
        if step.shape != score.shape:
            raise ValueError(f"direction of {loss.name} must have shape {score.shape}, got {step.shape}")
        return (step + loss.noise_scale(score) * np.array(noise))[0].tolist()

    return direction


def _row_direction(loss: Loss) -> _Direction:
    if type(loss) is Softmax:
        return _softmax
    if type(loss) is NormalLikelihood:
        return _normal(loss)
    return _any_loss(loss)


def make_row_objective(state: TrainingState, fit: FitSettings) -> RowsByCount | RowsByNumber:
    """Make the objective of a fit with several raw scores.

    Parameters
    ----------
    state : TrainingState
        State of the fit.
    fit : FitSettings
        Its settings.

    Returns
    -------
    RowsByCount or RowsByNumber
        For an ordinary fit of classes, or for a chain's pool.

    Raises
    ------
    ValueError
        For a target of one column and a loss whose outputs are no classes: CatBoost would crash.
    """
    if fit.pool is not None:
        if not state.loss.classification and _is_text(fit.params.get("eval_metric"), "RMSE"):
            raise ValueError("eval_metric='RMSE' crashes CatBoost with several outputs; pass loss.metric()")
        if isinstance(fit.params.get("eval_metric"), str) and fit.params["eval_metric"] != "MultiRMSE":
            raise ValueError(
                f"eval_metric must be loss.metric() or 'MultiRMSE' for a pool of several outputs, got "
                f"{fit.params['eval_metric']!r}"
            )
        return RowsByNumber(state, fit.pool.y_)
    if state.loss.classification:
        if not _is_text(fit.params.get("eval_metric"), "MultiClass"):
            raise ValueError(
                "eval_metric must be 'MultiClass' for classes (CatBoost takes their number from it), got "
                f"{fit.params.get('eval_metric')!r}; or train on loss.pool(X, y, ...) with loss.metric()"
            )
        return RowsByCount(state, None)
    raise ValueError(
        f"the {state.loss.name} loss has {state.loss.n_outputs} outputs; CatBoost would crash on a target of "
        "one column; train on loss.pool(X, y, cat_features=..., sample_weight=...), or use SGLBRegressor"
    )


def _is_text(value: Any, text: str) -> bool:
    return isinstance(value, str) and value == text
