"""Callbacks: the chain's clock, and user callbacks that keep their manners inside CatBoost."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boostplugins.catboost.state import TrainingState


@dataclass(frozen=True)
class Progress:
    """What a `Callback` is told after an iteration.

    Attributes
    ----------
    iteration : int
        Iterations done, from 1.
    metrics : dict
        CatBoost's history: data set, metric name, list of values so far.
    elapsed : float
        Seconds since training began.
    """

    iteration: int
    metrics: dict[str, dict[str, list[float]]]
    elapsed: float


class Callback:
    """Base of user callbacks; override what you need.

    Returning None goes on; returning False stops the training. Pass callbacks to ``loss.fit`` or to
    an estimator: there exceptions keep their type.
    """

    def before_training(self) -> None:
        """Run once before the first iteration."""

    def after_iteration(self, info: Any) -> bool | None:
        """Run after each iteration.

        Parameters
        ----------
        info : object
            CatBoost's own ``info`` (``iteration``, ``metrics``).

        Returns
        -------
        bool or None
            False to stop.
        """
        return None

    def after_training(self) -> None:
        """Run once after the last iteration, also when training was stopped."""


class ChainCallback:
    """The chain's clock: tells the objective which iteration comes next.

    One object may serve several fits, also at the same time in several threads: CatBoost calls it in
    the thread that called ``fit``.

    Parameters
    ----------
    loss : CyclicalSGLB
        The chain whose fits this clock drives.
    """

    def __init__(self, loss: Any) -> None:
        self.loss = loss
        self._states: dict[int, weakref.ref[TrainingState]] = {}

    def attach(self, state: TrainingState) -> None:
        """Take charge of the fit that this thread is starting.

        Parameters
        ----------
        state : TrainingState
            State of the fit.
        """
        self._states[threading.get_ident()] = weakref.ref(state)

    def after_iteration(self, info: Any) -> bool:
        """Move the clock on.

        Parameters
        ----------
        info : object
            CatBoost's ``info``; ``info.iteration`` trees are finished.

        Returns
        -------
        bool
            True: go on.
        """
        reference = self._states.get(threading.get_ident())
        state = None if reference is None else reference()
        if state is not None:
            state.advance(info.iteration)
        return True

    def __getstate__(self) -> dict[str, Any]:
        return {"loss": self.loss, "_states": {}}

    def __deepcopy__(self, memo: dict[int, Any]) -> ChainCallback:
        return type(self)(self.loss)


@dataclass
class GuardedCallbacks:
    """Run user callbacks for CatBoost: None goes on, exceptions are kept for the caller.

    CatBoost turns every exception of a callback into its own error and stops at None. This wrapper
    stops the training instead, and `reraise` raises the original afterwards.

    Attributes
    ----------
    callbacks : sequence
        User callbacks.
    error : BaseException or None
        What one of them raised.
    stopped_by : object
        The callback that stopped the training, or None.
    """

    callbacks: Sequence[Any]
    error: BaseException | None = None
    stopped_by: Any = None
    started: float = field(default_factory=time.perf_counter)

    def before_training(self) -> None:
        """Call the hooks before training."""
        for callback in self.callbacks:
            getattr(callback, "before_training", _nothing)()

    def after_training(self) -> None:
        """Call the hooks after training."""
        for callback in self.callbacks:
            getattr(callback, "after_training", _nothing)()

    def after_iteration(self, info: Any) -> bool:
        """Call each callback.

        Parameters
        ----------
        info : object
            CatBoost's ``info``.

        Returns
        -------
        bool
            False to stop.
        """
        for callback in self.callbacks:
            try:
                answer = callback.after_iteration(info)
            except BaseException as error:
                self.error, self.stopped_by = error, callback
                return False
            if answer is not None and not answer:
                self.stopped_by = callback
                return False
        return True

    def reraise(self) -> None:
        """Raise what a callback raised, with its traceback."""
        if self.error is not None:
            raise self.error


def _nothing() -> None:
    return None
