"""User callbacks in LightGBM's training loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lightgbm import EarlyStopException


@dataclass(frozen=True)
class Progress:
    """What ``after_iteration`` is told.

    Attributes
    ----------
    iteration : int
        Iterations done, from 1.
    metrics : dict
        History: data set, metric name, list of values so far.
    elapsed : float
        Seconds since training began.
    """

    iteration: int
    metrics: dict[str, dict[str, list[float]]]
    elapsed: float


class UserCallbacks:
    """Callbacks of either kind, in the order given.

    LightGBM's own are functions of an environment. Others have ``after_iteration(info)``, which
    returns None to go on and False to stop, and may have ``before_training`` and ``after_training``.
    Exceptions of either reach the caller as they are.

    Parameters
    ----------
    callbacks : sequence
        User callbacks.
    """

    def __init__(self, callbacks: Sequence[Any]) -> None:
        self._callbacks = tuple(callbacks)
        self._metrics: dict[str, dict[str, list[float]]] = {}
        for callback in self._callbacks:
            if not (callable(callback) or hasattr(callback, "after_iteration")):
                raise TypeError(
                    f"callbacks must be LightGBM callbacks or have after_iteration(info), got {callback!r}"
                )

    def before_training(self) -> None:
        """Call the hooks before training."""
        self._started = time.perf_counter()
        for callback in self._callbacks:
            getattr(callback, "before_training", _nothing)()

    def after_training(self) -> None:
        """Call the hooks after training."""
        for callback in self._callbacks:
            getattr(callback, "after_training", _nothing)()

    def for_lightgbm(self) -> list[Callable[[Any], None]]:
        """Give callbacks for ``lgb.train``.

        Returns
        -------
        list of callable
            Functions of LightGBM's environment.
        """
        own = [callback for callback in self._callbacks if not hasattr(callback, "after_iteration")]
        return [*own, self._after_iteration] if len(own) < len(self._callbacks) else own

    @property
    def _after_iteration(self) -> Callable[[Any], None]:
        def call(env: Any) -> None:
            for result in env.evaluation_result_list or ():
                history = self._metrics.setdefault(result[0], {})
                history.setdefault(result[1], []).append(result[2])
            done = Progress(env.iteration + 1, self._metrics, time.perf_counter() - self._started)
            for callback in self._callbacks:
                if not hasattr(callback, "after_iteration"):
                    continue
                answer = callback.after_iteration(done)
                if answer is not None and not answer:
                    raise EarlyStopException(env.iteration, env.evaluation_result_list or [])

        return call


def _nothing() -> None:
    return None
