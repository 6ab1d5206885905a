"""Choice of a family by cross-validated log score."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from boostplugins.families import Family, get_family

_COUNTS = ("poisson", "negative_binomial", "ZIP", "ZINBI")
_UNIT = ("beta", "normal", "logistic")
_WITH_ZEROS = ("tweedie", "ZAGA", "normal")
_POSITIVE = ("gamma", "lognormal", "weibull", "inverse_gaussian", "normal", "student_t")
_REAL = ("normal", "student_t", "laplace", "logistic", "gumbel", "jsu")
FOLDS = 3


def candidates(y: np.ndarray) -> list[Family]:
    """List families whose support holds the responses.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Responses.

    Returns
    -------
    list of Family
        Families of counts for whole numbers >= 0, of proportions within (0, 1), of positive
        responses, of responses >= 0 with zeros, or of real ones.
    """
    if (y >= 0).all() and (np.floor(y) == y).all():
        names: tuple[str, ...] = _COUNTS
    elif ((y > 0) & (y < 1)).all():
        names = _UNIT
    elif (y > 0).all():
        names = _POSITIVE
    elif (y >= 0).all():
        names = _WITH_ZEROS
    else:
        names = _REAL
    return [get_family(name) for name in names]


def folds(n: int, count: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Cut rows into folds.

    Parameters
    ----------
    n : int
        Rows.
    count : int
        Folds.
    seed : int
        Seed of the shuffle.

    Yields
    ------
    tuple of ndarray
        Rows used and rows held out, both sorted.
    """
    order = np.random.default_rng(seed).permutation(n)
    for part in np.array_split(order, count):
        used = np.ones(n, dtype=bool)
        used[part] = False
        yield np.flatnonzero(used), np.sort(part)


def select(
    y: np.ndarray,
    weight: np.ndarray | None,
    seed: int,
    held_out: Callable[[Family, np.ndarray, np.ndarray], np.ndarray],
) -> tuple[Family, dict[str, float]]:
    """Choose the family with the best cross-validated log score.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Responses.
    weight : ndarray of shape (n_samples,) or None
        Weights.
    seed : int
        Seed of the folds.
    held_out : callable
        ``held_out(family, used, held)``: log densities of held-out rows by a model of the others.

    Returns
    -------
    family : Family
        The best.
    scores : dict of str to float
        Mean log score of every candidate, best first.
    """
    found: dict[str, float] = {}
    by_name: dict[str, Family] = {}
    for family in candidates(y):
        name = repr(family)
        by_name[name] = family
        if len(y) < 2 * FOLDS:
            found[name] = 0.0  # too few rows to tell: the first candidate
            continue
        score = np.empty(len(y))
        for used, held in folds(len(y), FOLDS, seed):
            score[held] = held_out(family, used, held)
        # One impossible row must not decide: a log score of -100 is bad enough.
        found[name] = float(np.average(np.maximum(score, -100.0), weights=weight))
    scores = dict(sorted(found.items(), key=lambda item: -item[1]))
    return by_name[next(iter(scores))], scores
