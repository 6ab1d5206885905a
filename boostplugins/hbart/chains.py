"""Chains: their start, and running them side by side in rounds that can be interrupted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from boostplugins.hbart.forest import Forest, Rows, new_scratch
from boostplugins.hbart.log_linear import LogLinear
from boostplugins.hbart.posterior import Pieces, Posterior, trim
from boostplugins.hbart.priors import Hyperparameters
from boostplugins.hbart.sampler import Chain, new_record, refresh_rows, run
from boostplugins.hbart.trees import Rules, new_trees

_REFRESH_EVERY = 64  # iterations; rounds end there, so that their length changes no bit
_ROUND_SECONDS = 0.25  # aim of a round: how long an interruption waits
_BLOCK_ROWS = 100_000  # rows in double precision at a time
_SECONDS_PER_ROW_AND_TREE = 3e-9
_SECONDS_PER_TREE = 2e-6
# Nodes that a round's record makes room for: NumPy asks for huge pages from 4 MB on, and a few nodes
# would then take up 2 MB.
_RECORD_NODES = 400_000


class Problem(NamedTuple):
    """Scaled data that all chains share."""

    codes: np.ndarray  # (p, n)
    rules: Rules
    target: np.ndarray  # float64 (n,): scaled responses; a probit's start at 0
    sign: np.ndarray  # float64 (n,): classes of a probit; else empty
    weight: np.ndarray  # float64 (n,): observation weights of mean 1
    z: np.ndarray  # float64 (n, k): standardised variance covariates
    lam: float
    sigma2: float  # start
    offset: float
    spread: float = 0.5  # rough upper guess of the standard deviation of f, for drawn leaf variances
    indicators: np.ndarray = np.array(False)  # bool (k,) or (): variance covariates that are a level's


@dataclass
class Run:
    """A chain with its source of randomness and the draws kept so far.

    Attributes
    ----------
    chain : Chain
        Data, priors, state.
    rng : Generator
        Its own source of randomness.
    pieces : Pieces
        Draws kept.
    changed, current : tuple of ndarray
        What the records need from one round to the next, for the mean and the variance forest.
    """

    chain: Chain
    rng: np.random.Generator
    pieces: Pieces
    changed: tuple[np.ndarray, np.ndarray]
    current: tuple[np.ndarray, np.ndarray]


def start_run(
    problem: Problem, hyper: Hyperparameters, rng: np.random.Generator, informed: bool = True
) -> Run:
    """Start a chain at stumps of value 0, gamma at its prior mean.

    Parameters
    ----------
    problem : Problem
        Data.
    hyper : Hyperparameters
        Prior.
    rng : Generator
        The chain's own source of randomness.
    informed : bool, default=True
        False makes the rows count for nothing: the chain then draws from the prior (among trees
        whose leaves hold `min_leaf` rows).

    Returns
    -------
    Run
        Chain before its first iteration.
    """
    n, k = problem.z.shape
    given = problem.weight.astype(np.float32) * np.float32(1.0 if informed else 0.0)
    weighted = not informed or k > 0 or hyper.n_variance_trees > 0 or bool((given != 1.0).any())
    rows = Rows(
        problem.codes,
        problem.target.astype(np.float32),
        given.copy(),
        np.empty(n, dtype=np.float32),
        np.zeros(n, dtype=np.uint8),
        weighted,
    )
    mean, variance = (
        Forest(new_trees(m, n, hyper.max_nodes, value), problem.rules, prior, rows, new_scratch())
        for m, value, prior in (
            (hyper.n_trees, 0.0, hyper.mean_prior(informed, problem.spread)),
            (hyper.n_variance_trees, 1.0, hyper.variance_prior(informed)),
        )
    )
    chain = Chain(
        mean,
        variance,
        _start_linear(problem, given, hyper, informed),
        problem.target.copy(),
        problem.sign,
        np.array([problem.sigma2]),
        np.zeros(1, dtype=np.int64),
        float(hyper.nu),
        float(problem.lam),
        float(problem.offset),
    )
    sizes = (hyper.n_trees, hyper.n_variance_trees)
    changed = (np.ones(sizes[0], dtype=np.bool_), np.ones(sizes[1], dtype=np.bool_))
    current = (np.full(sizes[0], -1, dtype=np.int64), np.full(sizes[1], -1, dtype=np.int64))
    return Run(chain, rng, Pieces(), changed, current)


def _start_linear(problem: Problem, given: np.ndarray, hyper: Hyperparameters, informed: bool) -> LogLinear:
    z = problem.z
    k = z.shape[1]
    tight = np.full(k, 1.0 / hyper.gamma_var)
    tight[np.broadcast_to(problem.indicators, k)] = 1.0 / min(hyper.gamma_var, hyper.indicator_var)
    zt = np.ascontiguousarray(z.T if informed else np.zeros_like(z.T), dtype=np.float32)
    information = np.diag(tight)
    for first in range(0, len(z), _BLOCK_ROWS):  # no second copy of all rows
        block = zt[:, first : first + _BLOCK_ROWS].astype(np.float64)
        information += 0.5 * block @ block.T
    gamma = np.full(k, float(hyper.gamma_mean))
    linear = LogLinear(
        zt,
        zt.sum(axis=1, dtype=np.float64),
        given,
        gamma.copy(),
        tight,
        np.linalg.cholesky(information) if k else np.empty((0, 0)),
        gamma,
        gamma.copy(),
        bool(hyper.gamerman),
        bool(hyper.slices),
        np.zeros(2, dtype=np.int64),
    )
    return linear


def advance(run_: Run, n_steps: int, keep: bool) -> None:
    """Run a chain for some iterations.

    Parameters
    ----------
    run_ : Run
        Chain, changed in place.
    n_steps : int
        Iterations.
    keep : bool
        Whether every iteration is kept as a draw.
    """
    chain = run_.chain
    while n_steps > 0:
        part = min(n_steps, _REFRESH_EVERY - int(chain.clock[0]) % _REFRESH_EVERY)
        scalars = np.empty((part if keep else 0, 2 + len(chain.linear.gamma)))
        changed = [flags.copy() for flags in run_.changed]
        current = [numbers.copy() for numbers in run_.current]
        # Should an interruption lose this part, the next one stores every structure afresh.
        for flags in run_.changed:
            flags[:] = True
        records = [
            new_record(part if keep else 0, len(forest.trees.top), forest.trees.var.shape[1], *notes)
            for forest, *notes in zip((chain.mean, chain.variance), changed, current)
        ]
        run(run_.rng, chain, part, keep, *records, scalars)
        if keep:
            run_.pieces.add(trim(records[0], part), trim(records[1], part), scalars)
        run_.changed, run_.current = (changed[0], changed[1]), (current[0], current[1])
        if int(chain.clock[0]) % _REFRESH_EVERY == 0:
            refresh_rows(chain)
        n_steps -= part


def round_length(run_: Run) -> int:
    """Iterations of about a quarter of a second, whose record fits in memory.

    Parameters
    ----------
    run_ : Run
        Chain.

    Returns
    -------
    int
        Iterations, at least 1.
    """
    trees = len(run_.chain.mean.trees.top) + len(run_.chain.variance.trees.top)
    seconds = trees * (_SECONDS_PER_TREE + _SECONDS_PER_ROW_AND_TREE * len(run_.chain.target))
    room = _RECORD_NODES // (trees * run_.chain.mean.trees.var.shape[1])
    return max(1, min(int(_ROUND_SECONDS / seconds), room))


def run_rounds(
    runs: Sequence[Run],
    n_steps: int,
    keep: bool,
    n_jobs: int,
    progress: Callable[[int], None] | None = None,
    longest: int | None = None,
) -> None:
    """Run chains in rounds, so that they keep level and an interruption loses one round at most.

    Parameters
    ----------
    runs : sequence of Run
        Chains, changed in place.
    n_steps : int
        Iterations of each.
    keep : bool
        Whether the iterations are kept as draws.
    n_jobs : int
        Threads; draws do not depend on it.
    progress : callable, optional
        Told the iterations done after each round.
    longest : int, optional
        Most iterations of a round.
    """
    length = min(round_length(runs[0]), longest or n_steps or 1)
    done = 0
    pool = ThreadPoolExecutor(n_jobs) if min(n_jobs, len(runs)) > 1 else None
    try:
        while done < n_steps:
            part = min(length, n_steps - done)
            if pool is None:
                for run_ in runs:
                    advance(run_, part, keep)
            else:
                list(pool.map(lambda run_: advance(run_, part, keep), runs))  # noqa: B023
            done += part
            if progress is not None:
                progress(done)
    finally:
        if pool is not None:
            pool.shutdown(wait=True)


def collect(runs: Sequence[Run]) -> Posterior:
    """Join the chains' draws; chains interrupted in mid-round are cut to the shortest.

    Parameters
    ----------
    runs : sequence of Run
        Chains.

    Returns
    -------
    Posterior
        Draws ordered by chain, then by draw.
    """
    return Posterior.join([run_.pieces for run_ in runs])


def show_progress(name: str, start: int, total: int, unit: str = "iteration") -> Callable[[int], None]:
    """Make a progress line on the standard error stream.

    Parameters
    ----------
    name : str
        What runs.
    start : int
        Iterations done before.
    total : int
        Iterations in all.
    unit : str, default="iteration"
        What is counted.

    Returns
    -------
    callable
        To be told the iterations done since `start`.
    """

    def show(done: int) -> None:
        end = "\n" if start + done >= total else ""
        sys.stderr.write(f"\r{name}: {unit} {start + done} of {total}{end}")
        sys.stderr.flush()

    return show
