"""Running the tasks of a fit in threads: one BLAS thread each, progress told, all stopped together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from threading import Event, Lock
from typing import Any, NamedTuple

from joblib import Parallel, delayed
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


class Progress(NamedTuple):
    """Where a fit is: what a callback is told after each epoch of each network.

    Attributes
    ----------
    member : int
        Number of the ensemble's member.
    node : int
        Node of its tree whose network is trained.
    network : str
        "split", "mean" or "variance".
    epoch : int
        Epochs done; 0 for the start.
    loss : float
        Validation loss now: squared error, or for "variance" ``log v + r^2 / v``; weighted, and on
        the scale of the standardised target.
    """

    member: int
    node: int
    network: str
    epoch: int
    loss: float


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    # Looking up the loaded libraries takes longer than predicting a row; scipy's BLAS, which the
    # kernels call, is loaded with this package.
    return ThreadpoolController().select(user_api="blas")


_lock = Lock()
_inside: list[Any] = []  # the limiter of the first of the calls now inside, once for each call


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS on one thread: its threads would outnumber cores, and might change a bit.

    The setting belongs to the process: the first of several threads inside makes it, the last one
    to leave restores it.

    Yields
    ------
    None
        Nothing.
    """
    with _lock:
        _inside.append(_inside[0] if _inside else _blas().limit(limits=1))
    try:
        yield
    finally:
        with _lock:
            limiter = _inside.pop()
            if not _inside:
                limiter.restore_original_limits()


class Stopped(Exception):
    """A task found that the fit was interrupted."""


class Workers:
    """Run tasks in threads, in order of results, and stop them together.

    Kernels release the GIL. Each network is one task on one thread (BLAS too), so that results do
    not depend on the number of threads.

    Parameters
    ----------
    n_jobs : int or None
        Threads, as joblib counts them.
    callback : callable, optional
        Called with a `Progress` after each epoch; what it raises ends the fit.
    """

    def __init__(self, n_jobs: int | None, callback: Callable[[Progress], object] | None = None) -> None:
        self._n_jobs = n_jobs
        self._callback = callback
        self._stop = Event()

    def run(self, function: Callable[..., Any], tasks: Iterable[Sequence[Any]]) -> list[Any]:
        """Call a function for each task.

        Parameters
        ----------
        function : callable
            What to call.
        tasks : iterable of sequence
            Arguments of each call.

        Returns
        -------
        list
            Results in the order of the tasks.
        """
        try:
            with one_blas_thread():
                parallel = Parallel(n_jobs=self._n_jobs, require="sharedmem")
                return list(parallel(delayed(function)(*task) for task in tasks))
        except BaseException:
            self._stop.set()  # threads already at work end before their next epoch
            raise

    def watch(self, member: int, node: int, network: str, epoch: int, loss: float) -> None:
        """Tell the callback where a network is; raise `Stopped` where the fit was interrupted.

        Parameters
        ----------
        member, node : int
            Whose network.
        network : str
            "split", "mean" or "variance".
        epoch : int
            Epochs done.
        loss : float
            Validation loss.
        """
        if self._stop.is_set():
            raise Stopped
        if self._callback is not None:
            self._callback(Progress(member, node, network, epoch, loss))
