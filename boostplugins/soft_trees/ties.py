"""Point masses that a continuous family has met: where they are, and what to do about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Equal responses with a vanishing spread, and their share of all rows, that it is put down to.
_TIED, _TIED_SHARE = 10, 0.05
# Log units above its floor within which a spread has fallen to it: the penalty holds it back a little.
_NEAR = 0.1
# A floor that is no less than this share of the best constant's spread does no harm: rows of coarse grades.
HARMLESS = 0.2


@dataclass(frozen=True)
class Ties:
    """Equal responses on which a spread has fallen to its floor.

    Parameters
    ----------
    value : float
        The response.
    count, rows : int
        Rows of that response, and all rows.
    end : {"low", "high"} or None
        Whether no response is below, or none above.

    Examples
    --------
    >>> from boostplugins.soft_trees.ties import Ties
    >>> Ties(40.0, 112, 1000, None).text()[:60]
    '112 of 1000 responses are 40, and the spread vanishes there:'
    """

    value: float
    count: int
    rows: int
    end: str | None

    def text(self) -> str:
        """Say what was met and what to do.

        Returns
        -------
        str
            A sentence without its end.
        """
        return (
            f"{self.count} of {self.rows} responses are {self.value:g}, and the spread vanishes there: it is "
            f"held at its floor, and new rows may lie far outside; {self._remedy()}"
        )

    def _remedy(self) -> str:
        """Name families that give a value a probability of its own."""
        if self.end == "low":
            zeros = ' or, where zeros are another matter than the rest, "ZAGA" (hurdle)'
            known = f"give family=Censored(low={self.value:g}) (values below were cut off)"
            return known + (zeros if self.value == 0 else "")
        if self.end == "high":
            return f"give family=Censored(high={self.value:g}) (values above were cut off)"
        return "consider a family of counts or classes, or the rows of that value apart from the others"


def has_ties(y: np.ndarray, weight: np.ndarray) -> bool:
    """Whether many rows have the same response.

    Parameters
    ----------
    y, weight : ndarray of shape (n_samples,)
        Responses and weights, counted as repeated rows.

    Returns
    -------
    bool
        Whether some response is that of ten rows and of a twentieth of all.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.soft_trees.ties import has_ties
    >>> has_ties(np.repeat([0.0, 1.0], [9, 30]), np.ones(39)), has_ties(np.arange(39.0), np.ones(39))
    (True, False)
    """
    _, place = np.unique(y, return_inverse=True)
    most = float(np.bincount(place, weight).max())
    return most >= max(_TIED, _TIED_SHARE * float(weight.sum()))


def find_ties(raw: Sequence[np.ndarray], floor: np.ndarray, start: np.ndarray, y: np.ndarray) -> Ties | None:
    """Find equal responses on which a spread has fallen to its floor.

    Parameters
    ----------
    raw : sequence of ndarray of shape (n_samples,)
        Raw scores of each parameter, free of the bounds of predictions.
    floor : ndarray of shape (K,)
        Least raw scores of spreads, -inf for other parameters.
    start : ndarray of shape (K,)
        Raw scores of the best constant.
    y : ndarray of shape (n_samples,)
        Responses.

    Returns
    -------
    Ties or None
        Those of the first parameter whose floor is far below the best constant.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.soft_trees.ties import find_ties
    >>> y = np.repeat([0.0, 1.0, 2.0], [30, 10, 10])
    >>> floor, start = np.array([-np.inf, -9.0]), np.array([0.6, -0.2])
    >>> find_ties([y, np.where(y == 0.0, -9.0, 0.0)], floor, start, y).end
    'low'
    """
    for value, least, constant in zip(raw[1:], floor[1:], start[1:]):
        values, counts = np.unique(y[value < least + _NEAR], return_counts=True)
        if counts.max(initial=0) < _TIED or least > constant + np.log(HARMLESS):
            continue
        common = float(values[np.argmax(counts)])
        count = int((y == common).sum())
        if _TIED_SHARE * len(y) <= count < len(y):
            end = "low" if common == y.min() else "high" if common == y.max() else None
            return Ties(common, count, len(y), end)
    return None
