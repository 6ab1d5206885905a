"""Likelihood of rows by their numbers: what a booster's labels cannot carry stays beside the booster."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from boostplugins.families import Family
from boostplugins.losses import FamilyLikelihood

# Row numbers travel as float32 labels, exact up to here.
_MOST_ROWS = 2**24


class Table:
    """Responses and offset of the training rows.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Responses, numbers or pairs of limits.
    offset : ndarray of shape (n_samples,) or None
        Known part of the first raw score.
    """

    def __init__(self, y: np.ndarray, offset: np.ndarray | None) -> None:
        self.y, self.offset = y, offset


@dataclass(frozen=True)
class RowLikelihood(FamilyLikelihood):
    """Negative log likelihood whose labels are row numbers; it describes itself as the plain one.

    Responses that are pairs of limits and offsets, of which a booster knows nothing, thus reach both
    boosters alike, and responses keep their 64 bits. Limits are those of the trees' raw scores, before
    the offset.

    Parameters
    ----------
    family, limits : object
        As for `FamilyLikelihood`.
    table : Table
        Rows.
    """

    table: Table = field(default_factory=lambda: Table(np.empty(0), None), repr=False)

    def _picked(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        number = np.asarray(y, dtype=np.intp)
        offset = None if self.table.offset is None else self.table.offset[number]
        return self.table.y[number], offset

    def rows(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        responses, offset = self._picked(y)
        raw = self.limited(raw)
        if offset is not None:
            raw = raw.copy()
            raw[:, 0] += offset
        return responses, raw

    def start(self, y: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
        responses, offset = self._picked(y)
        return self.family.init(responses, weight, offset)

    def check_labels(self, y: np.ndarray) -> None:
        self.family.check_support(self._picked(y)[0])


def rows_as_labels(
    family: Family, y: np.ndarray, offset: np.ndarray | None, weight: np.ndarray | None
) -> tuple[RowLikelihood, np.ndarray]:
    """Make the loss of rows and the labels that name them.

    Parameters
    ----------
    family : Family
        Distribution without open settings.
    y : ndarray of shape (n_samples,)
        Responses.
    offset : ndarray of shape (n_samples,) or None
        Known part of the first raw score.
    weight : ndarray of shape (n_samples,) or None
        Weights.

    Returns
    -------
    tuple of RowLikelihood and ndarray of shape (n_samples,)
        Loss without open settings; row numbers.
    """
    if len(y) >= _MOST_ROWS:
        raise ValueError(
            f"a chain with an offset or limits of rows takes fewer than 2**24 rows, got {len(y)}"
        )
    labels = np.arange(len(y), dtype=np.float64)
    loss = RowLikelihood(family, None, Table(y, offset)).ready(labels, weight)
    assert isinstance(loss, RowLikelihood)
    return loss, labels
