"""Objectives that CatBoost calls: blocks of rows for one raw score, single rows for several.

A fit starts with a census. In iteration 0 the structure pass gets zero gradients (so that the first
tree has one split at most) and shows every label and weight; the leaf pass then sets the loss's own
start value, the same in every leaf. The first tree is therefore the start of the chain, and part of
every prediction, also after reload.

Row identity: a chain's pool names its rows by their labels. In an ordinary fit CatBoost keeps the
labels of a pass in one array in the order of the rows (`check_settings` refuses fits where it does
not), and the address of a block within it is the number of its first row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from boostplugins.catboost.state import TrainingState
from boostplugins.losses.kernels import one_output
from boostplugins.noise import Stream

_NO_WEIGHT = np.empty(0, dtype=np.float32)
_NO_OFFSET = np.empty(0)
_FLOAT32 = 4  # bytes


class RowsInBlocks:
    """Objective for one raw score a row.

    Parameters
    ----------
    state : TrainingState
        State of the fit.
    labels : ndarray of shape (n_rows,) or None
        Unique float32 labels of a chain's pool; None to go by addresses.
    y : ndarray of shape (n_rows,) or None
        Float64 responses of a chain's pool.
    """

    no_jit = True  # CatBoost would compile the method without its state

    def __init__(self, state: TrainingState, labels: np.ndarray | None, y: np.ndarray | None) -> None:
        self.state = state
        self.by_label = labels is not None
        if labels is not None and y is not None:
            self._order = np.argsort(labels)
            self._sorted = labels[self._order]
            self._y = y
        self._census: list[tuple[int, np.ndarray, np.ndarray]] = []
        self._leaf_addresses: list[int] = []
        self._base: list[int] = []
        self._start: float | None = None

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
            Weights.

        Returns
        -------
        ndarray of shape (n, 2)
            Ascent direction and negative curvature.
        """
        state = self.state
        out = np.empty((len(targets), 2))
        if state.iteration == 0:
            return self._first_tree(targets, weights, out)
        if state.pull[0]:  # CatBoost shrank the start as well: look from where the chain stands
            approxes = approxes + state.learning_rate * state.pull[0]
        if self.by_label:
            rows = self._rows_of(targets)
            stage = state.take_rows(len(targets))
            kept, offset, noise = state.kept, state.offset, state.noise(stage)
            kept = kept[rows] if len(kept) else kept
            offset = offset[0][rows] if len(offset) else _NO_OFFSET
            noise = noise[rows] if len(noise) else noise
            y = self._y[rows]
        else:
            stage, first = self._stage_and_row(targets)
            end = first + len(targets)
            kept, offset, noise = state.kept[first:end], state.offset, state.noise(stage)[first:end]
            offset = offset[0, first:end] if len(offset) else _NO_OFFSET
            y = targets
        self._directions(approxes, y, weights, kept, offset, noise, state.size(stage), out)
        if state.pull[0]:
            out[:, 0] -= state.pull[0] * out[:, 1]
        return out

    def _directions(
        self,
        raw: np.ndarray,
        y: np.ndarray,
        weights: np.ndarray | None,
        kept: np.ndarray,
        offset: np.ndarray,
        noise: np.ndarray,
        size: float,
        out: np.ndarray,
    ) -> None:
        state, loss = self.state, self.state.loss
        weight = _NO_WEIGHT if weights is None else weights
        if loss.kernel is not None:
            one_output(loss.kernel, state.sigma, raw, y, weight, state.alpha, kept, offset, noise, size, out)
            return
        score = (raw + offset if len(offset) else raw)[:, None]
        w = 1.0 if weights is None else weights.astype(np.float64)
        out[:, 0] = state.alpha * w * loss.direction(np.asarray(y, dtype=np.float64), score)[:, 0]
        if len(kept):
            out[~kept, 0] = 0.0
        if len(noise):
            out[:, 0] += np.sqrt(w) * size * loss.noise_scale(score)[:, 0] * noise
        out[:, 1] = -w

    def _first_tree(self, targets: np.ndarray, weights: np.ndarray | None, out: np.ndarray) -> np.ndarray:
        state = self.state
        w = np.ones(len(targets)) if weights is None else np.array(weights, dtype=np.float64)
        out[:, 1] = -w
        stage = state.take_rows(len(targets))
        address = _address(targets)
        if stage == Stream.STRUCTURE:
            with state.lock:
                self._census.append((address, np.array(targets, dtype=np.float64), w))
            out[:, 0] = 0.0
            return out
        with state.lock:
            self._leaf_addresses.append(address)
            if self._start is None:
                self._start = self._count()
        out[:, 0] = w * self._start / state.learning_rate
        return out

    def _count(self) -> float:
        """Finish the census: where the rows lie, and the best constant start."""
        census = sorted(self._census, key=lambda block: block[0])
        self._base = [census[0][0]]
        y = np.concatenate([block[1] for block in census])
        weight = np.concatenate([block[2] for block in census])
        if self.by_label:
            rows, first = np.unique(self._rows_of(y.astype(np.float32)), return_index=True)
            y, weight = self._y[rows], weight[first]
        self._census = []
        return float(self.state.begin(y, weight)[0])

    def _stage_and_row(self, targets: np.ndarray) -> tuple[int, int]:
        address = _address(targets)
        if len(self._base) == 1:  # the leaf pass has an array of its own, complete by now
            self._base.append(min(self._leaf_addresses))
        same = self._base[0] == self._base[1]
        for stage, base in zip((Stream.STRUCTURE, Stream.LEAVES), self._base, strict=True):
            first = (address - base) // _FLOAT32
            if 0 <= first <= self.state.n_rows - len(targets):
                return (self.state.take_rows(len(targets)) if same else stage), first
        raise RuntimeError(
            "CatBoost moved the training rows, so that masks and noise would miss them; train on "
            "loss.pool(X, y, cat_features=..., sample_weight=...)"
        )

    def _rows_of(self, labels: np.ndarray) -> np.ndarray:
        place = np.searchsorted(self._sorted, labels)
        found = np.minimum(place, len(self._sorted) - 1)
        if not np.array_equal(self._sorted[found], labels):
            raise RuntimeError("labels of a chain's pool were changed: train on the pool that loss.pool made")
        return self._order[found]


def _address(targets: np.ndarray) -> int:
    return int(targets.__array_interface__["data"][0])
