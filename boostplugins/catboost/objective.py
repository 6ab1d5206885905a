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

from typing import Any

import numpy as np

from boostplugins.catboost.kernels import LABEL, LEAF_NOISE, STRUCTURE_NOISE, TABLE_ROWS, at_rows, in_order
from boostplugins.catboost.state import TrainingState
from boostplugins.noise import Stream

_NOWHERE = -1  # address of a pass that a call cannot belong to


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
        self._made_for = 0

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
        state = self.state
        out = np.empty((len(targets), 2))
        if state.iteration == 0:
            return self._first_tree(targets, weights, out)
        if self._made_for != state.iteration:
            self._make_table()
        kernel = state.loss.kernel
        if kernel is None or self._by_label or len(self._bases) > 1:
            self._slowly(approxes, targets, out)
        elif not in_order(kernel, approxes, targets, self._bases[0], self._table, out):
            raise _moved()
        return out

    def _slowly(self, raw: np.ndarray, targets: np.ndarray, out: np.ndarray) -> None:
        """Take rows that are shuffled, passes that share an array, losses without a kernel."""
        state, loss = self.state, self.state.loss
        rows, stage = self._rows_and_stage(targets)
        if loss.kernel is not None:
            at_rows(loss.kernel, raw, rows, stage, self._table, out)
            return
        label, gain, shift, *noise = self._table[:, rows]
        score = (raw + shift)[:, None]
        step = np.asarray(loss.direction(label, score))
        if step.shape != score.shape:
            raise ValueError(f"direction of {loss.name} must have shape {score.shape}, got {step.shape}")
        out[:, 0] = gain * step[:, 0] + noise[stage] * loss.noise_scale(score)[:, 0]
        out[:, 0] += self._weight[rows] * state.pull[0]
        out[:, 1] = -1.0

    def _make_table(self) -> None:
        """Make what the iteration knows of every row without its raw score."""
        state, weight, table = self.state, self._weight, self._table
        with state.lock:
            if self._made_for == state.iteration:
                return  # another thread was first
            np.multiply(weight, state.alpha, out=table[1])
            if len(state.kept):
                table[1] *= state.kept
            # CatBoost shrank the start as well: look from where the chain stands.
            table[2] = state.learning_rate * state.pull[0]
            if len(state.offset):
                table[2] += state.offset[0]
            compiled = state.loss.kernel is not None
            for row, stage in ((STRUCTURE_NOISE, Stream.STRUCTURE), (LEAF_NOISE, Stream.LEAVES)):
                if state.noise_size > 0:
                    size = state.size(stage) * (state.sigma if compiled else 1.0)
                    np.multiply(state.noise(stage), size, out=table[row])
                    if self._weighted:
                        table[row] *= self._root
                else:
                    table[row] = 0.0
                if compiled and state.pull[0]:
                    table[row] += weight * state.pull[0]
            self._made_for = state.iteration

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
        self._weighted = bool((self._weight != 1.0).any())
        self._root = np.sqrt(self._weight) if self._weighted else self._weight
        self._table[LABEL] = self._y
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
        raise _moved()

    def _rows_of(self, labels: np.ndarray) -> np.ndarray:
        place = np.searchsorted(self._sorted, labels)
        found = np.minimum(place, len(self._sorted) - 1)
        if not np.array_equal(self._sorted[found], labels):
            raise RuntimeError("labels of a chain's pool were changed: train on the pool that loss.pool made")
        return self._order[found]


def _moved() -> RuntimeError:
    return RuntimeError(
        "CatBoost moved the training rows, so that masks and noise would miss them; train on "
        "loss.pool(X, y, cat_features=..., sample_weight=...)"
    )
