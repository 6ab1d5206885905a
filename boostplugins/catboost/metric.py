"""The loss's own score as a CatBoost metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from catboost import MultiTargetCustomMetric

from boostplugins.losses import Loss


class LogScore:
    """Weighted mean of a loss, the negative log likelihood; lower is better.

    Parameters
    ----------
    loss : Loss
        Loss that scores the rows.
    """

    no_jit = True

    def __init__(self, loss: Loss) -> None:
        self.loss = loss

    def is_max_optimal(self) -> bool:
        """Tell the direction.

        Returns
        -------
        bool
            False: lower is better.
        """
        return False

    def evaluate(
        self, approxes: Sequence[np.ndarray], target: Any, weight: np.ndarray | None
    ) -> tuple[float, float]:
        """Sum the loss over rows.

        Parameters
        ----------
        approxes : sequence of ndarray
            Raw scores, one array an output.
        target : ndarray or sequence of ndarray
            Labels.
        weight : ndarray or None
            Weights.

        Returns
        -------
        tuple of float
            Weighted sum of the loss, and of the weights.
        """
        raw = np.stack([np.asarray(scores, dtype=np.float64) for scores in approxes], axis=1)
        y = np.asarray(self._labels(target), dtype=np.float64)
        value = self.loss.ready(y).value(y, raw)
        w = np.ones(len(y)) if weight is None or len(weight) == 0 else np.asarray(weight, dtype=np.float64)
        return float(np.dot(w, value)), float(w.sum())

    def get_final_error(self, error: float, weight: float) -> float:
        """Divide the sums.

        Parameters
        ----------
        error : float
            Weighted sum of the loss.
        weight : float
            Sum of the weights.

        Returns
        -------
        float
            Mean loss.
        """
        return error / (weight + 1e-300)

    def _labels(self, target: Any) -> Any:
        return target


class MultiLogScore(LogScore, MultiTargetCustomMetric):
    """The same for a chain's pool of several outputs: the first target is the label."""

    def _labels(self, target: Any) -> Any:
        return target[0]


def log_score(loss: Loss) -> LogScore:
    """Make the metric of a loss.

    Parameters
    ----------
    loss : Loss
        Loss that scores the rows.

    Returns
    -------
    LogScore
        Metric for ``eval_metric=``.
    """
    return LogScore(loss) if loss.n_outputs == 1 else MultiLogScore(loss)
