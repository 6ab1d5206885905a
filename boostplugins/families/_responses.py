"""What a family says of responses before it models them: how they are read, and what they tell."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from boostplugins._validation import check_target
from boostplugins.families.support import Support


class Responses:
    """Part of `Family` that only families of pairs of limits change."""

    name: str
    support: Support

    def responses(self, y: ArrayLike, name: str = "y") -> np.ndarray:
        """Check responses and make them what the family's functions take.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Responses.
        name : str, default="y"
            Name of the argument, for the message.

        Returns
        -------
        ndarray of shape (n_samples,)
            Finite numbers, or pairs of limits for families of such.
        """
        shape: tuple[int, ...] = getattr(y, "shape", ())
        if len(shape) == 2 and shape[1] == 2:
            raise ValueError(
                f"{name} must have shape (n_samples,), got {shape}; two columns, the limits of each row, are "
                "for the family IntervalCensored"
            )
        return check_target(y, name)

    def points(self, y: np.ndarray) -> np.ndarray:
        """Numbers that stand for the responses where one number a row is asked for.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            What `responses` gave.

        Returns
        -------
        ndarray of shape (n_samples,)
            The responses themselves; the finite limit, or the middle of two, where they are pairs.
        """
        return y

    def observed(self, y: np.ndarray) -> np.ndarray:
        """Say which responses were observed, not only known to lie within limits.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            What `responses` gave.

        Returns
        -------
        ndarray of bool, shape (n_samples,)
            True for all but pairs of different limits.
        """
        return np.ones(len(y), dtype=bool)

    def seen(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray | None:
        """Share of the information of `score_and_fisher` that the responses hold, where they lack some.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            What `responses` gave.
        raw : ndarray of shape (K,)
            Raw scores.

        Returns
        -------
        ndarray of shape (K,) or None
            Shares in (0, 1], None for all of it.
        """
        return None

    def check_support(self, y: ArrayLike, name: str = "y") -> None:
        """Refuse responses outside the support.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Responses.
        name : str, default="y"
            Name of the argument, for the message.

        Raises
        ------
        ValueError
            With the family, its support and the number of rows outside.
        """
        self.support.check(y, name, f"family {self.name}")
