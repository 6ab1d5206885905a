"""Leaf values from a second draw: trees grown on one noisy direction, filled with another.

LightGBM gives no leaf numbers of its training rows, but its scores tell them: a row's score grows by
the value of its leaf. The scores that LightGBM goes on holding are those of the first draw; the
chain's own are kept here, for the training rows and for every evaluation set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from lightgbm import Booster

from boostplugins._jit import njit
from boostplugins.noise import Stream

if TYPE_CHECKING:
    from boostplugins.lightgbm.state import TrainingState

_BUCKETS = 1024
_TOLERANCE = 1e-10  # of a score's growth, relative to the scores; leaf values are farther apart


class LeafDraws:
    """Leaves of a fit, and the scores that follow from them.

    Parameters
    ----------
    state : TrainingState
        State of the fit.
    """

    def __init__(self, state: TrainingState) -> None:
        self._state = state
        self._train: _Scores | None = None
        self._held: dict[int, _Scores] = {}
        self._waiting: list[_Scores] = []
        self._tables: list[_Table] = []

    def resume(self, scores: Sequence[np.ndarray], own: Sequence[np.ndarray]) -> None:
        """Set scores back to where a killed training left them.

        Parameters
        ----------
        scores : sequence of ndarray of shape (n_outputs, n_rows)
            LightGBM's of the training set and of each evaluation set.
        own : sequence of ndarray of shape (n_outputs, n_rows)
            The chain's.
        """
        self._train, *self._waiting = (_Scores(*pair) for pair in zip(scores, own, strict=True))

    def own(self, scores: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Give the chain's scores of the training set and of each evaluation set.

        Parameters
        ----------
        scores : sequence of ndarray of shape (n_outputs, n_rows)
            LightGBM's, of the same sets.

        Returns
        -------
        list of ndarray of shape (n_outputs, n_rows)
            The chain's; LightGBM's own where no metric of the chain scores the set.
        """
        known = [self._train, *self._held.values()]
        found = [next((k for k in known if k and np.array_equal(k.booster, s)), None) for s in scores]
        return [s if k is None else k.chain for k, s in zip(found, scores)]

    def scores(self, scores: np.ndarray) -> np.ndarray:
        """Give the chain's scores of the training rows.

        Parameters
        ----------
        scores : ndarray of shape (n_outputs, n_rows)
            LightGBM's.

        Returns
        -------
        ndarray of shape (n_outputs, n_rows)
            The chain's.
        """
        if self._train is None:
            self._train = _Scores(scores)
        return self._train.chain

    def redraw(self, booster: Booster) -> None:
        """Fill the newest trees with means of the second draw.

        Parameters
        ----------
        booster : Booster
            Booster whose iteration is done.
        """
        state, train = self._state, self._train
        assert train is not None
        gradient, curvature = state.gradients(train.chain, Stream.LEAVES)
        grown = training_scores(booster, state.loss.n_outputs)
        iteration = booster.current_iteration() - 1
        self._tables = []
        for k, values in enumerate(_leaf_values(booster, iteration)):
            table = _Table(values)
            place = table.places(grown[k], train.booster[k])
            weight, total = _sums(place, curvature[k], gradient[k], table.size)
            mean = np.divide(-total, weight, out=np.zeros(table.size), where=weight > 0)
            table.drawn = state.learning_rate * mean
            for leaf, group in enumerate(table.group):
                tree = iteration * state.loss.n_outputs + k
                booster.set_leaf_output(tree, leaf, float(table.drawn[group]))
            self._tables.append(table)
            _move(train.chain[k], table.drawn, place)
        train.booster[:] = grown

    def held_out(self, scores: np.ndarray, start: np.ndarray | None) -> np.ndarray:
        """Give the chain's scores of an evaluation set; called once an iteration.

        Parameters
        ----------
        scores : ndarray of shape (n, n_outputs)
            LightGBM's, in the array that it uses for this set.
        start : ndarray or None
            Scores that LightGBM began with, those of an earlier model.

        Returns
        -------
        ndarray of shape (n, n_outputs)
            The chain's.
        """
        key = scores.__array_interface__["data"][0]
        grown = np.reshape(scores, (len(scores), -1), order="F").T
        if key not in self._held:
            first = np.zeros(grown.shape)
            if start is not None:
                first[:] = np.reshape(start, grown.T.shape, order="F").T
            self._held[key] = self._waiting.pop(0) if self._waiting else _Scores(first)
        held = self._held[key]
        if not np.array_equal(held.booster, grown):
            for k, table in enumerate(self._tables):
                held.chain[k] += table.drawn[table.places(grown[k], held.booster[k])]
            held.booster[:] = grown
        return held.chain.T


class _Scores:
    """The chain's scores of a data set, and LightGBM's, from which its growth is taken."""

    def __init__(self, scores: np.ndarray, own: np.ndarray | None = None) -> None:
        self.booster = np.array(scores, dtype=np.float64)
        self.chain = np.array(self.booster if own is None else own)


class _Table:
    """Leaves by their value in the first draw; leaves of one value count as one."""

    drawn: np.ndarray

    def __init__(self, values: np.ndarray) -> None:
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        least = _TOLERANCE * max(float(np.abs(values).max()), np.finfo(float).tiny)
        new = np.concatenate([[True], np.diff(ordered) > least])
        self.group = np.empty(len(values), dtype=np.intp)
        self.group[order] = np.cumsum(new) - 1
        self._values = ordered[new]
        self._cuts = (self._values[1:] + self._values[:-1]) / 2
        self.size = len(self._values)

    def places(self, grown: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Find the leaf of each row by the growth of its score."""
        place = np.empty(len(grown), dtype=np.int32)
        error, size = _places(grown, before, self._cuts, self._values, place)
        if not error <= _TOLERANCE * size:
            raise RuntimeError(
                "LightGBM's scores did not grow by leaf values, so that the rows' leaves are unknown; use "
                'CyclicalSGLB(leaf_noise="shared")'
            )
        return place


@njit(error_model="numpy")
def _places(grown, before, cuts, values, place):  # type: ignore[no-untyped-def]
    """Write the number of the value nearest to each growth; give the largest distance and score."""
    # Uniform buckets say where to begin: quicker than a binary search, whose branches are guessed wrong.
    scale = _BUCKETS / max(values[-1] - values[0], 1e-300)
    first = np.searchsorted(cuts, values[0] + (np.arange(_BUCKETS) - 1.0) / scale)
    error, size = 0.0, 0.0
    for i in range(len(grown)):
        growth = grown[i] - before[i]
        bucket = min(max((growth - values[0]) * scale, 0.0), _BUCKETS - 1.0)
        low = first[np.int64(bucket)] if bucket == bucket else 0
        while low < len(cuts) and cuts[low] < growth:
            low += 1
        place[i] = low
        distance = abs(growth - values[low])
        error = max(error, distance if distance == distance else np.inf)
        size = max(size, abs(grown[i]) + abs(before[i]))
    return error, size + np.abs(values).max()


@njit(error_model="numpy")
def _sums(place, curvature, gradient, size):  # type: ignore[no-untyped-def]
    """Sum curvatures and gradients by place."""
    weight, total = np.zeros(size), np.zeros(size)
    for i in range(len(place)):
        weight[place[i]] += curvature[i]
        total[place[i]] += gradient[i]
    return weight, total


@njit(error_model="numpy")
def _move(scores, drawn, place):  # type: ignore[no-untyped-def]
    """Add each row's leaf value to its score."""
    for i in range(len(place)):
        scores[i] += drawn[place[i]]


def training_scores(booster: Booster, n_outputs: int) -> np.ndarray:
    """Give LightGBM's scores of the training rows, in the array that it hands to the next objective.

    Parameters
    ----------
    booster : Booster
        Booster in training.
    n_outputs : int
        Raw scores a row.

    Returns
    -------
    ndarray of shape (n_outputs, n_rows)
        Scores.
    """
    scores = booster._Booster__inner_predict(data_idx=0)  # type: ignore[attr-defined]
    return np.reshape(scores, (-1, n_outputs), order="F").T


def _leaf_values(booster: Booster, iteration: int) -> list[np.ndarray]:
    text = booster.model_to_string(num_iteration=1, start_iteration=iteration)
    lines = text[: text.index("end of trees")].splitlines()
    return [
        np.array(line.split("=")[1].split(), dtype=np.float64)
        for line in lines
        if line.startswith("leaf_value=")
    ]
