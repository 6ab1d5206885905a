"""State of one fit: the clock, and what one iteration of the chain needs of every row."""

from __future__ import annotations

import math
import threading
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from boostplugins.losses import Loss
from boostplugins.masks import RowMask, rows_of
from boostplugins.noise import Stream, normals
from boostplugins.schedules import GradientSchedule, scale_of

if TYPE_CHECKING:
    from boostplugins.catboost.objective import RowsInBlocks
    from boostplugins.priors import FittedPrior

_EMPTY = np.empty(0)
_NO_MASK = np.empty(0, dtype=np.bool_)


@dataclass
class TrainingState:
    """What changes while a chain is trained; made anew for each fit.

    Attributes
    ----------
    loss : Loss
        Loss without open settings.
    schedule : GradientSchedule
        Gradient schedule.
    mask : RowMask
        Row mask.
    noise_size : float
        Standard deviation sqrt(2 / (eps tau)) of the noise of a row, 0 for none.
    structure_noise : float
        Factor of the noise that the choice of splits sees.
    shrink_to_start : float
        Shrink rate gamma where the model is shrunk to its start, 0 where to zero: gamma times the
        start is added to every row's direction, which gives back what shrinkage takes from it.
    seed : int
        Seed of the noise.
    n_rows : int
        Training rows.
    structure_rows : int
        Rows asked for before a tree's splits are chosen.
    learning_rate : float
        Step eps.
    prior : FittedPrior or None
        Random function added to the raw scores.
    X : ndarray or None
        Training features for the prior.
    with_start : bool
        Whether the first tree holds the loss's start (not with a baseline).
    objective : weakref to RowsInBlocks, or None
        Objective that wants to be prepared for each iteration.
    """

    loss: Loss
    schedule: GradientSchedule
    mask: RowMask
    noise_size: float
    seed: int
    n_rows: int
    structure_rows: int
    learning_rate: float
    prior: FittedPrior | None = None
    X: np.ndarray | None = None
    with_start: bool = True
    structure_noise: float = 1.0
    shrink_to_start: float = 0.0
    objective: weakref.ref[RowsInBlocks] | None = None
    iteration: int = 0
    seen: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.alpha = scale_of(self.schedule, 0)
        rows_of(self.mask, self.schedule.cycle(0), self.n_rows)  # errors before any training
        self.pull = np.zeros(self.loss.n_outputs)
        self.sigma = float(self.loss.noise_scale(np.zeros((1, self.loss.n_outputs)))[0, 0])
        self.kept = _NO_MASK
        self.offset: np.ndarray = _EMPTY
        self._cycle = -1
        self._noise: dict[tuple[int, int], np.ndarray] = {}

    def advance(self, iteration: int) -> None:
        """Start an iteration: scale, mask, prior and noise of every row.

        Parameters
        ----------
        iteration : int
            Iterations finished, the number of the one that starts.
        """
        self.iteration, self.seen = iteration, 0
        self.alpha = scale_of(self.schedule, iteration)
        cycle = self.schedule.cycle(iteration)
        if cycle != self._cycle:
            self._mask_of_cycle = rows_of(self.mask, cycle, self.n_rows)
            if self.prior is not None and self.X is not None:
                values = self.prior.values(cycle, self.X, self.loss.n_outputs)
                self.offset = np.ascontiguousarray(values.T)
            self._cycle = cycle
        exploring = self.schedule.exploring(iteration) and self._mask_of_cycle is not None
        self.kept = self._mask_of_cycle if exploring else _NO_MASK  # type: ignore[assignment]
        self._noise = {}
        objective = None if self.objective is None else self.objective()
        if objective is not None:
            objective.prepare()

    def size(self, stage: int) -> float:
        """Standard deviation of a row's noise in one pass.

        Parameters
        ----------
        stage : int
            `Stream.STRUCTURE` or `Stream.LEAVES`.

        Returns
        -------
        float
            Size, before the loss's own noise scale.
        """
        return self.noise_size * (self.structure_noise if stage == Stream.STRUCTURE else 1.0)

    def noise(self, stage: int, output: int = 0) -> np.ndarray:
        """Noise of every row in one pass of the iteration, of unit size.

        Parameters
        ----------
        stage : int
            `Stream.STRUCTURE` or `Stream.LEAVES`.
        output : int, default=0
            Number of the raw score.

        Returns
        -------
        ndarray of shape (n_rows,)
            Standard normals; empty where the chain has no noise.
        """
        if self.noise_size == 0:
            return _EMPTY
        key = (int(stage), output)
        if key not in self._noise:
            self._noise[key] = normals(self.seed, self.iteration, stage, self.n_rows, output=output)
        return self._noise[key]

    def begin(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Settle the start of the chain.

        Parameters
        ----------
        y : ndarray of shape (n_rows,)
            Responses.
        weight : ndarray of shape (n_rows,) or None
            Weights.

        Returns
        -------
        ndarray of shape (n_outputs,)
            Best constant raw scores; zeros where a baseline stands in.
        """
        self.loss.check_labels(y)
        start = self.loss.start(y, weight) if self.with_start else np.zeros(self.loss.n_outputs)
        self.pull = self.shrink_to_start * start
        return start

    def take_rows(self, count: int) -> int:
        """Count rows as they are asked for.

        Parameters
        ----------
        count : int
            Rows of this call.

        Returns
        -------
        int
            Stage of the call: structure first, then leaves.
        """
        with self.lock:
            stage = Stream.STRUCTURE if self.seen < self.structure_rows else Stream.LEAVES
            self.seen += count
        return stage


def noise_size(learning_rate: float, temperature: float) -> float:
    r"""Standard deviation of the Langevin noise of a row.

    Parameters
    ----------
    learning_rate : float
        Step eps.
    temperature : float
        Inverse temperature tau: 1 is the posterior, larger is colder, infinite is plain boosting.

    Returns
    -------
    float
        :math:`\sqrt{2 / (\epsilon \tau)}`.

    Examples
    --------
    >>> from boostplugins.catboost.state import noise_size
    >>> noise_size(learning_rate=0.5, temperature=1.0)
    2.0
    """
    return math.sqrt(2.0 / (learning_rate * temperature))
