"""What a family is: one distribution of the response, its derivatives and its predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from boostplugins.families._responses import Responses
from boostplugins.families._start import best_constant
from boostplugins.families._tails import refined
from boostplugins.families.support import Support, allowed
from boostplugins.links import Link


class Family(Responses, ABC):
    """Base of families: frozen values without data, counters or random state.

    Raw scores have shape (n, K), the scale on which boosters add up trees; theta, the parameters
    themselves, has shape (..., K). Functions of theta broadcast over its leading axes.

    Attributes
    ----------
    name : str
        Name by which `get_family` finds the family.
    aliases : tuple of str
        Other names, among them the short names of GAMLSS.
    params : tuple of str
        Names of the K parameters.
    links : tuple of Link
        Links of the K parameters.
    support : Support
        Responses allowed.
    discrete : bool
        Whether `log_pdf` is a log probability of a whole number.
    classification : bool
        Whether responses are class numbers.
    locations, scales : tuple of int
        Parameters that follow ``y -> a y + b`` as ``a p + b`` and as ``a p``; see `rescale`.
    atoms : tuple of float
        Point masses of a distribution that is otherwise continuous.
    fisher_exact : bool
        Whether `score_and_fisher` gives the exact Fisher information, not a positive stand-in.
    pairs : bool
        Whether responses are pairs of limits, see `IntervalCensored`.
    """

    name: str = ""
    aliases: tuple[str, ...] = ()
    params: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    support: Support = Support()
    discrete: bool = False
    classification: bool = False
    locations: tuple[int, ...] = ()
    scales: tuple[int, ...] = ()
    atoms: tuple[float, ...] = ()
    fisher_exact: bool = True
    pairs: bool = False

    @property
    def n_params(self) -> int:
        """Number K of parameters."""
        return len(self.params)

    @property
    def equivariance(self) -> str | None:
        """What the family follows: "affine" (a y + b), "scale" (a y, a > 0), or None."""
        if self.locations:
            return "affine"
        return "scale" if self.scales else None

    def theta(self, raw: ArrayLike) -> np.ndarray:
        """Turn raw scores into parameters.

        Parameters
        ----------
        raw : array-like of shape (..., K)
            Raw scores.

        Returns
        -------
        ndarray of shape (..., K)
            Parameters.
        """
        raw = np.asarray(raw, dtype=np.float64)
        return np.stack([link.inverse(raw[..., k]) for k, link in enumerate(self.links)], axis=-1)

    def raw(self, theta: ArrayLike) -> np.ndarray:
        """Turn parameters into raw scores.

        Parameters
        ----------
        theta : array-like of shape (..., K)
            Parameters.

        Returns
        -------
        ndarray of shape (..., K)
            Raw scores.
        """
        theta = np.asarray(theta, dtype=np.float64)
        return np.stack([link.forward(theta[..., k]) for k, link in enumerate(self.links)], axis=-1)

    def rescale(self, theta: ArrayLike, scale: float, shift: float = 0.0) -> np.ndarray:
        """Parameters of ``scale * Y + shift`` from those of Y.

        Parameters
        ----------
        theta : array-like of shape (..., K)
            Parameters of Y.
        scale : float
            Factor, > 0.
        shift : float, default=0.0
            Constant added; must be 0 unless `equivariance` is "affine".

        Returns
        -------
        ndarray of shape (..., K)
            Parameters.
        """
        if (shift != 0 and self.equivariance != "affine") or self.equivariance is None:
            raise ValueError(f"family {self.name} does not follow y -> {scale:g} y + {shift:g}")
        theta = np.array(theta, dtype=np.float64)
        for k in self.locations:
            theta[..., k] = theta[..., k] * scale + shift
        for k in self.scales:
            theta[..., k] *= scale
        return theta

    def ready(self, y: np.ndarray) -> Family:
        """Settle what depends on the data, such as the number of classes.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Responses.

        Returns
        -------
        Family
            A family without open settings, often this one.
        """
        return self

    def check_theta(self, theta: np.ndarray) -> None:
        """Refuse parameters outside their range.

        Parameters
        ----------
        theta : ndarray of shape (..., K)
            Parameters.

        Raises
        ------
        ValueError
            Naming the parameter, for NaN and for a positive parameter or a probability that is not.
        """
        for k, (name, link) in enumerate(zip(self.params, self.links)):
            value = theta[..., k]
            good, rule = allowed(link, value)
            if not good.all():
                raise ValueError(
                    f"theta: {name} of family {self.name} must be {rule}, got {value[~good][0]:g} "
                    f"({int((~good).sum())} values in all)"
                )

    def init(
        self, y: np.ndarray, weight: np.ndarray | None = None, offset: np.ndarray | None = None
    ) -> np.ndarray:
        """Best constant raw scores: those that maximise the weighted log likelihood.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Responses.
        weight : ndarray of shape (n_samples,), optional
            Weights.
        offset : ndarray of shape (n_samples,), optional
            Known part of the first parameter's raw score.

        Returns
        -------
        ndarray of shape (K,)
            Raw scores.
        """
        y = np.asarray(y, dtype=np.float64)
        weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
        return best_constant(self, y, weight, self._guess(y, weight, offset), offset)

    def _guess(self, y: np.ndarray, weight: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
        """Moment estimate from which `init` climbs; (K,) raw scores."""
        raise NotImplementedError(f"family {self.name} has no start value")

    @abstractmethod
    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of the log density in the raw scores, and the expected curvature.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Responses within the support.
        raw : ndarray of shape (n_samples, K)
            Raw scores.

        Returns
        -------
        score : ndarray of shape (n_samples, K)
            d log pdf / d raw.
        fisher : ndarray of shape (n_samples, K)
            Diagonal of the Fisher information on the raw scale, > 0.
        """

    def fisher_matrix(self, raw: np.ndarray) -> np.ndarray:
        """Fisher information on the raw scale.

        Parameters
        ----------
        raw : ndarray of shape (n_samples, K)
            Raw scores.

        Returns
        -------
        ndarray of shape (n_samples, K, K)
            Expected outer product of the score; by default the diagonal alone.
        """
        raw = np.asarray(raw, dtype=np.float64)
        y = np.broadcast_to(self.ppf(0.5, self.theta(raw)), len(raw))
        fisher = self.score_and_fisher(np.ascontiguousarray(y), raw)[1]
        return fisher[:, :, None] * np.eye(self.n_params)

    @abstractmethod
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        """Log density, or log probability of a discrete response.

        Parameters
        ----------
        y : array-like
            Responses; -inf is returned outside the support.
        theta : array-like of shape (..., K)
            Parameters.

        Returns
        -------
        ndarray
            Log densities with their constants.
        """

    @abstractmethod
    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        """Probability of a response at most `y`.

        Parameters
        ----------
        y : array-like
            Limits.
        theta : array-like of shape (..., K)
            Parameters.

        Returns
        -------
        ndarray
            Probabilities.
        """

    def log_cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        """Logarithm of `cdf`.

        Parameters
        ----------
        y : array-like
            Limits.
        theta : array-like of shape (..., K)
            Parameters.

        Returns
        -------
        ndarray
            Log probabilities.
        """
        return refined(self, y, theta, self.cdf(y, theta), upper=False)

    def log_sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        """Logarithm of `sf`.

        Parameters
        ----------
        y : array-like
            Limits.
        theta : array-like of shape (..., K)
            Parameters.

        Returns
        -------
        ndarray
            Log probabilities.
        """
        return refined(self, y, theta, self.sf(y, theta), upper=True)

    def sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        """Probability of a response above `y`.

        Parameters
        ----------
        y : array-like
            Limits.
        theta : array-like of shape (..., K)
            Parameters.

        Returns
        -------
        ndarray
            Probabilities.
        """
        return 1.0 - self.cdf(y, theta)

    @abstractmethod
    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        """Quantiles: the least response whose `cdf` reaches `q`.

        Parameters
        ----------
        q : array-like
            Probabilities in [0, 1].
        theta : array-like of shape (..., K)
            Parameters.

        Returns
        -------
        ndarray
            Quantiles.
        """

    @abstractmethod
    def mean(self, theta: ArrayLike) -> np.ndarray:
        """Mean; NaN or inf where there is none.

        Parameters
        ----------
        theta : array-like of shape (..., K)
            Parameters.

        Returns
        -------
        ndarray of shape (...)
            Means.
        """

    @abstractmethod
    def var(self, theta: ArrayLike) -> np.ndarray:
        """Variance; inf where there is none.

        Parameters
        ----------
        theta : array-like of shape (..., K)
            Parameters.

        Returns
        -------
        ndarray of shape (...)
            Variances.
        """

    def sample(self, theta: ArrayLike, size: int, rng: np.random.Generator) -> np.ndarray:
        """Draw responses.

        Parameters
        ----------
        theta : array-like of shape (..., K)
            Parameters.
        size : int
            Draws for each set of parameters.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        ndarray of shape (..., size)
            Draws.
        """
        theta = np.asarray(theta, dtype=np.float64)
        return self.ppf(rng.random((*theta.shape[:-1], size)), theta[..., None, :])

    def crps(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        """Continuous ranked probability score, lower is better.

        Parameters
        ----------
        y : array-like
            Responses.
        theta : array-like of shape (..., K)
            Parameters.

        Returns
        -------
        ndarray
            Scores in the units of the response; by numerical integration where no closed form is
            known.
        """
        from boostplugins.families._crps import numeric_crps

        return numeric_crps(self, y, theta)

    def probabilities(self, theta: ArrayLike) -> np.ndarray:
        """Class probabilities of a family of classes.

        Parameters
        ----------
        theta : array-like of shape (..., K)
            Parameters.

        Returns
        -------
        ndarray of shape (..., n_classes)
            Probabilities.
        """
        raise TypeError(f"family {self.name} has no classes; probabilities need Bernoulli or Categorical")

    def to_dict(self) -> dict[str, Any]:
        """Describe the family.

        Returns
        -------
        dict
            JSON-ready; `family_from_dict` reads it.
        """
        held: dict[str, Any] = {"name": self.name}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            held[field.name] = value.to_dict() if isinstance(value, Family) else value
        return held
