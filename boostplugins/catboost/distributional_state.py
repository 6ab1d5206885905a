"""State of a distributional fit on CatBoost: every row's raw scores, whose turn it is, the score watched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from boostplugins.families._steps import METRICS, Steps

if TYPE_CHECKING:
    from boostplugins.catboost.distributional import Distributional

_WORST = 1e100  # score of an impossible row, which CatBoost could not print as infinity
# CatBoost is told of no score this many sizes of the first one above it: its overfitting detector
# measures later changes against the greatest one, and never stops after a gain of 1e100.
_SIZES = 1e3
# Models whose best score lies between these are written, but not read again: CatBoost takes whole numbers
# that floats do not hold one by one for no numbers.
_UNREAD = (2.0**53, 2.0**65)
# Rounding by which sums of the same trees may differ between CatBoost's copies of the data, to the largest.
_ROUNDING = 1e-6


class Fit:
    """State of one training run: every row's raw scores, and whose turn it is.

    Parameters
    ----------
    steps : Steps
        Training responses, weights and start value.
    offset : ndarray of shape (n_samples,) or None
        Known part of the first raw score.
    """

    def __init__(self, steps: Steps, offset: np.ndarray | None) -> None:
        n = len(steps.y)
        self.steps = steps
        self.turns = len(steps.start)
        self.trees = 0
        self.raw = np.tile(steps.start, (n, 1))
        if offset is not None:
            self.raw[:, 0] += offset
        self.last = np.zeros(n)
        self.stamp = np.full(n, -1)
        self.answer = np.empty((n, 2))
        self.reach = 0.0
        self.watch: Watch | None = None

    def derivatives(self, approx: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Derivatives of a block of rows in the parameter whose turn it is.

        Parameters
        ----------
        approx : ndarray of shape (n_block,)
            Sums of all trees.
        ids : ndarray of shape (n_block,)
            Numbers of the rows.

        Returns
        -------
        ndarray of shape (n_block, 2)
            First and second derivatives of the log likelihood.

        Raises
        ------
        ValueError
            For labels that are no numbers of rows, and where the trees were not grown one after another
            from nothing, each counted by the callback.
        """
        count, rows = len(ids), self._rows(ids)
        # CatBoost asks twice for each tree, for its structure and then for its leaves, at the same
        # raw scores: the second answer is the first.
        fresh = self.stamp[rows] != self.trees
        moved = abs(float(approx[0]) - float(self.last[int(ids[0])]))
        if not fresh.any():
            if moved > _ROUNDING * self.reach:
                raise ValueError(
                    "trees are not grown one after another: callbacks must hold loss.callback(), and the "
                    "settings be those of loss.catboost_params()"
                )
            return self.answer[rows]
        if self.trees > 0:
            self.raw[rows, (self.trees - 1) % self.turns] += approx - self.last[rows]
        elif approx.any():
            raise ValueError(
                "training must begin with no tree: it cannot go on from init_model or a snapshot, and a "
                "baseline is to be given as offset"
            )
        self.reach = max(self.reach, moved)
        self.last[rows] = approx
        self.stamp[rows] = self.trees
        k = self.trees % self.turns
        out = np.empty((count, self.turns)), np.empty((count, self.turns))
        self.steps.block(self.raw[rows], rows, 1.0, out)
        answer = np.empty((count, 2))
        answer[:, 0], answer[:, 1] = out[0][:, k], -out[1][:, k]
        self.answer[rows] = answer
        return answer

    def _rows(self, ids: np.ndarray) -> Any:
        """Numbers of the rows, as a slice where they are in order."""
        count, first = len(ids), int(ids[0])
        if ids[0] == first and ids[-1] == first + count - 1 and bool((np.diff(ids) == 1).all()):
            if 0 <= first <= len(self.last) - count:
                return slice(first, first + count)
        else:
            rows = ids.astype(np.intp)
            if (rows == ids).all() and rows.min() >= 0 and rows.max() < len(self.last):
                return rows
        raise ValueError("labels must be those of loss.pool(X, y): train on the pool that it made last")


class Watch:
    """Raw scores and score of the evaluation set.

    Parameters
    ----------
    steps : Steps
        Those of the training rows.
    y : ndarray of shape (n_samples,)
        Responses.
    weight, offset : ndarray of shape (n_samples,) or None
        Weights, and known part of the first raw score.
    """

    def __init__(
        self, steps: Steps, y: np.ndarray, weight: np.ndarray | None, offset: np.ndarray | None
    ) -> None:
        self.steps, self.y, self.weight = steps, y, weight
        self.raw = np.tile(steps.start, (len(y), 1))
        if offset is not None:
            self.raw[:, 0] += offset
        self.last = np.zeros(len(y))
        self.trees = -1
        first = self._mean()
        self.most = first + _SIZES * (abs(first) + 1.0)
        self.value = _told(self.most)
        self.history: list[float] = []

    def score(self, approx: np.ndarray, trees: int, name: str) -> float:
        """Score the evaluation set, once a round.

        Parameters
        ----------
        approx : ndarray of shape (n_samples,)
            Sums of all trees.
        trees : int
            Trees finished before the one that was just grown.
        name : {"nll", "crps"}
            Which score.

        Returns
        -------
        float
            Weighted mean score after the last whole round, for CatBoost: bounded above, and before the
            first whole round, when no tree may be the best, above that bound.
        """
        turns = len(self.steps.start)
        if len(approx) != len(self.y):
            raise ValueError("eval_set must be the one pool that loss.eval_pool made last")
        if trees == self.trees:
            return self.value
        self.trees = trees
        self.raw[:, trees % turns] += approx - self.last
        self.last = approx.copy()
        if trees % turns == turns - 1:
            self.history.append(self._mean(name))
            self.value = _told(min(self.history[-1], np.nextafter(self.most, -np.inf)))
        return self.value

    def _mean(self, name: str = "nll") -> float:
        family = self.steps.family
        theta = family.theta(np.clip(self.raw, self.steps.low, self.steps.high))
        score = METRICS[name](family, self.y, theta)
        return float(np.average(np.minimum(score, _WORST), weights=self.weight))


def _told(value: float) -> float:
    """Score as CatBoost is told it: in the same order, beyond what it cannot read again."""
    return float(value + _UNREAD[1] if value > _UNREAD[0] else value)


class Score:
    """CatBoost's view of the family's score on the evaluation set; training rows are not scored.

    Parameters
    ----------
    loss : Distributional
        Objective of the fit.
    """

    no_jit = True

    def __init__(self, loss: Distributional) -> None:
        self.loss = loss
        # CatBoost shows the class's name in its log.
        self.__class__ = {"nll": NLL, "crps": CRPS}[loss.metric_name]

    def __deepcopy__(self, memo: dict[int, Any]) -> Score:
        return self

    def is_max_optimal(self) -> bool:
        """Tell the direction.

        Returns
        -------
        bool
            False: lower is better.
        """
        return False

    def get_final_error(self, error: float, weight: float) -> float:
        """Give the score itself.

        Parameters
        ----------
        error, weight : float
            What `evaluate` gave.

        Returns
        -------
        float
            Mean score.
        """
        return error

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:
        """Score the evaluation set, once a round.

        Parameters
        ----------
        approxes : sequence of ndarray
            Sums of all trees, one array.
        target : ndarray of shape (n_samples,)
            Numbers of the rows, negative ones of the evaluation set.
        weight : ndarray or None
            Known already.

        Returns
        -------
        tuple of float
            Mean score, of weight one.
        """
        fit = self.loss._fit
        if fit is None or fit.watch is None or target[0] >= 0:
            return 0.0, 1.0
        return fit.watch.score(np.asarray(approxes[0]), fit.trees, self.loss.metric_name), 1.0


class NLL(Score):
    """Negative log score."""


class CRPS(Score):
    """Continuous ranked probability score."""


class Clock:
    """Callback that counts finished trees.

    Parameters
    ----------
    loss : Distributional
        Objective of the fit.
    """

    def __init__(self, loss: Distributional) -> None:
        self.loss = loss

    def after_iteration(self, info: Any) -> bool:
        """Advance by one tree.

        Parameters
        ----------
        info : object
            CatBoost's ``info``; ``info.iteration`` trees are finished.

        Returns
        -------
        bool
            True: go on.
        """
        if self.loss._fit is not None:
            self.loss._fit.trees = info.iteration
        return True
