"""Callbacks: the chain's clock, and user callbacks that keep their manners inside CatBoost."""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from catboost import CatBoostError

from boostplugins._validation import check_integer
from boostplugins.early_stopping import BestRound

if TYPE_CHECKING:
    from boostplugins.catboost.state import TrainingState


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


class EarlyStopping(Callback):
    """Stop when a metric on held-out rows has not improved for a while.

    Unlike CatBoost's own detector it counts NaN as no improvement, refuses a metric that is NaN from
    the first, and does not cut the model back: a chain is read at its cycle ends.

    Parameters
    ----------
    rounds : int
        Iterations without improvement before training stops, >= 1.
    metric : str, optional
        Name of the metric; by default the only one.
    maximize : bool, optional
        Whether more is better; known for CatBoost's common metrics and for ``loss.metric()``.
    data : str, default="validation"
        Which rows to watch, as CatBoost names them.

    Attributes
    ----------
    watch : BestRound
        Best iteration and value so far, made before training.

    Examples
    --------
    >>> from boostplugins.catboost.callback import EarlyStopping
    >>> EarlyStopping(rounds=50, metric="RMSE").maximize
    False
    """

    def __init__(
        self, rounds: int, metric: str | None = None, maximize: bool | None = None, data: str = "validation"
    ) -> None:
        self.rounds = check_integer("rounds", rounds, 1)
        self.metric = metric
        self.maximize = _direction(metric) if maximize is None and metric is not None else maximize
        self.data = data
        self.before_training()

    def before_training(self) -> None:
        """Forget an earlier training."""
        self.watch: BestRound | None = None

    def after_iteration(self, info: Any) -> bool:
        """Look at the metric's last value.

        Parameters
        ----------
        info : object
            CatBoost's ``info``.

        Returns
        -------
        bool
            False to stop.

        Raises
        ------
        ValueError
            Where the rows or the metric are missing, its direction is not known, or it is NaN from
            the first.
        """
        held = info.metrics.get(self.data)
        if held is None:
            raise ValueError(
                f"early stopping watches {self.data!r}, got {sorted(info.metrics)}; pass eval_set"
            )
        name = next(iter(held)) if self.metric is None and len(held) == 1 else self.metric
        if name not in held:
            raise ValueError(f"metric must be one of {sorted(held)}, got {name!r}")
        if self.watch is None:
            maximize = _direction(str(name)) if self.maximize is None else self.maximize
            self.watch = BestRound(self.rounds, maximize, str(name))
        return not self.watch.update(held[name][-1])

    def after_training(self) -> None:
        """Warn where the direction looks wrong."""
        if self.watch is not None:
            self.watch.close()


_MORE_IS_BETTER = {"AUC", "Accuracy", "F1", "TotalF1", "Precision", "Recall", "R2", "MCC", "NDCG", "MAP"}
_LESS_IS_BETTER = {
    "RMSE",
    "MAE",
    "MAPE",
    "Logloss",
    "CrossEntropy",
    "MultiClass",
    "RMSEWithUncertainty",
    "MultiRMSE",
    "Poisson",
    "Quantile",
    "LogScore",
    "MultiLogScore",
}


def _direction(metric: str) -> bool:
    name = metric.split(":")[0]
    if name in _MORE_IS_BETTER or name in _LESS_IS_BETTER:
        return name in _MORE_IS_BETTER
    raise ValueError(f"the direction of metric {metric!r} is not known; pass maximize=True or maximize=False")


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
        self.keeps = False  # whether it knows of snapshots
        self.done = 0  # trees in the snapshot that the fit goes on from
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
        if state is None:
            raise RuntimeError(
                "the chain's clock runs, but its chain is not the loss: pass loss_function=loss to the model"
            )
        state.advance(info.iteration)
        return True

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_states": {}}

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


# CatBoost has one logger a process, which the first of two trainings at once takes away as it ends: the
# other one may then write to nothing, and end the process.
_ONE_AT_A_TIME = threading.RLock()


def _new_lock() -> None:
    """A child of a fork has no thread that could give the lock back."""
    global _ONE_AT_A_TIME
    _ONE_AT_A_TIME = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)


@contextmanager
def interruptible() -> Iterator[None]:
    """Train on CatBoost, one fit of a process at a time, and pass Ctrl-C on as what it is.

    CatBoost makes an error of its own of a Ctrl-C that met Python code which it was calling.

    Yields
    ------
    None
        Train within.

    Raises
    ------
    KeyboardInterrupt
        In place of the error that CatBoost makes of it.
    """
    try:
        with _ONE_AT_A_TIME:
            yield
    except CatBoostError as error:
        # Its errors carry along what an earlier one of the thread came from: the last one counts.
        last = str(error).rpartition("Traceback (most recent call last)")[2]
        if re.search("^KeyboardInterrupt", last, re.MULTILINE):
            raise KeyboardInterrupt from error
        raise


def _nothing() -> None:
    return None
