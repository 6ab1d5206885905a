"""Boosting of small soft trees on a family's score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from boostplugins.families import Family
from boostplugins.soft_trees.objective import Penalty
from boostplugins.soft_trees.tree import SoftTree
from boostplugins.soft_trees.working import working_tree

_HALVINGS = 10
# Longest step of one round in log or logit units: a scoring step far from the optimum may overshoot.
_LONGEST = 3.0


@dataclass(frozen=True)
class BoostingPlan:
    """How to boost.

    Parameters
    ----------
    n_estimators : int
        Most rounds.
    learning_rate : float
        Share of each tree that is added.
    max_leaves : int
        Leaves of a tree.
    penalty : Penalty
        Ridge penalties of a tree.
    subsample : float
        Share of rows that each round sees.
    patience : int
        Rounds without a better validation score before boosting stops.
    seed : int
        Of the subsamples.

    Examples
    --------
    >>> from boostplugins.soft_trees.boosting import BoostingPlan
    >>> from boostplugins.soft_trees.objective import Penalty
    >>> BoostingPlan(10, 0.1, 4, Penalty(0.1, 0.1)).patience
    20
    """

    n_estimators: int
    learning_rate: float
    max_leaves: int
    penalty: Penalty
    subsample: float = 1.0
    patience: int = 20
    seed: int = 0


@dataclass(frozen=True)
class Boosted:
    """What boosting found.

    Parameters
    ----------
    start : ndarray of shape (K,)
        Constant raw scores.
    rounds : tuple of tuple of SoftTree
        A tree a parameter and round; the learning rate is within their coefficients.
    training, validation : ndarray
        Mean log scores after each round, the constant's first; validation is empty without held-out
        rows. Rounds after the best one are in them, but not in `rounds`.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.soft_trees.boosting import Boosted
    >>> Boosted(np.array([1.0]), (), np.empty(0), np.empty(0)).raw(np.zeros((2, 1)))
    array([[1.],
           [1.]])
    """

    start: np.ndarray
    rounds: tuple[tuple[SoftTree, ...], ...]
    training: np.ndarray
    validation: np.ndarray

    def raw(self, x: np.ndarray, n_rounds: int | None = None) -> np.ndarray:
        """Raw scores.

        Parameters
        ----------
        x : ndarray of shape (n_samples, n_columns)
            Standardised features.
        n_rounds : int, optional
            Rounds to add up; all by default.

        Returns
        -------
        ndarray of shape (n_samples, K)
            Scores.
        """
        raw = np.tile(self.start, (len(x), 1))
        for trees in self.rounds[:n_rounds]:
            for k, tree in enumerate(trees):
                raw[:, k] += tree.value(x)
        return raw


def boost(
    family: Family,
    x: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    plan: BoostingPlan,
    held_out: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    report: Callable[[str], None] | None = None,
) -> Boosted:
    """Add up small soft trees, each fitted to the score of the family by its information.

    Parameters
    ----------
    family : Family
        Distribution of the response.
    x : ndarray of shape (n_samples, n_columns)
        Standardised features.
    y, weight : ndarray of shape (n_samples,)
        Responses and weights.
    plan : BoostingPlan
        How to boost.
    held_out : tuple of (x, y, weight), optional
        Rows that choose the number of rounds.
    report : callable, optional
        Called with a line of text after each round.

    Returns
    -------
    Boosted
        The trees. A round whose step lowers the training likelihood is halved until it does not.
    """
    start = family.init(y, weight)
    raw = np.tile(start, (len(y), 1))
    held_raw = None if held_out is None else np.tile(start, (len(held_out[1]), 1))
    training, validation = [_mean_score(family, y, weight, raw)], []
    if held_out is not None and held_raw is not None:
        validation.append(_mean_score(family, held_out[1], held_out[2], held_raw))
    rounds: list[tuple[SoftTree, ...]] = []
    best = 0
    for number in range(plan.n_estimators):
        with threadpool_limits(1, user_api="blas"):
            trees = _round(family, x, y, weight, raw, plan, number)
        values = np.stack([tree.value(x) for tree in trees], axis=1)
        scale, reached = _line_search(family, y, weight, raw, values, plan.learning_rate, training[-1])
        if scale == 0.0:
            break
        trees = tuple(SoftTree(t.node, t.intercept, t.omega, scale * t.beta) for t in trees)
        raw += scale * values
        rounds.append(trees)
        training.append(reached)
        line = f"round {number + 1}: training {reached:.5f}"
        if held_out is not None and held_raw is not None:
            for k, tree in enumerate(trees):
                held_raw[:, k] += tree.value(held_out[0])
            validation.append(_mean_score(family, held_out[1], held_out[2], held_raw))
            line += f", validation {validation[-1]:.5f}"
        if report is not None:
            report(line)
        if held_out is None:
            best = len(rounds)
            continue
        if validation[-1] > validation[best]:
            best = len(rounds)
        elif len(rounds) - best >= plan.patience:
            break
    return Boosted(start, tuple(rounds[:best]), np.array(training), np.array(validation))


def _round(
    family: Family,
    x: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    raw: np.ndarray,
    plan: BoostingPlan,
    number: int,
) -> tuple[SoftTree, ...]:
    rows: np.ndarray | slice = slice(None)
    if plan.subsample < 1.0:
        rng = np.random.default_rng((plan.seed, number))
        rows = np.sort(rng.permutation(len(y))[: max(1, round(plan.subsample * len(y)))])
    with np.errstate(all="ignore"):
        score, fisher = family.score_and_fisher(y[rows], raw[rows])
    few = x[rows]
    share = weight[rows]
    trees = []
    for k in range(raw.shape[1]):
        u = np.ascontiguousarray(np.nan_to_num(score[:, k])) * share
        w = np.ascontiguousarray(fisher[:, k]) * share
        trees.append(working_tree(few, u, w, plan.max_leaves, plan.penalty))
    return tuple(trees)


def _line_search(
    family: Family,
    y: np.ndarray,
    weight: np.ndarray,
    raw: np.ndarray,
    values: np.ndarray,
    rate: float,
    before: float,
) -> tuple[float, float]:
    location = set(family.locations)
    logs = [k for k in range(raw.shape[1]) if k not in location]
    longest = float(np.abs(values[:, logs]).max()) if logs else 0.0
    scale = min(rate, _LONGEST / longest) if longest > 0 else rate
    for _ in range(_HALVINGS):
        reached = _mean_score(family, y, weight, raw + scale * values)
        if reached >= before:
            return scale, reached
        scale *= 0.5
    return 0.0, before


def _mean_score(family: Family, y: np.ndarray, weight: np.ndarray, raw: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        total = float(weight @ family.log_pdf(y, family.theta(raw)) / weight.sum())
    return total if total == total else -np.inf
