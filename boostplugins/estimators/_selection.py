"""Choice of a family by cross-validated log score."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from boostplugins.families import Family, get_family
from boostplugins.predictive import Predictive

_COUNTS = ("poisson", "negative_binomial", "ZIP", "ZINBI", "normal", "student_t")
_COUNTS_WITHOUT_ZERO = ("poisson", "negative_binomial", "gamma", "lognormal", "normal", "student_t")
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
        Families of counts, and continuous ones beside them, for whole numbers >= 0; families of
        proportions within (0, 1), of positive responses, of responses >= 0 with zeros, or of real ones.
    """
    if whole_numbers(y):
        names: tuple[str, ...] = _COUNTS_WITHOUT_ZERO if (y > 0).all() else _COUNTS
    elif ((y > 0) & (y < 1)).all():
        names = _UNIT
    elif (y > 0).all():
        names = _POSITIVE
    elif (y >= 0).all():
        names = _WITH_ZEROS
    else:
        names = _REAL
    return [get_family(name) for name in names]


def whole_numbers(y: np.ndarray) -> bool:
    """Say whether responses are whole numbers >= 0.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Responses.

    Returns
    -------
    bool
        True for counts and for what was rounded to them.
    """
    return bool((y >= 0).all() and (np.floor(y) == y).all())


def comparable_log_score(dist: Predictive, y: np.ndarray, whole: bool) -> np.ndarray:
    """Log score by which families of counts and continuous ones can be compared.

    A density is no probability: of whole numbers a continuous family is asked for the probability of
    all that is rounded to them, the interval of width one about the response.

    Parameters
    ----------
    dist : Predictive
        Predictions.
    y : ndarray of shape (n_samples,)
        Responses.
    whole : bool
        Whether all responses are whole numbers.

    Returns
    -------
    ndarray of shape (n_samples,)
        Log densities or log probabilities.
    """
    if dist.family.discrete or not whole:
        return dist.log_pdf(y)
    low, high = y - 0.5, y + 0.5
    if dist.family.support.low == 0.0:
        low = np.where(y <= 0.5, 0.0, low)
    family, theta = dist.family, dist.theta
    left, right = family.cdf(low, theta), family.sf(high, theta)
    mass = np.where(left > 0.5, family.sf(low, theta) - right, family.cdf(high, theta) - left)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(mass, 0.0))


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
    for part in np.array_split(_shuffled(n, seed), count):
        yield _without(part, n), np.sort(part)


def split(n: int, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Cut rows once; of one in k rows the first of k folds is held out.

    Parameters
    ----------
    n : int
        Rows, at least 2.
    fraction : float
        Share of rows to hold out, in (0, 1), rounded up to whole rows; one row at least is used.
    seed : int
        Seed of the shuffle.

    Returns
    -------
    tuple of ndarray
        Rows used and rows held out, both sorted.
    """
    held = min(max(math.ceil(fraction * n - 1e-9), 1), n - 1)
    part = _shuffled(n, seed)[:held]
    return _without(part, n), np.sort(part)


def _shuffled(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(n)


def _without(part: np.ndarray, n: int) -> np.ndarray:
    return np.setdiff1d(np.arange(n), part)


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
