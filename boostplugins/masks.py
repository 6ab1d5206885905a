"""Row masks: which rows a cycle looks at while it explores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from boostplugins._kinds import plain_settings
from boostplugins._validation import check_integer, check_real
from boostplugins.noise import Stream, uniforms

MASK_METHODS = ("rows",)  # what a chain calls


class RowMask(Protocol):
    """What a chain asks of a mask: a pure function of the cycle and the row."""

    def rows(self, cycle: int, n_rows: int, first_row: int = 0) -> np.ndarray | None:
        """Which rows a cycle keeps; None for all."""

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""


def rows_of(mask: RowMask, cycle: int, n_rows: int, *first_row: int) -> np.ndarray | None:
    """Ask a mask for its rows, and check them: compiled code reads them without looking.

    Parameters
    ----------
    mask : RowMask
        A mask, of any make.
    cycle : int
        Number of the cycle.
    n_rows : int
        Rows of the training set.
    *first_row : int
        Global number of the first of them.

    Returns
    -------
    ndarray of shape (n_rows,), dtype bool, or None
        Rows that are kept; None for all.

    Raises
    ------
    ValueError
        For anything else.
    """
    rows = mask.rows(cycle, n_rows, *first_row)
    if rows is None:
        return None
    kept = np.asarray(rows)
    if kept.shape != (n_rows,) or kept.dtype != bool:
        raise ValueError(
            f"rows of a mask must be a boolean array of shape ({n_rows},) or None, got {kept.dtype} "
            f"{kept.shape} from {mask!r}"
        )
    return kept


@dataclass(frozen=True)
class NoMask:
    """The null mask: every row, in every cycle.

    Examples
    --------
    >>> from boostplugins import NoMask
    >>> NoMask().rows(cycle=0, n_rows=3) is None
    True
    """

    def rows(self, cycle: int, n_rows: int, first_row: int = 0) -> np.ndarray | None:
        """Say which rows are kept.

        Parameters
        ----------
        cycle : int
            Number of the cycle.
        n_rows : int
            Rows of the training set.
        first_row : int, default=0
            Global number of the first of them.

        Returns
        -------
        None
            All rows.
        """
        return None

    def to_dict(self) -> dict[str, Any]:
        """Describe the mask.

        Returns
        -------
        dict
            JSON-ready.
        """
        return {"kind": "none"}


@dataclass(frozen=True)
class BernoulliMask:
    """Keep each row with one probability, drawn once a cycle.

    The mask holds through the exploration stage of its cycle; while a chain samples, every row
    counts. It multiplies gradients, not leaf sizes: a masked gradient, not a smaller data set.

    Parameters
    ----------
    keep : float, default=0.66
        Probability that a row is kept, in (0, 1].
    random_state : int, default=0
        Seed of the mask, >= 0.

    Examples
    --------
    >>> from boostplugins import BernoulliMask
    >>> mask = BernoulliMask(keep=0.6, random_state=1)
    >>> rows = mask.rows(cycle=3, n_rows=10_000)
    >>> bool((rows == mask.rows(cycle=3, n_rows=10_000)).all()), round(float(rows.mean()), 1)
    (True, 0.6)
    """

    keep: float = 0.66
    random_state: int = 0

    def __post_init__(self) -> None:
        check_real("keep", self.keep, 0.0, 1.0, closed="right", remedy="use NoMask() for no mask")
        check_integer("random_state", self.random_state, 0)

    def rows(self, cycle: int, n_rows: int, first_row: int = 0) -> np.ndarray | None:
        """Draw the rows that a cycle keeps; at least one of them is.

        Parameters
        ----------
        cycle : int
            Number of the cycle.
        n_rows : int
            Rows of the training set, or of this machine's part of it.
        first_row : int, default=0
            Global number of the first of them.

        Returns
        -------
        ndarray of shape (n_rows,), dtype bool, or None
            True for kept rows; None where `keep` is 1 and every row is.
        """
        if self.keep == 1.0 or n_rows == 0:
            return None
        draws = uniforms(self.random_state, cycle, Stream.MASK, n_rows, first_row)
        kept = draws < self.keep
        if not kept.any():  # the row that came nearest to being kept
            kept[np.argmin(draws)] = True
        return kept

    def to_dict(self) -> dict[str, Any]:
        """Describe the mask.

        Returns
        -------
        dict
            JSON-ready.
        """
        return {"kind": "bernoulli", **plain_settings(self)}
