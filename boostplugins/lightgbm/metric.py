"""Scores of a chain as LightGBM metrics: they see raw scores with start, shrink and prior."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from lightgbm import Dataset

from boostplugins.lightgbm.inspection import features_of
from boostplugins.lightgbm.sessions import data_of, find_state

if TYPE_CHECKING:
    from boostplugins.lightgbm.chain import CyclicalSGLB

Score = Callable[[np.ndarray, np.ndarray, np.ndarray | None], float]


class ChainMetric:
    """A metric of a chain: by default the loss's own log score, lower is better.

    Serves as ``feval=`` of ``lgb.train`` and ``lgb.cv`` and as ``eval_metric=`` of the scikit-learn
    interface.

    Parameters
    ----------
    chain : CyclicalSGLB
        The chain.
    function : callable, optional
        Other score, called as ``function(y, raw, weight)`` with raw scores of shape
        (n_samples, n_outputs).
    name : str, default="log_score"
        Name in the history.
    maximize : bool, default=False
        Whether higher is better.
    """

    def __init__(
        self,
        chain: CyclicalSGLB,
        function: Score | None = None,
        name: str = "log_score",
        maximize: bool = False,
    ) -> None:
        self.chain = chain
        self.function = function
        self.name = name
        self.maximize = maximize

    def __call__(self, first: Any, second: Any, weight: Any = None) -> tuple[str, float, bool]:
        """Score a data set.

        Parameters
        ----------
        first, second : ndarray or Dataset
            Scores and data set (``lgb.train``), or labels and scores (scikit-learn).
        weight : ndarray, optional
            Weights in the scikit-learn interface.

        Returns
        -------
        tuple of (str, float, bool)
            Name, value, and whether higher is better.
        """
        data = second if isinstance(second, Dataset) else None
        if data is not None:
            scores, y, weight = first, data.get_label(), data.get_weight()
        else:
            scores, y = second, first
        state = find_state(data, armed=False)
        if state is None or state.chain != self.chain:
            raise ValueError("the metric of a chain scores fits of that chain only; pass its own metric()")
        if data is None and state.booster is not None:
            data = data_of(state.booster, scores)
        if data is None:
            raise ValueError("the metric of a chain scores LightGBM's own arrays, during training only")
        if state.leaves is not None:
            scores = state.leaves.held_out(scores, data.get_init_score())
        features = None if self.chain.prior is None else features_of(data)
        raw = state.raw_scores(np.reshape(scores, (len(y), state.loss.n_outputs), order="F"), features)
        value = self._value(state.loss, np.asarray(y, dtype=np.float64), raw, weight)
        if math.isnan(value):
            raise ValueError(
                f"metric {self.name!r} is NaN in iteration {state.iteration}; check the labels of the data"
            )
        return self.name, value, self.maximize

    def _value(self, loss: Any, y: np.ndarray, raw: np.ndarray, weight: Any) -> float:
        if self.function is not None:
            return float(self.function(y, raw, weight))
        loss.check_labels(y)
        return float(np.average(loss.value(y, raw), weights=weight))
