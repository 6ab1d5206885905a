"""The split of a node whose two sides differ most in residual variance, and whether to believe it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from boostplugins.usnrt.levene import scan_cuts, scan_subsets

MAX_BIPARTITION_LEVELS = 10  # beyond, levels are put in order of their spread: 2**9 subsets are enough
SPLIT_TESTS = ("levene", "levene-adjusted")


@dataclass(frozen=True)
class Split:
    """A division of a node in two.

    Parameters
    ----------
    feature : int
        Column that divides.
    threshold : float
        Numbers at most this go left, infinity: all but missing ones; NaN for a categorical column.
    left_levels : ndarray of bool of shape (n_levels,)
        Levels that go left; empty for a numeric column.
    statistic : float
        Levene's t; negative where the left side is the quieter one.
    log_p : float
        Log of the p-value that decides.
    n_left, n_right : int
        Rows on either side.
    """

    feature: int
    threshold: float
    left_levels: np.ndarray
    statistic: float
    log_p: float
    n_left: int
    n_right: int

    def goes_left(self, column: np.ndarray) -> np.ndarray:
        """Say which rows go left.

        Parameters
        ----------
        column : ndarray of shape (n_samples,)
            Values of the feature; level numbers, negative for an unknown one, if categorical.

        Returns
        -------
        ndarray of bool of shape (n_samples,)
            True for left. A missing number goes right; an unknown level to the larger side.
        """
        if not len(self.left_levels):
            return column <= self.threshold
        known = (column >= 0) & (column < len(self.left_levels))
        level = np.where(known, column, 0).astype(np.intp)
        return np.where(known, self.left_levels[level], self.n_left >= self.n_right)


def best_split(
    table: np.ndarray,
    n_levels: Sequence[int] | np.ndarray,
    residual: np.ndarray,
    least: int,
    test: str = "levene-adjusted",
) -> Split | None:
    """Find the most significant split of a node.

    Parameters
    ----------
    table : ndarray of shape (n_samples, n_features)
        Numbers (NaN: missing) and level numbers of the node's rows.
    n_levels : sequence of int
        Levels of each column, 0 for numbers.
    residual : ndarray of shape (n_samples,)
        Residuals of the node's splitting network.
    least : int
        Rows that either side must have.
    test : {"levene-adjusted", "levene"}, default="levene-adjusted"
        "levene" takes the smallest of all p-values as it is (the paper's rule), which is no test of
        level alpha; "levene-adjusted" corrects it, see Notes.

    Returns
    -------
    Split or None
        The split of least p-value; None if no split leaves `least` rows on both sides.

    Notes
    -----
    The adjusted p-value is one of the greatest statistic. Over the cuts of one feature, the
    statistic follows a Brownian bridge over its standard deviation, whose maximum has the tail of
    Miller and Siegmund (1982); the bound by the number of cuts is taken where it is smaller, and
    for bipartitions. Features count by Bonferroni. A factor first puts right the statistic's scale
    for skewed residuals, where estimated means make mean-centred Levene reject too often.

    References
    ----------
    .. [1] Miller, Siegmund (1982), Maximally selected chi square statistics, Biometrics 38.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.usnrt.splits import best_split
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=(500, 1))
    >>> split = best_split(x, [0], rng.normal(size=500) * np.where(x[:, 0] < 0.4, 1, 3), least=50)
    >>> split.feature, round(split.threshold, 1), split.statistic < 0
    (0, 0.4, True)
    """
    n = len(residual)
    if n < 2 * least or n < 4:
        return None
    e = np.asarray(residual, dtype=np.float64)
    e = e - e.mean()
    size = np.sqrt(np.mean(e * e))
    if not size > 0:
        return None
    e = e / size
    factor = _skewness_factor(e) if test == "levene-adjusted" else 1.0
    rank_order = np.argsort(e, kind="stable")
    rank = np.empty(n, dtype=np.int64)
    rank[rank_order] = np.arange(n)
    found = [
        _scan_column(j, table[:, j], int(n_levels[j]), e, rank, e[rank_order], least, test, factor)
        for j in range(table.shape[1])
    ]
    candidates = [split for split in found if split is not None]
    if not candidates:
        return None
    # Probabilities may underflow together; then the larger statistic decides.
    best = min(candidates, key=lambda split: (split.log_p, -abs(split.statistic)))
    if test == "levene":
        return best
    log_p = min(0.0, best.log_p + math.log(len(candidates)))
    return Split(
        best.feature, best.threshold, best.left_levels, best.statistic, log_p, best.n_left, best.n_right
    )


def _scan_column(
    feature: int,
    column: np.ndarray,
    n_levels: int,
    e: np.ndarray,
    rank: np.ndarray,
    ordered: np.ndarray,
    least: int,
    test: str,
    factor: float,
) -> Split | None:
    n = len(e)
    none = np.zeros(0, dtype=bool)
    codes = column.astype(np.int64) if n_levels else np.zeros(0, dtype=np.int64)
    present = np.unique(codes)
    if 0 < len(present) <= MAX_BIPARTITION_LEVELS:
        if len(present) < 2:
            return None
        code = np.searchsorted(present, codes)
        t = np.empty((1 << (len(present) - 1)) - 1)
        scan_subsets(code, e, len(present), least, t)
        best = _greatest(t)
        if best is None:
            return None
        bits = ((best + 1) >> np.arange(len(present))) & 1
        n_left = int(np.isin(codes, present[bits == 1]).sum())
        left = np.full(n_levels, n_left >= n - n_left)
        left[present] = bits == 1
        log_p = _log_p(t, best, n, test, factor, cuts=False)
        return Split(feature, np.nan, left, float(t[best]), log_p, n_left, n - n_left)
    values = column
    if n_levels:  # many levels: cuts along the order of their mean absolute residuals
        spread = np.bincount(codes, np.abs(e), n_levels) / np.maximum(np.bincount(codes, None, n_levels), 1)
        position = np.empty(n_levels)
        position[np.argsort(spread, kind="stable")] = np.arange(n_levels)
        values = position[codes]
    order = np.argsort(values, kind="stable")
    sorted_values = np.ascontiguousarray(values[order], dtype=np.float64)
    t = np.empty(n - 1)
    scan_cuts(sorted_values, e[order], rank[order], ordered, least, t)
    best = _greatest(t)
    if best is None:
        return None
    # Chosen order of levels: as if each bipartition had been tried, hence only the bound by counting.
    trials = n_levels and 2.0 ** min(len(present) - 1, 1000)
    log_p = _log_p(t, best, n, test, factor, cuts=not n_levels, trials=float(trials))
    if n_levels:
        left = np.full(n_levels, best + 1 >= n - best - 1)
        left[present] = position[present] <= sorted_values[best]
        return Split(feature, np.nan, left, float(t[best]), log_p, best + 1, n - best - 1)
    threshold = _between(sorted_values[best], sorted_values[best + 1])
    return Split(feature, threshold, none, float(t[best]), log_p, best + 1, n - best - 1)


def _greatest(t: np.ndarray) -> int | None:
    size = np.where(np.isnan(t), -1.0, np.abs(t))
    best = int(np.argmax(size))
    return best if size[best] >= 0 else None


def _between(low: float, high: float) -> float:
    """Half way between two neighbours, where rounding leaves it between them."""
    if np.isnan(high):
        return np.inf
    middle = low + 0.5 * (high - low)
    return float(middle) if low <= middle < high else float(low)


def _skewness_factor(e: np.ndarray) -> float:
    """Ratio of the assumed to the true standard deviation of a difference of mean deviations.

    To first order ``mean |e - m_L|`` is the mean of ``|e| - kappa e`` with kappa = E sign(e), as m_L
    is estimated too; Levene's t counts the variance of ``|e|`` only.
    """
    size = np.abs(e)
    kappa = np.mean(np.sign(e))
    true = np.var(size - kappa * e)
    return float(np.sqrt(np.var(size) / true)) if true > 0 else 1.0


def _log_p(
    t: np.ndarray, best: int, n: int, test: str, factor: float, cuts: bool, trials: float = 0.0
) -> float:
    size = abs(float(t[best]))
    if test == "levene":
        return _log_tail(size, n - 2)
    size *= factor
    allowed = np.flatnonzero(~np.isnan(t))
    log_p = _log_tail(size, n - 2) + math.log(max(trials, len(allowed)))
    if cuts and math.isfinite(size):
        ends = (allowed[0] + 1) / n, (allowed[-1] + 1) / n
        log_p = min(log_p, _log_bridge_tail(_as_normal(size, n - 2), *ends))
    return min(0.0, log_p)


def _log_tail(size: float, freedom: int) -> float:
    """Log of the two-sided p-value of Student's t."""
    if math.isinf(size):
        return -math.inf
    with np.errstate(divide="ignore"):
        return float(np.log(2.0) + stats.t.logsf(size, freedom))


def _as_normal(size: float, freedom: int) -> float:
    """Normal deviate with nearly the tail of Student's t (Wallace, 1959)."""
    return math.sqrt(freedom * math.log1p(size * size / freedom)) * (1.0 - 3.0 / (4.0 * freedom))


def _log_bridge_tail(b: float, low: float, high: float) -> float:
    """Log chance that a standardised Brownian bridge passes b somewhere in [low, high]."""
    if b < 1.0:
        return 0.0
    length = math.log(high * (1.0 - low) / ((1.0 - high) * low))
    return float(stats.norm.logpdf(b)) + math.log(4.0 / b + (b - 1.0 / b) * length)
