"""When to stop: the best round of a metric, its direction and its gaps."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

from boostplugins._warnings import warn

_TELLING = 5  # rounds that all get worse from the first before the direction is doubted


@dataclass
class BestRound:
    """Follow a metric over the rounds of a training.

    Parameters
    ----------
    patience : int
        Rounds without improvement before training should stop.
    maximize : bool
        Whether more is better.
    name : str, default="metric"
        Name of the metric, for messages.

    Attributes
    ----------
    best_iteration : int
        Round of the best value, from 0; the first among equals; -1 before any.
    best_value : float
        The best value.
    history : list of float
        Values so far.

    Examples
    --------
    >>> from boostplugins.early_stopping import BestRound
    >>> watch = BestRound(patience=2, maximize=False)
    >>> [watch.update(value) for value in (1.0, 0.9, float("nan"), 0.8, 0.85, 0.86)]
    [False, False, False, False, False, True]
    >>> watch.best_iteration
    3
    """

    patience: int
    maximize: bool
    name: str = "metric"
    best_iteration: int = -1
    best_value: float = math.nan
    history: list[float] = field(default_factory=list)

    def update(self, value: float) -> bool:
        """Take the value of the next round.

        Parameters
        ----------
        value : float
            Value of the metric; NaN counts as not better.

        Returns
        -------
        bool
            Whether to stop.

        Raises
        ------
        ValueError
            Where the metric has been NaN for `patience` rounds from the first.
        """
        self.history.append(float(value))
        iteration = len(self.history) - 1
        better = value > self.best_value if self.maximize else value < self.best_value
        if not math.isnan(value) and (math.isnan(self.best_value) or better):
            self.best_iteration, self.best_value = iteration, float(value)
        if self.best_iteration < 0 and len(self.history) >= self.patience:
            raise ValueError(f"{self.name} is NaN in every round so far: it cannot say when to stop")
        return self.best_iteration >= 0 and iteration - self.best_iteration >= self.patience

    def close(self) -> None:
        """Warn where every round was worse than the one before: a sign of the wrong direction."""
        values = self.history
        if len(values) < _TELLING or self.best_iteration != 0:
            return
        sign = -1.0 if self.maximize else 1.0
        if all(sign * (after - before) > 0 for before, after in pairwise(values)):
            warn(
                f"{self.name} got worse in every round from the first; is maximize={self.maximize} right?",
            )
