"""Objective that CatBoost calls with blocks of rows, for one raw score a row.

A fit starts with a census. In iteration 0 the structure pass gets zero gradients (so that the first
tree has one split at most) and shows every label and weight; the leaf pass then sets the loss's own
start value, the same in every leaf. The first tree is therefore the start of the chain, and part of
every prediction, also after reload.

Row identity: in an ordinary fit CatBoost keeps the labels of a pass in one array in the order of the
rows (`check_settings` refuses fits where it does not), and the address of a block within it is the
number of its first row. Where rows are shuffled, a chain's pool names them by their labels.
"""

from __future__ import annotations

import functools
import math
import weakref
from typing import Any

import numpy as np

from boostplugins.catboost.kernels import (
    GAIN,
    LABEL,
    MOVED,
    OFFSET,
    ROOT,
    SHIFT,
    STRUCTURE_FACTOR,
    STRUCTURE_NOISE,
    TABLE_ROWS,
    WEIGHT,
    at_rows,
    in_order,
    make_groups,
)
from boostplugins.catboost.state import TrainingState
from boostplugins.noise import GROUP, Stream

_PASSES = (Stream.STRUCTURE, Stream.LEAVES)
_NOWHERE = -1  # address of a pass that a call cannot belong to
_LEAST_SPREAD = 2.0**-20  # of responses: CatBoost takes no split whose gain is below 1e-9, in their unit


class RowsInBlocks:
    """Objective for one raw score a row.

    Parameters
    ----------
    state : TrainingState
        State of the fit.
    y : ndarray of shape (n_rows,), optional
        Float64 responses of a chain's pool; CatBoost's float32 labels by default.
    labels : ndarray of shape (n_rows,), optional
        Unique float32 labels of a chain's pool whose rows CatBoost shuffles.
    """

    no_jit = True  # CatBoost would compile the method without its state

    def __init__(
        self, state: TrainingState, y: np.ndarray | None = None, labels: np.ndarray | None = None
    ) -> None:
        self.state = state
        state.objective = weakref.ref(self)
        self._y, self._weight = y, np.ones(state.n_rows)
        self._by_label = labels is not None
        if labels is not None:
            self._order = np.argsort(labels)
            self._sorted = labels[self._order]
        self._census: list[tuple[int, np.ndarray, np.ndarray]] = []
        self._leaf_addresses: list[int] = []
        self._bases = np.empty((0, 2), dtype=np.int64)
        self._start: float | None = None
        self._table = np.zeros((TABLE_ROWS, state.n_rows))
        self._made = np.full((2, -(-state.n_rows // GROUP)), -1)
        self._kept, self._offset = state.kept, state.offset

    def __deepcopy__(self, memo: dict[int, Any]) -> RowsInBlocks:
        return self

    def calc_ders_range(
        self, approxes: np.ndarray, targets: np.ndarray, weights: np.ndarray | None
    ) -> np.ndarray:
        """Derivatives of a block of rows.

        Parameters
        ----------
        approxes : ndarray of shape (n,)
            Raw scores.
        targets : ndarray of shape (n,), dtype float32
            Labels.
        weights : ndarray of shape (n,), dtype float32, or None
            Weights, known since the census.

        Returns
        -------
        ndarray of shape (n, 2)
            Ascent direction; second derivatives of -1, which leaves that are means do not use.
        """
        out = np.empty((len(targets), 2))
        if self.state.iteration == 0:
            return self._first_tree(targets, weights, out)
        self._slowly(approxes, targets, out)
        return out

    def resume(self, done: int, weight: np.ndarray) -> None:
        """Go on from a snapshot, without the census of the first tree.

        Parameters
        ----------
        done : int
            Trees in the snapshot.
        weight : ndarray of shape (n_rows,)
            Weights.
        """
        self._weight = weight
        self._start = self._know_rows()
        self.state.advance(done)

    def prepare(self) -> None:
        """Make ready for the iteration that the clock has come to.

        Blocks whose place tells their rows are served by compiled code alone from now on: the threads
        of CatBoost hold the interpreter for a shorter time.
        """
        state, table = self.state, self._table
        if state.kept is not self._kept:
            table[GAIN] = self._weight * state.kept if len(state.kept) else self._weight
            self._kept = state.kept
        if state.offset is not self._offset:
            table[OFFSET] = state.offset[0]
            self._offset = state.offset
        kernel = state.loss.kernel
        sizes = [state.size(stage) * (1.0 if kernel is None else state.sigma) for stage in _PASSES]
        # CatBoost shrank the start as well: look from where the chain stands.
        pull = 0.0 if kernel is None else state.pull[0]
        factors = (self._magnified, 1.0)
        self._numbers = np.array([state.alpha, state.learning_rate * state.pull[0], pull, *sizes, *factors])
        made = (np.array([state.seed, state.iteration], dtype=np.uint64), self._numbers, table, self._made)
        if kernel is not None and len(self._bases) == 1:
            served = functools.partial(in_order, kernel, self._bases[0], *made)
            self.calc_ders_range = served  # type: ignore[method-assign]
            return
        for stage in _PASSES:
            make_groups(0, self._made.shape[1], int(stage), *made)

    def _slowly(self, raw: np.ndarray, targets: np.ndarray, out: np.ndarray) -> None:
        """Take rows that are shuffled, passes that share an array, losses without a kernel."""
        state, loss = self.state, self.state.loss
        rows, stage = self._rows_and_stage(targets)
        if loss.kernel is not None:
            at_rows(loss.kernel, self._numbers, raw, rows, stage, self._table, out)
            return
        label, gain, offset, noise = (
            self._table[row, rows] for row in (LABEL, GAIN, OFFSET, STRUCTURE_NOISE + stage)
        )
        score = (raw + self._numbers[SHIFT] + offset)[:, None]
        step = np.asarray(loss.direction(label, score))
        if step.shape != score.shape:
            raise ValueError(f"direction of {loss.name} must have shape {score.shape}, got {step.shape}")
        out[:, 0] = state.alpha * gain * step[:, 0] + noise * loss.noise_scale(score)[:, 0]
        out[:, 0] += self._weight[rows] * state.pull[0]
        if not np.isfinite(out[:, 0]).all():
            raise ValueError(
                f"direction of {loss.name} must be finite, got NaN or infinity in iteration {state.iteration}"
            )
        out[:, 0] *= self._numbers[STRUCTURE_FACTOR + stage]
        out[:, 1] = -1.0

    def _first_tree(self, targets: np.ndarray, weights: np.ndarray | None, out: np.ndarray) -> np.ndarray:
        state = self.state
        w = np.ones(len(targets)) if weights is None else np.array(weights, dtype=np.float64)
        out[:, 1] = -1.0
        stage = state.take_rows(len(targets))
        address = int(targets.__array_interface__["data"][0])
        with state.lock:
            if stage == Stream.STRUCTURE:
                self._census.append((address, np.array(targets, dtype=np.float64), w))
                out[:, 0] = 0.0
                return out
            self._leaf_addresses.append(address)
            if self._start is None:
                self._start = self._count()
            if not self._by_label:  # the least address of a pass is its array's; complete in the end
                leaves, structure = min(self._leaf_addresses), self._first_address
                shared = leaves == structure
                one = [[structure, _NOWHERE], [_NOWHERE, structure]]
                self._bases = np.array(one if shared else [[structure, leaves]], dtype=np.int64)
        out[:, 0] = w * self._start / state.learning_rate
        return out

    def _count(self) -> float:
        """Finish the census: labels and weights of all rows, and the best constant start."""
        census = sorted(self._census, key=lambda block: block[0])
        self._first_address = census[0][0]
        y = np.concatenate([block[1] for block in census])
        weight = np.concatenate([block[2] for block in census])
        if self._by_label:
            rows, first = np.unique(self._rows_of(y.astype(np.float32)), return_index=True)
            self._weight[rows] = weight[first]
        else:
            self._weight = weight
        if self._y is None:
            self._y = y
        self._census = []
        return self._know_rows()

    def _know_rows(self) -> float:
        """Set up the table and the start, once responses and weights are known."""
        assert self._y is not None
        self._table[LABEL], self._table[GAIN], self._table[WEIGHT] = self._y, self._weight, self._weight
        self._table[ROOT] = np.sqrt(self._weight)
        self._magnified = _magnification(self._y)
        return float(self.state.begin(self._y, self._weight)[0])

    def _rows_and_stage(self, targets: np.ndarray) -> tuple[np.ndarray, int]:
        if self._by_label:
            return self._rows_of(targets), self.state.take_rows(len(targets))
        address = int(targets.__array_interface__["data"][0])
        stage = self.state.take_rows(len(targets))
        bases = self._bases[stage if len(self._bases) > 1 else 0].tolist()
        for stage, base in enumerate(bases):
            first = (address - base) // targets.itemsize
            if base != _NOWHERE and 0 <= first <= self.state.n_rows - len(targets):
                return np.arange(first, first + len(targets)), stage
        raise RuntimeError(MOVED)

    def _rows_of(self, labels: np.ndarray) -> np.ndarray:
        place = np.searchsorted(self._sorted, labels)
        found = np.minimum(place, len(self._sorted) - 1)
        if not np.array_equal(self._sorted[found], labels):
            raise RuntimeError("labels of a chain's pool were changed: train on the pool that loss.pool made")
        return self._order[found]


def _magnification(y: np.ndarray) -> float:
    """Power of two by which the choice of splits sees responses of a small unit; the leaves do not."""
    spread = float(np.std(y))
    return 2.0 ** -round(math.log2(spread)) if 0.0 < spread < _LEAST_SPREAD else 1.0
