"""Growing trees level by level and training their leaves, in parallel without changing a bit."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from boostplugins.usnrt.network import History, Training
from boostplugins.usnrt.pair import MeanVariance, PairPlan, Sample, train_mean, train_pair
from boostplugins.usnrt.splits import Split, best_split
from boostplugins.usnrt.tree import Node, Tree, TreeModel
from boostplugins.usnrt.workers import Progress, Workers

logger = logging.getLogger(__name__)

_SPLIT_STREAM, _LEAF_STREAM, _CHECK_STREAM = 0, 1, 2  # what a stream of randomness is for


@dataclass(frozen=True)
class TreePlan:
    """How a tree grows.

    Parameters
    ----------
    hidden : tuple of int
        Hidden units of the splitting networks.
    least : int
        Rows that a node must have.
    alpha : float, default=0.01
        A node splits if the p-value is at most this.
    test : {"levene-adjusted", "levene"}, default="levene-adjusted"
        Which p-value; see `boostplugins.usnrt.splits.best_split`.
    """

    hidden: tuple[int, ...]
    least: int
    alpha: float = 0.01
    test: str = "levene-adjusted"


@dataclass(frozen=True)
class Problem:
    """What is fitted.

    Parameters
    ----------
    table : ndarray of shape (n_samples, n_features)
        What the tree sees.
    n_levels : ndarray of int of shape (n_features,)
        Levels of each column, 0 for numbers.
    sample : Sample
        What the networks see.
    held_out : ndarray of bool of shape (n_members, n_samples)
        Validation rows of each member.
    training : Training
        Epochs, batches, rates.
    seed : int
        Fixes all randomness.
    """

    table: np.ndarray
    n_levels: np.ndarray
    sample: Sample
    held_out: np.ndarray
    training: Training
    seed: int

    def part(self, member: int, rows: np.ndarray) -> tuple[Sample, np.ndarray, np.ndarray]:
        """Cut out some rows.

        Parameters
        ----------
        member : int
            Whose validation rows count.
        rows : ndarray of int
            Rows of a node.

        Returns
        -------
        Sample
            These rows.
        fit_rows, check_rows : ndarray of int
            Places in it for gradients and for early stopping; all where one would be empty.
        """
        sample = Sample(self.sample.inputs[rows], self.sample.target[rows], self.sample.weight[rows])
        check = self.held_out[member, rows]
        if check.all() or not check.any():
            return sample, np.arange(len(rows)), np.arange(len(rows))
        return sample, np.flatnonzero(~check), np.flatnonzero(check)

    def rng(self, member: int, node: int, stream: int) -> np.random.Generator:
        """Make the generator of one task.

        Parameters
        ----------
        member, node : int
            Whose task.
        stream : int
            Which one.

        Returns
        -------
        Generator
            Independent of all others and of the order of tasks.
        """
        return np.random.default_rng([self.seed, member, node, stream])


def hold_out(n: int, fraction: float, members: int, seed: int) -> np.ndarray:
    """Choose validation rows, at least one and not all where there are two rows.

    Parameters
    ----------
    n : int
        Rows.
    fraction : float
        Share held out.
    members : int
        Choices to make.
    seed : int
        Seed.

    Returns
    -------
    ndarray of bool of shape (members, n)
        True for rows held out.
    """
    count = min(max(1, round(fraction * n)), n - 1)
    held_out = np.zeros((members, n), dtype=bool)
    for member in range(members):
        rng = np.random.default_rng([seed, member, 0, _CHECK_STREAM])
        held_out[member, rng.permutation(n)[:count]] = True
    return held_out


def fit_trees(
    problem: Problem,
    tree_plan: TreePlan | None,
    pair_plan: PairPlan,
    n_jobs: int | None = None,
    callback: Callable[[Progress], object] | None = None,
) -> tuple[list[TreeModel], list[tuple[History, ...]]]:
    """Grow the members' trees and train the pairs of their leaves.

    Parameters
    ----------
    problem : Problem
        Rows and training.
    tree_plan : TreePlan or None
        How trees grow; None for a single leaf.
    pair_plan : PairPlan
        Networks of the leaves.
    n_jobs : int, optional
        Threads.
    callback : callable, optional
        Called after each epoch of each network.

    Returns
    -------
    list of TreeModel
        The members.
    list of tuple of History
        Of each leaf of each member, in order.
    """
    workers = Workers(n_jobs, callback)
    members, n = problem.held_out.shape
    if tree_plan is None:
        trees = [Tree.single(n) for _ in range(members)]
    else:
        trees = _grow(problem, tree_plan, workers)
    tasks = []
    for member, tree in enumerate(trees):
        tasks += [(member, *leaf) for leaf in tree.leaf_rows(problem.table, problem.n_levels)]

    def train_leaf(
        member: int, place: int, rows: np.ndarray
    ) -> tuple[MeanVariance, tuple[History, ...], float]:
        sample, fit_rows, check_rows = problem.part(member, rows)
        rng = problem.rng(member, place, _LEAF_STREAM)
        watch = partial(workers.watch, member, place)
        pair, histories = train_pair(pair_plan, sample, fit_rows, check_rows, problem.training, rng, watch)
        logger.info(
            "member %d leaf %d: %d rows, %d epochs",
            member,
            place,
            len(rows),
            sum(len(h.loss) for h in histories),
        )
        residual = sample.target - pair.predict(sample.inputs)[0]
        return pair, histories, float(np.mean(residual**2))

    results = workers.run(train_leaf, tasks)
    models = []
    for member, tree in enumerate(trees):
        mine = [result for task, result in zip(tasks, results) if task[0] == member]
        variance = tree.residual_variance.copy()
        variance[tree.leaves] = [result[2] for result in mine]
        models.append(
            TreeModel(replace(tree, residual_variance=variance), tuple(result[0] for result in mine))
        )
    return models, [result[1] for result in results]


def _grow(problem: Problem, plan: TreePlan, workers: Workers) -> list[Tree]:
    members, n = problem.held_out.shape
    nodes = [[Node(n)] for _ in range(members)]
    level = [(member, 0, np.arange(n)) for member in range(members)]

    def examine(member: int, place: int, rows: np.ndarray) -> tuple[Split | None, float]:
        return _examine(problem, plan, workers, member, place, rows)

    while level:
        below = []
        for (member, place, rows), (best, variance) in zip(level, workers.run(examine, level)):
            node = nodes[member][place]
            node.best, node.residual_variance = best, variance
            if best is None or not best.log_p <= math.log(plan.alpha):
                continue
            left = best.goes_left(problem.table[rows, best.feature])
            for side, part in (("left", rows[left]), ("right", rows[~left])):
                setattr(node, side, len(nodes[member]))
                below.append((member, len(nodes[member]), part))
                nodes[member].append(Node(len(part)))
        level = below
    most_levels = int(problem.n_levels.max(initial=0))
    return [Tree.build(mine, most_levels) for mine in nodes]


def _examine(
    problem: Problem, plan: TreePlan, workers: Workers, member: int, place: int, rows: np.ndarray
) -> tuple[Split | None, float]:
    """Train the splitting network of a node and look for the split of its residuals."""
    if len(rows) < 2 * plan.least or len(rows) < 4:
        return None, math.nan
    sample, fit_rows, check_rows = problem.part(member, rows)
    rng = problem.rng(member, place, _SPLIT_STREAM)
    watch = partial(workers.watch, member, place, "split")
    network = train_mean(plan.hidden, sample, fit_rows, check_rows, problem.training, rng, watch)
    residual = (sample.target - network.predict(sample.inputs)).astype(np.float64)
    best = best_split(problem.table[rows], problem.n_levels, residual, plan.least, plan.test)
    logger.info(
        "member %d node %d: %d rows, best split %s",
        member,
        place,
        len(rows),
        "none" if best is None else f"log p {best.log_p:.3g} on column {best.feature}",
    )
    return best, float(np.mean(residual**2))
