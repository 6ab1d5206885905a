"""Links: how one raw score of a booster becomes one parameter of a distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit, logit

# Largest |raw| that the exponential link follows: e**150 = 1e65, so that squares and ratios of two
# parameters stay far inside the range of float64.
LOG_LIMIT = 150.0
# Largest |raw| of the logit link: 1 - expit(36) is the last step before 1 in float64.
LOGIT_LIMIT = 36.0


class Link(Protocol):
    """What a family asks of a link: a smooth increasing map, and its way back."""

    @property
    def low(self) -> float:
        """Least raw score that is followed."""

    @property
    def high(self) -> float:
        """Greatest raw score that is followed."""

    def inverse(self, raw: np.ndarray) -> np.ndarray:
        """Parameter of a raw score."""

    def forward(self, theta: np.ndarray) -> np.ndarray:
        """Raw score of a parameter."""


@dataclass(frozen=True)
class Identity:
    """The parameter is the raw score itself.

    Parameters
    ----------
    low, high : float
        Raw scores are clipped to this range; no limits by default.

    Examples
    --------
    >>> from boostplugins.links import Identity
    >>> float(Identity().inverse(-2.5))
    -2.5
    """

    low: float = -np.inf
    high: float = np.inf

    def inverse(self, raw: np.ndarray) -> np.ndarray:
        """Parameter of a raw score.

        Parameters
        ----------
        raw : array-like
            Raw scores.

        Returns
        -------
        ndarray
            The same values, within the limits.
        """
        return np.clip(np.asarray(raw, dtype=np.float64), self.low, self.high)

    def forward(self, theta: np.ndarray) -> np.ndarray:
        """Raw score of a parameter.

        Parameters
        ----------
        theta : array-like
            Parameters.

        Returns
        -------
        ndarray
            The same values.
        """
        return np.asarray(theta, dtype=np.float64)


@dataclass(frozen=True)
class Log:
    """The raw score is the logarithm of a positive parameter.

    Parameters
    ----------
    low, high : float
        Raw scores are clipped to this range: no overflow, no zero.

    Examples
    --------
    >>> from boostplugins.links import Log
    >>> float(Log().inverse(0.0)), bool(Log().inverse(1e9) < 1e66)
    (1.0, True)
    """

    low: float = -LOG_LIMIT
    high: float = LOG_LIMIT

    def inverse(self, raw: np.ndarray) -> np.ndarray:
        """Parameter of a raw score.

        Parameters
        ----------
        raw : array-like
            Raw scores.

        Returns
        -------
        ndarray
            Exponentials of the clipped scores.
        """
        return np.exp(np.clip(np.asarray(raw, dtype=np.float64), self.low, self.high))

    def forward(self, theta: np.ndarray) -> np.ndarray:
        """Raw score of a parameter.

        Parameters
        ----------
        theta : array-like
            Positive parameters.

        Returns
        -------
        ndarray
            Logarithms, within the limits.
        """
        with np.errstate(divide="ignore"):
            return np.clip(np.log(np.asarray(theta, dtype=np.float64)), self.low, self.high)


@dataclass(frozen=True)
class Logit:
    """The raw score is the log odds of a probability.

    Parameters
    ----------
    low, high : float
        Raw scores are clipped to this range: no probability is exactly 0 or 1.

    Examples
    --------
    >>> from boostplugins.links import Logit
    >>> float(Logit().inverse(0.0))
    0.5
    """

    low: float = -LOGIT_LIMIT
    high: float = LOGIT_LIMIT

    def inverse(self, raw: np.ndarray) -> np.ndarray:
        """Parameter of a raw score.

        Parameters
        ----------
        raw : array-like
            Raw scores.

        Returns
        -------
        ndarray
            Probabilities.
        """
        return expit(np.clip(np.asarray(raw, dtype=np.float64), self.low, self.high))

    def forward(self, theta: np.ndarray) -> np.ndarray:
        """Raw score of a parameter.

        Parameters
        ----------
        theta : array-like
            Probabilities.

        Returns
        -------
        ndarray
            Log odds, within the limits.
        """
        return np.clip(logit(np.asarray(theta, dtype=np.float64)), self.low, self.high)


@dataclass(frozen=True)
class Softplus:
    """The raw score grows into a positive parameter linearly, not exponentially.

    Parameters
    ----------
    low, high : float
        Raw scores are clipped to this range.

    Examples
    --------
    >>> from boostplugins.links import Softplus
    >>> round(float(Softplus().inverse(0.0)), 6)
    0.693147
    """

    low: float = -LOG_LIMIT
    high: float = 1e65

    def inverse(self, raw: np.ndarray) -> np.ndarray:
        """Parameter of a raw score.

        Parameters
        ----------
        raw : array-like
            Raw scores.

        Returns
        -------
        ndarray
            ``log(1 + exp(raw))``.
        """
        return np.logaddexp(0.0, np.clip(np.asarray(raw, dtype=np.float64), self.low, self.high))

    def forward(self, theta: np.ndarray) -> np.ndarray:
        """Raw score of a parameter.

        Parameters
        ----------
        theta : array-like
            Positive parameters.

        Returns
        -------
        ndarray
            ``log(exp(theta) - 1)``, within the limits.
        """
        theta = np.asarray(theta, dtype=np.float64)
        with np.errstate(divide="ignore"):
            return np.clip(theta + np.log(-np.expm1(-theta)), self.low, self.high)
