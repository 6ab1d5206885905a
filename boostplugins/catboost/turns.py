"""Chains of several raw scores whose parameters take turns, tree by tree.

CatBoost asks for several outputs row by row, some hundred times slower than for one output in
blocks. So in one ordinary run of one output tree t belongs to raw score t mod K: the chain moves one
coordinate after another, which has the same stationary law. The objective keeps every row's raw
scores beside the booster, the start value stands outside of the trees, and a reader tells the trees
of a raw score from the others by their numbers.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from catboost import CatBoost

from boostplugins.catboost.pool import ChainPool
from boostplugins.catboost.state import TrainingState
from boostplugins.losses import FamilyLikelihood, Loss


def in_turns(loss: Loss) -> bool:
    """Say whether the raw scores of a loss take turns.

    Parameters
    ----------
    loss : Loss
        Loss of a chain.

    Returns
    -------
    bool
        True for families, whose start stands outside of the trees, False for every other loss.
    """
    return isinstance(loss, FamilyLikelihood)


def trees_a_round(loss: Loss) -> int:
    """Number of trees that CatBoost grows in one iteration of a chain.

    Parameters
    ----------
    loss : Loss
        Loss of a chain.

    Returns
    -------
    int
        One for each raw score where they take turns, else one.
    """
    return loss.n_outputs if in_turns(loss) else 1


def start_of(loss: Loss, pool: ChainPool | None) -> list[float]:
    """Start value of a chain in turns, the weighted best constant.

    Parameters
    ----------
    loss : Loss
        Loss without open settings.
    pool : ChainPool or None
        Training pool.

    Returns
    -------
    list of float
        Raw scores.

    Raises
    ------
    ValueError
        Without a pool, which alone names its rows.
    """
    if pool is None:
        raise ValueError(
            f"a chain of a family ({loss.n_outputs} parameters in turns) must be trained on loss.pool(X, y)"
        )
    return loss.start(pool.y_, np.asarray(pool.get_weight(), dtype=np.float64)).tolist()


class TurnState(TrainingState):
    """State of a chain in turns: K trees make one iteration of schedule, mask and noise."""

    turn: int = 0

    def advance(self, iteration: int) -> None:
        """Start a tree.

        Parameters
        ----------
        iteration : int
            Trees finished.
        """
        done, self.turn = divmod(iteration, self.loss.n_outputs)
        if self.turn == 0:
            super().advance(done)
        self.seen = 0


class RowsInTurn:
    """Objective of a chain in turns.

    Parameters
    ----------
    state : TurnState
        State of the fit.
    pool : ChainPool
        Training pool, whose labels are unique.
    shrink : float
        Share of the model that each tree after the first takes away, ``model_shrink_rate`` times the
        learning rate.
    """

    no_jit = True  # CatBoost would compile the method without its state

    def __init__(self, state: TurnState, pool: ChainPool, shrink: float) -> None:
        n, outputs = state.n_rows, state.loss.n_outputs
        self.state = state
        self._order = np.argsort(pool.labels_)
        self._sorted = pool.labels_[self._order]
        self._labels = pool.labels_
        self._y = pool.y_
        self._weight = np.asarray(pool.get_weight(), dtype=np.float64)
        self._keep = 1.0 - shrink
        self._raw = np.zeros((n, outputs))  # sums of the trees of each raw score
        self._start = np.array(start_of(state.loss, pool))
        self._approx = np.zeros(n)
        self._direction, self._spread = np.empty(n), np.empty(n)
        self._seen_at = np.full(n, -1)
        self._tree = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> RowsInTurn:
        return self

    def calc_ders_range(self, approxes: Any, targets: np.ndarray, weights: Any) -> np.ndarray:
        """Derivatives of a block of rows in the raw score whose turn it is.

        Parameters
        ----------
        approxes : array of shape (n_block,)
            Sums of all trees.
        targets : ndarray of shape (n_block,), dtype float32
            Labels, which name the rows.
        weights : array of shape (n_block,) or None
            Weights, known from the pool.

        Returns
        -------
        ndarray of shape (n_block, 2)
            Ascent direction; second derivatives of -1, which leaves that are means do not use.
        """
        state = self.state
        rows = self._rows_of(np.asarray(targets))
        stage = state.take_rows(len(targets))
        tree = state.iteration * state.loss.n_outputs + state.turn
        if (self._seen_at[rows] != tree).any():
            self._look(np.asarray(approxes), rows, tree)
        gain = state.alpha * self._weight[rows]
        if len(state.kept):
            gain = gain * state.kept[rows]
        out = np.empty((len(targets), 2))
        out[:, 0] = gain * self._direction[rows]
        size = state.size(stage)
        if size > 0:
            noise = state.noise(stage, state.turn)[rows]
            out[:, 0] += size * np.sqrt(self._weight[rows]) * self._spread[rows] * noise
        out[:, 1] = -1.0
        return out

    def _look(self, approx: np.ndarray, rows: Any, tree: int) -> None:
        """Take what the last tree added to these rows, and find their directions."""
        outputs = self.state.loss.n_outputs
        if tree > 0:
            # CatBoost shrinks the model before it asks.
            grown = approx - self._keep * self._approx[rows]
            self._raw[rows] *= self._keep
            self._raw[rows, (tree - 1) % outputs] += grown
        self._approx[rows] = approx
        self._seen_at[rows] = tree
        raw = self._raw[rows] + self._start
        if len(self.state.offset):
            raw += self.state.offset.T[rows]
        direction, spread = self.state.loss.direction_and_noise(self._y[rows], raw)
        self._direction[rows] = direction[:, self.state.turn]
        self._spread[rows] = spread[:, self.state.turn]

    def _rows_of(self, labels: np.ndarray) -> Any:
        """Numbers of the rows, as a slice where they are in order."""
        place = np.searchsorted(self._sorted, labels[:1])
        first = int(self._order[min(int(place[0]), len(self._order) - 1)])
        if np.array_equal(self._labels[first : first + len(labels)], labels):
            return slice(first, first + len(labels))
        found = np.minimum(np.searchsorted(self._sorted, labels), len(self._sorted) - 1)
        if not np.array_equal(self._sorted[found], labels):
            raise RuntimeError("labels of a chain's pool were changed: train on the pool that loss.pool made")
        return self._order[found]


class NoScore:
    """Metric of a chain in turns, 0: sums of the trees of all parameters tell no score."""

    no_jit = True

    def is_max_optimal(self) -> bool:
        """Tell the direction.

        Returns
        -------
        bool
            False.
        """
        return False

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:
        """Score nothing.

        Parameters
        ----------
        approxes, target, weight : object
            Ignored.

        Returns
        -------
        tuple of float
            Zero, of weight one.
        """
        return 0.0, 1.0

    def get_final_error(self, error: float, weight: float) -> float:
        """Give the score.

        Parameters
        ----------
        error, weight : float
            Sums.

        Returns
        -------
        float
            Zero.
        """
        return error


def part_models(model: Any, factors: np.ndarray, start: np.ndarray) -> list[CatBoost]:
    """Make one ordinary model for each raw score of a chain in turns.

    Parameters
    ----------
    model : CatBoost
        The chain.
    factors : ndarray of shape (n_trees,)
        What each tree's leaf values are multiplied by.
    start : ndarray of shape (n_outputs,)
        Start value.

    Returns
    -------
    list of CatBoost
        Models whose raw predictions are start value and trees of one raw score.
    """
    number = np.repeat(np.arange(model.tree_count_), model.get_tree_leaf_counts())
    values = np.asarray(model.get_leaf_values()) * factors[number]
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.cbm")
        model.save_model(path)
        for k, value in enumerate(start):
            part = CatBoost().load_model(path)  # a plain copy could not be changed
            part.set_leaf_values(np.where(number % len(start) == k, values, 0.0))
            part.set_scale_and_bias(1.0, float(value))
            parts.append(part)
    return parts
