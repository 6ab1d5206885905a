"""Predictive distributions: one family member a row, or a mixture of members."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from boostplugins._mixture import mixture_crps, mixture_ppf
from boostplugins._validation import check_integer
from boostplugins.families import Family, get_family
from boostplugins.uncertainty import Uncertainty, member_mean


class Predictive:
    """What `predict_dist` returns: a distribution of the response for each row.

    Parameters
    ----------
    family : str or Family
        Distribution of each member.
    theta : array-like of shape (n_samples, K) or (n_samples, n_members, K)
        Parameters, of one distribution a row or of the members of a mixture.
    weights : array-like of shape (n_members,), optional
        Weights of the members, >= 0; equal by default.

    Raises
    ------
    ValueError
        For a shape that does not fit, or weights that are negative or all zero.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins import Predictive
    >>> one = Predictive("normal", [[0.0, 1.0], [5.0, 2.0]])
    >>> one.mean(), one.interval(0.9).round(2)
    (array([0., 5.]), array([[-1.64,  1.64],
           [ 1.71,  8.29]]))
    >>> mixture = Predictive("normal", [[[-1.0, 0.5], [1.0, 0.5]]])
    >>> mixture.var(), mixture.uncertainty().knowledge
    (array([1.25]), array([1.]))
    """

    def __init__(self, family: str | Family, theta: ArrayLike, weights: ArrayLike | None = None) -> None:
        self.family = get_family(family)
        self.theta = np.asarray(theta, dtype=np.float64)
        count = self.family.n_params
        if self.theta.ndim not in (2, 3) or self.theta.shape[-1] != count:
            raise ValueError(
                f"theta of family {self.family.name} must have shape (n_samples, {count}) or "
                f"(n_samples, n_members, {count}), got {self.theta.shape}"
            )
        self.family.check_theta(self.theta)
        self.weights = None if weights is None else self._checked(weights)

    def _checked(self, weights: ArrayLike) -> np.ndarray:
        weights = np.asarray(weights, dtype=np.float64)
        members = self.theta.shape[1] if self.is_mixture else 1
        if weights.shape != (members,):
            raise ValueError(f"weights must have shape ({members},), one a member, got {weights.shape}")
        if not np.isfinite(weights).all() or (weights < 0).any() or weights.sum() <= 0:
            raise ValueError(f"weights must be finite and >= 0 with a positive sum, got {weights}")
        return weights / weights.sum()

    @property
    def is_mixture(self) -> bool:
        """Whether a row is a mixture of members."""
        return self.theta.ndim == 3

    @property
    def n_members(self) -> int:
        """Number of members, 1 for a single distribution."""
        return self.theta.shape[1] if self.is_mixture else 1

    def __len__(self) -> int:
        return len(self.theta)

    def __getitem__(self, rows: Any) -> Predictive:
        """Take rows.

        Parameters
        ----------
        rows : int, slice or array
            Rows to keep; an integer gives a `Predictive` of one row.

        Returns
        -------
        Predictive
            Their distributions.
        """
        if isinstance(rows, (int, np.integer)):
            if not -len(self) <= rows < len(self):
                raise IndexError(f"row {rows} is out of range for {len(self)} rows")
            rows = slice(rows, rows + 1) if rows != -1 else slice(-1, None)
        return self._with_theta(self.theta[rows])

    def _with_theta(self, theta: np.ndarray) -> Predictive:
        return Predictive(self.family, theta, self.weights)

    def __repr__(self) -> str:
        members = f", n_members={self.n_members}" if self.is_mixture else ""
        return f"Predictive({self.family!r}, n_samples={len(self)}{members})"

    def _average(self, values: np.ndarray) -> np.ndarray:
        return member_mean(values, self.weights) if self.is_mixture else values

    def _each(self, y: ArrayLike) -> np.ndarray:
        """Responses shaped to meet theta's leading axes."""
        values = np.asarray(y)
        pairs = self.family.pairs and (values.dtype.names is not None or values.ndim == 2)
        y = self.family.responses(y) if pairs else np.asarray(y, dtype=np.float64)
        if y.ndim and y.shape != (len(self),):
            raise ValueError(f"y must be a number or have shape ({len(self)},), got {y.shape}")
        return y[:, None] if self.is_mixture and y.ndim else y

    def mean(self) -> np.ndarray:
        """Mean of the response.

        Returns
        -------
        ndarray of shape (n_samples,)
            Means.
        """
        return self._average(self.family.mean(self.theta))

    def var(self) -> np.ndarray:
        """Variance of the response.

        Returns
        -------
        ndarray of shape (n_samples,)
            Variances; for a mixture, mean of variances plus variance of means.
        """
        if not self.is_mixture:
            return self.family.var(self.theta)
        return Uncertainty.from_moments(
            self.family.mean(self.theta), self.family.var(self.theta), self.weights
        ).total

    def std(self) -> np.ndarray:
        """Standard deviation of the response.

        Returns
        -------
        ndarray of shape (n_samples,)
            Square roots of `var`.
        """
        return np.sqrt(self.var())

    def log_pdf(self, y: ArrayLike) -> np.ndarray:
        """Log density, or log probability of a discrete response.

        Parameters
        ----------
        y : array-like of shape (n_samples,), or float
            Responses; pairs of limits, as in training, where the family is `IntervalCensored`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log densities.
        """
        log_pdf = self.family.log_pdf(self._each(y), self.theta)
        if not self.is_mixture:
            return log_pdf
        weights = np.full(self.n_members, 1.0 / self.n_members) if self.weights is None else self.weights
        return logsumexp(log_pdf, axis=1, b=weights)

    def cdf(self, y: ArrayLike) -> np.ndarray:
        """Probability of a response at most `y`.

        Parameters
        ----------
        y : array-like of shape (n_samples,), or float
            Limits.

        Returns
        -------
        ndarray of shape (n_samples,)
            Probabilities.
        """
        return self._average(self.family.cdf(self._each(y), self.theta))

    def sf(self, y: ArrayLike) -> np.ndarray:
        """Probability of a response above `y`, exact also where it is tiny: survival beyond a time.

        Parameters
        ----------
        y : array-like of shape (n_samples,), or float
            Limits.

        Returns
        -------
        ndarray of shape (n_samples,)
            Probabilities.
        """
        return self._average(self.family.sf(self._each(y), self.theta))

    def ppf(self, q: ArrayLike) -> np.ndarray:
        """Quantile of the response.

        Parameters
        ----------
        q : float or array-like of shape (n_samples,)
            Probability in [0, 1].

        Returns
        -------
        ndarray of shape (n_samples,)
            Quantiles.
        """
        level = self._level(q)
        if not self.is_mixture:
            return self.family.ppf(level, self.theta)
        return mixture_ppf(self.family, self.theta, self.weights, level)

    def _level(self, q: ArrayLike) -> np.ndarray:
        """Check probabilities and make them one a row."""
        level = np.asarray(q, dtype=np.float64)
        if not ((level >= 0) & (level <= 1)).all():
            raise ValueError(f"q must be in [0, 1], got {q!r}")
        if level.ndim and level.shape != (len(self),):
            raise ValueError(
                f"q must be a number or have shape ({len(self)},), one a row, got {level.shape}; for several "
                "quantiles of each row call ppf for each"
            )
        return np.broadcast_to(level, (len(self),))

    def interval(self, coverage: float = 0.9) -> np.ndarray:
        """Central interval of the response.

        Parameters
        ----------
        coverage : float, default=0.9
            Probability inside, in (0, 1), with equal tails.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper end.
        """
        if not 0.0 < coverage < 1.0:
            raise ValueError(f"coverage must be in (0, 1), got {coverage!r}; 0.9 means 90 %")
        tail = 0.5 * (1.0 - coverage)
        return np.stack([self.ppf(tail), self.ppf(1.0 - tail)], axis=1)

    def sample(self, size: int = 1, random_state: int | np.random.Generator | None = None) -> np.ndarray:
        """Draw responses.

        Parameters
        ----------
        size : int, default=1
            Draws a row.
        random_state : int, Generator or None, default=None
            Seed or source of randomness; None draws anew each time.

        Returns
        -------
        ndarray of shape (n_samples, size)
            Draws.
        """
        size = check_integer("size", size, 0)
        rng = np.random.default_rng(random_state)
        if not self.is_mixture:
            return self.family.sample(self.theta, size, rng)
        member = rng.choice(self.n_members, size=(len(self), size), p=self.weights)
        chosen = np.take_along_axis(self.theta, member[:, :, None], axis=1)
        return self.family.sample(chosen, 1, rng)[..., 0]

    def crps(self, y: ArrayLike) -> np.ndarray:
        """Continuous ranked probability score of each response, lower is better.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Responses.

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores in units of the response.
        """
        if not self.is_mixture:
            return self.family.crps(self._each(y), self.theta)
        self._each(y)
        observed = np.broadcast_to(np.asarray(y, dtype=np.float64), (len(self),))
        return mixture_crps(self.family, self.theta, self.weights, observed)

    def probabilities(self) -> np.ndarray:
        """Class probabilities, averaged over members.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities; only for families of classes.
        """
        return self._average(self.family.probabilities(self.theta))

    def uncertainty(self) -> Uncertainty:
        """Split the predictive uncertainty into knowledge and data parts.

        Returns
        -------
        Uncertainty
            Variances for numeric responses, entropies in nats for classes; knowledge is 0 for a
            single distribution.
        """
        theta = self.theta if self.is_mixture else self.theta[:, None, :]
        if not self.family.classification:
            return Uncertainty.from_moments(self.family.mean(theta), self.family.var(theta), self.weights)
        return Uncertainty.from_probabilities(self.family.probabilities(theta), self.weights)
