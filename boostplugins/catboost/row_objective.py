"""Objectives for several raw scores: CatBoost asks for them row by row.

A call costs a third of a microsecond before any work, and a numpy operation on a handful of numbers
a whole one. So everything that does not depend on the raw scores is made for all rows at once, in
each pass (`Item`), and what is left a row is plain Python arithmetic on a few floats.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from catboost import MultiTargetCustomObjective

from boostplugins.catboost.binding import FitSettings
from boostplugins.catboost.state import TrainingState
from boostplugins.losses import Loss, NormalLikelihood, Softmax
from boostplugins.losses.normal import _MAX_SQUARE
from boostplugins.noise import Stream

# What a pass knows of a row beforehand: random function, label, gain times weight, noise and pull.
Item = tuple[Any, ...]
_Direction = Callable[[list[float], Item], list[float]]
_Row = tuple[list[float], None]


class _RowByRow:
    """Common part: the census of the first tree, and the items of a pass."""

    no_jit = True  # CatBoost would compile the method without its state

    def __init__(self, state: TrainingState, y: np.ndarray | None) -> None:
        self.state = state
        n = state.n_rows
        self._y = np.zeros(n) if y is None else y
        self._known = y is not None
        self._weights = np.ones(n)
        self._start: list[float] | None = None
        self._direction = _row_direction(state.loss)
        self._units: list[float] | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def resume(self, done: int, weight: np.ndarray) -> None:
        """Go on from a snapshot, without the census of the first tree.

        Parameters
        ----------
        done : int
            Trees in the snapshot.
        weight : ndarray of shape (n_rows,)
            Weights.
        """
        self._weights[:] = weight
        self._start = (self.state.begin(self._y, self._weights) / self.state.learning_rate).tolist()
        self.state.advance(done)

    def _items(self, stage: int) -> Iterator[Item]:
        """Make the items of every row for one pass."""
        state, loss, w = self.state, self.state.loss, self._weights
        outputs = range(loss.n_outputs)
        gain = state.alpha * w
        if len(state.kept):
            gain = gain * state.kept
        noise = np.zeros((state.n_rows, loss.n_outputs))
        if state.noise_size > 0:
            for k in outputs:
                noise[:, k] = np.sqrt(w) * state.size(stage) * state.noise(stage, k)
        # What every row is given alike tells no splits apart.
        pull = w[:, None] * state.pull * (stage == Stream.LEAVES)
        # CatBoost shrank the start as well: look from where the chain stands.
        shift = np.tile(state.learning_rate * state.pull, (state.n_rows, 1))
        if len(state.offset):
            shift += state.offset.T
        if type(loss) is Softmax:
            noise += pull
            noise[np.arange(state.n_rows), self._y.astype(np.intp)] += gain
        shifts: Any = _rows(shift) if shift.any() else itertools.repeat(None)
        return zip(shifts, self._y.tolist(), gain.tolist(), _rows(noise), _rows(pull))

    def _ders(self, approx: np.ndarray, item: Item) -> _Row:
        raw = approx.tolist()
        if item[0] is not None:
            raw = [score + shift for score, shift in zip(raw, item[0])]
        direction = self._direction(raw, item)
        if self._units is not None:
            direction = [part / unit for part, unit in zip(direction, self._units)]
        return direction, None

    def _first_tree(self, row: int, call: int, label: float, weight: float) -> _Row:
        if call < self.state.structure_rows:
            self._weights[row] = weight
            if not self._known:
                self._y[row] = label
            return [0.0] * self.state.loss.n_outputs, None
        if self._start is None:
            self._start = (self.state.begin(self._y, self._weights) / self.state.learning_rate).tolist()
        return [weight * value for value in self._start], None


class RowsByCount(_RowByRow):
    """Objective for classes as CatBoost passes them: rows are counted as they come, in one thread.

    Parameters
    ----------
    state : TrainingState
        State of the fit.
    """

    def __init__(self, state: TrainingState) -> None:
        super().__init__(state, None)
        self._call = 0
        self._pass: Iterator[Item] = iter(())

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
        item = next(self._pass, None)
        if item is None:
            n = self.state.n_rows
            if self.state.iteration == 0:
                call, self._call = self._call, self._call + 1
                return self._first_tree(call % n, call, target, weight)
            stage = Stream.STRUCTURE if self._call % 2 == 0 else Stream.LEAVES  # 2 n rows a tree so far
            self._call += 1
            self._pass = self._items(stage)
            item = next(self._pass)
        return self._ders(approxes, item)


class RowsByNumber(_RowByRow, MultiTargetCustomObjective):
    """Objective for a chain's pool: the second target is the row's number.

    Parameters
    ----------
    state : TrainingState
        State of the fit.
    y : ndarray of shape (n_rows,)
        Float64 responses.
    """

    def __init__(self, state: TrainingState, y: np.ndarray) -> None:
        super().__init__(state, y)
        self._place = (-1, -1)
        self._table: list[Item] = []
        self._calls = itertools.count()

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
        if self._place[0] != state.iteration:
            self._turn(state.iteration, Stream.STRUCTURE)
        call = next(self._calls)
        if call >= state.structure_rows and self._place[1] == Stream.STRUCTURE:
            self._turn(state.iteration, Stream.LEAVES)
        row = int(targets[1])
        if state.iteration == 0:
            return self._first_tree(row, call, 0.0, weight)
        return self._ders(approxes, self._table[row])

    def _units_of(self, stage: int) -> list[float] | None:
        """Units of the outputs where splits are chosen, so that those of the target weigh nothing.

        Only of chains that shrink to their start: the null chain splits as CatBoost's own loss does.
        """
        if stage == Stream.LEAVES or self.state.shrink_to_start == 0:
            return None
        start = np.array(self._start) * self.state.learning_rate
        units = self.state.loss.noise_scale(start[None])[0]
        return None if (units == units[0]).all() else units.tolist()

    def _turn(self, iteration: int, stage: int) -> None:
        with self.state.lock:
            if self._place == (iteration, stage):
                return  # another thread was first
            if iteration:
                self._table = list(self._items(stage))
                self._units = self._units_of(stage)
            if stage == Stream.STRUCTURE:
                self._calls = itertools.count()
            self._place = (iteration, stage)


def _rows(columns: np.ndarray) -> Iterator[tuple[float, ...]]:
    return zip(*columns.T.tolist())


def _softmax(raw: list[float], item: Item) -> list[float]:
    _, _, gain, noise, _ = item  # the noise holds the label's share already
    top = max(raw)
    powers = [math.exp(score - top) for score in raw]
    share = gain / sum(powers)
    return [draw - share * power for draw, power in zip(noise, powers)]


def _normal(loss: NormalLikelihood) -> _Direction:
    low, high = loss.log_sigma(np.array([[0.0, -math.inf], [0.0, math.inf]])).tolist()

    def direction(raw: list[float], item: Item) -> list[float]:
        _, label, gain, noise, pull = item
        sigma = math.exp(min(max(raw[1], low), high))
        residual = label - raw[0]
        square = min((residual / sigma) ** 2, _MAX_SQUARE)
        return [gain * residual + sigma * noise[0] + pull[0], gain * (square - 1.0) + noise[1] + pull[1]]

    return direction


def _any_loss(loss: Loss) -> _Direction:
    def direction(raw: list[float], item: Item) -> list[float]:
        _, label, gain, noise, pull = item
        score = np.array([raw])
        step = gain * np.asarray(loss.direction(np.array([label]), score))
        if step.shape != score.shape:
            raise ValueError(f"direction of {loss.name} must have shape {score.shape}, got {step.shape}")
        return (step + loss.noise_scale(score) * np.array(noise) + np.array(pull))[0].tolist()

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
        return RowsByCount(state)
    raise ValueError(
        f"the {state.loss.name} loss has {state.loss.n_outputs} outputs; CatBoost would crash on a target of "
        "one column; train on loss.pool(X, y, cat_features=..., sample_weight=...), or use SGLBRegressor"
    )


def _is_text(value: Any, text: str) -> bool:
    return isinstance(value, str) and value == text
