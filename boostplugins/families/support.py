"""Responses that a family allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from boostplugins.links import Link, Log, Logit, Softplus


@dataclass(frozen=True)
class Support:
    """Responses that a family allows.

    Parameters
    ----------
    low : float, default=-inf
        Lower limit.
    high : float, default=inf
        Upper limit.
    closed_low, closed_high : bool, default=False
        Whether the limits themselves are allowed.
    integer : bool, default=False
        Whether only whole numbers are.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.families import Support
    >>> Support(0, np.inf).contains(np.array([-1.0, 0.0, 2.0]))
    array([False, False,  True])
    >>> str(Support(0, np.inf, closed_low=True, integer=True))
    'whole numbers in [0, inf)'
    """

    low: float = -np.inf
    high: float = np.inf
    closed_low: bool = False
    closed_high: bool = False
    integer: bool = False

    def contains(self, y: ArrayLike) -> np.ndarray:
        """Say which responses are allowed.

        Parameters
        ----------
        y : array-like
            Responses.

        Returns
        -------
        ndarray of bool
            True for finite values within the support.
        """
        y = np.asarray(y, dtype=np.float64)
        above = y >= self.low if self.closed_low else y > self.low
        below = y <= self.high if self.closed_high else y < self.high
        inside = above & below & np.isfinite(y)
        return inside & (np.floor(y) == y) if self.integer else inside

    def check(self, y: ArrayLike, name: str, whose: str) -> None:
        """Refuse responses that are not allowed.

        Parameters
        ----------
        y : array-like
            Responses.
        name, whose : str
            Name of the argument, and whose support this is, for the message.

        Raises
        ------
        ValueError
            With the support and the number of rows outside.
        """
        inside = self.contains(y)
        if not inside.all():
            first = np.asarray(y, dtype=np.float64)[~inside][0]
            raise ValueError(
                f"{name} must hold {self} for {whose}, got {first:g} ({int((~inside).sum())} of "
                f"{inside.size} rows outside); drop them or choose another family"
            )

    def __str__(self) -> str:
        left = "[" if self.closed_low else "("
        right = "]" if self.closed_high else ")"
        return f"{'whole ' if self.integer else ''}numbers in {left}{self.low:g}, {self.high:g}{right}"


def allowed(link: Link, theta: np.ndarray) -> tuple[np.ndarray, str]:
    """Say which values a parameter may take.

    Parameters
    ----------
    link : Link
        Its link.
    theta : ndarray
        Values.

    Returns
    -------
    good : ndarray of bool
        Which of them are allowed.
    rule : str
        What they must be.
    """
    if isinstance(link, (Log, Softplus)):
        return (theta > 0) & np.isfinite(theta), "finite and > 0"
    if isinstance(link, Logit):
        return (theta >= 0) & (theta <= 1), "in [0, 1]"
    return np.isfinite(theta), "finite"
