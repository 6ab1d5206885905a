"""Columns to codes: the number of cut points below a value, a level's number, or the missing code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from boostplugins.hbart.trees import Rules

EXACT_UP_TO = 2000  # distinct values that keep a cut point between every two where max_bins is None
MISSING = 65_535
_LARGEST = 65_534


@dataclass(frozen=True)
class Bins:
    """Cut points of every column.

    Attributes
    ----------
    cuts : tuple of ndarray
        Increasing cut points; a value goes left of a cut that it does not exceed. Empty for a
        categorical column.
    n_levels : ndarray of shape (p,)
        Levels of a categorical column, 0 for an ordered one or a single level.
    n_rules : ndarray of shape (p,)
        Cuts that rules may use: one more than there are cut points where training rows missed the
        value, since "present left, missing right" is a rule too.
    """

    cuts: tuple[np.ndarray, ...]
    n_levels: np.ndarray
    n_rules: np.ndarray

    @classmethod
    def learn(cls, matrix: np.ndarray, n_levels: np.ndarray, max_bins: int | None) -> Bins:
        """Choose cut points.

        Parameters
        ----------
        matrix : ndarray of shape (n, p)
            Training rows, NaN for missing values.
        n_levels : ndarray of shape (p,)
            Levels of categorical columns, 0 for ordered ones.
        max_bins : int or None
            Most bins of an ordered column. None keeps every distinct value apart up to 2000 of
            them and takes 255 bins of about equal counts beyond.

        Returns
        -------
        Bins
            Cut points.
        """
        n_levels = np.where(n_levels > 1, n_levels, 0)  # of one level only its being missing can tell
        cuts, n_rules = [], np.zeros(matrix.shape[1], dtype=np.int64)
        for j in range(matrix.shape[1]):
            present = ~np.isnan(matrix[:, j])
            cuts.append(_cut_points(matrix[present, j], max_bins) if n_levels[j] == 0 else np.empty(0))
            if n_levels[j] == 0:
                n_rules[j] = len(cuts[j]) + (not present.all() and present.any())
        return cls(tuple(cuts), np.asarray(n_levels, dtype=np.int64), n_rules)

    def codes(self, matrix: np.ndarray) -> np.ndarray:
        """Turn rows into codes.

        Parameters
        ----------
        matrix : ndarray of shape (n, p)
            Rows, NaN for missing values.

        Returns
        -------
        ndarray of shape (p, n)
            uint16; `MISSING` stands for a missing value.
        """
        out = np.empty((matrix.shape[1], len(matrix)), dtype=np.uint16)
        for j, cuts in enumerate(self.cuts):
            column = matrix[:, j]
            missing = np.isnan(column)
            found = np.searchsorted(cuts, column, side="left") if self.n_levels[j] == 0 else column
            out[j] = np.where(missing, MISSING, found)
        return out

    def rules(self) -> Rules:
        """Say what the columns allow at the root.

        Returns
        -------
        Rules
            Numbers of cuts and levels, and the columns with at least one rule.
        """
        usable = np.flatnonzero((self.n_rules > 0) | (self.n_levels > 1)).astype(np.int64)
        return Rules(self.n_rules, self.n_levels, usable)


def _cut_points(values: np.ndarray, max_bins: int | None) -> np.ndarray:
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) < 2:
        return np.empty(0)
    # Halves first: the sum of two huge values could overflow. A midpoint that rounds up to the
    # upper value would send that value left.
    middles = 0.5 * distinct[:-1] + 0.5 * distinct[1:]
    middles = np.where(middles >= distinct[1:], distinct[:-1], middles)
    bins = (_LARGEST if len(distinct) <= EXACT_UP_TO else 255) if max_bins is None else max_bins
    if len(distinct) <= bins:
        return middles
    # The cut nearest above each of the bins' shares of the rows; ties make bins fewer, never empty.
    share = np.cumsum(counts)[:-1] / counts.sum()
    at = np.searchsorted(share, np.arange(1, bins) / bins)
    return middles[np.unique(np.minimum(at, len(middles) - 1))]
