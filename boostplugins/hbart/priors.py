"""Priors: hyperparameters in the user's words, and their calibration from the data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma
from scipy.stats import chi2

from boostplugins.hbart.forest import ForestPrior

# Rows that the least-squares calibration uses; more would not change the prior.
_CALIBRATION_ROWS = 20_000
# Least prior guess of sigma, relative to sd(y): below it, lambda would make the prior of a
# noise-free response degenerate.
_LEAST_SIGMA = 1e-4
# Least scale of the prior of sigma^2, in units of the guess squared.
_LEAST_SCALE = 1e-18
# Start of the standard deviation of the trees' sum where it is drawn, relative to its guess. Small: the
# chain soon finds larger leaf values, but takes thousands of iterations to leave them, since trees whose
# large values cancel each other hold one another in place.
_FIRST_SPREAD = 0.01
# Mean of the log of a chi-square variable with one degree of freedom.
_MEAN_LOG_CHI2 = float(digamma(0.5) + math.log(2.0))


@dataclass(frozen=True)
class Hyperparameters:
    """What a sampler's prior and moves depend on, apart from the data.

    Attributes
    ----------
    n_trees : int
        Mean trees.
    n_variance_trees : int
        Variance trees; 0 unless the variance is a forest.
    alpha, beta : float
        A node of depth d splits with probability alpha (1 + d)**-beta.
    k : float
        Leaf values have prior standard deviation half_range / (k sqrt(n_trees)).
    leaf_nu, leaf_q : float
        Degrees of freedom and calibration quantile of the prior of their variance; 0 degrees fix it by k.
    half_range : float
        Half the scaled response's range: 0.5, or 3 for a probit.
    nu, q : float
        Degrees of freedom and calibration quantile of the prior of sigma^2.
    min_leaf : int
        Least rows in a leaf.
    max_nodes : int
        Most nodes a tree may have, at most 255.
    p_grow, p_prune, p_swap : float
        Chances of GROW, PRUNE and SWAP; CHANGE takes the rest.
    gamma_var : float
        Prior variance of each coefficient of the standardised variance covariates.
    indicator_var : float
        The same of the indicators of levels, where that is less.
    gamma_mean : float
        Their prior mean.
    variance_spread : float
        Prior standard deviation of log sigma^2(x) under a variance forest, about.
    gamerman : bool
        Whether gamma is proposed as Gamerman (1997) does.
    slices : bool
        Whether gamma moves by elliptical slices.
    """

    n_trees: int = 50
    n_variance_trees: int = 0
    alpha: float = 0.95
    beta: float = 2.0
    k: float = 2.0
    leaf_nu: float = 0.0
    leaf_q: float = 0.9
    half_range: float = 0.5
    nu: float = 3.0
    q: float = 0.9
    min_leaf: int = 1
    max_nodes: int = 255
    p_grow: float = 2.5 / 9.0
    p_prune: float = 2.5 / 9.0
    p_swap: float = 0.0
    gamma_var: float = 1000.0
    indicator_var: float = 1000.0
    gamma_mean: float = 0.0
    variance_spread: float = 1.5
    gamerman: bool = False
    slices: bool = False

    def mean_prior(self, informed: bool = True, spread: float = 0.5) -> ForestPrior:
        """Prior of the mean forest.

        Parameters
        ----------
        informed : bool, default=True
            False makes the rows count for nothing.
        spread : float, default=0.5
            Where the leaf values' variance is drawn: the standard deviation of the trees' sum lies below
            this with probability `leaf_q`.

        Returns
        -------
        ForestPrior
            For the moves.
        """
        if self.leaf_nu:
            lam = sigma_scale(spread, self.leaf_nu, self.leaf_q) / self.n_trees
            leaf = (_FIRST_SPREAD * spread) ** 2 / self.n_trees, self.leaf_nu, lam
        else:
            leaf = (self.half_range / (self.k * math.sqrt(self.n_trees))) ** 2, 0.0, 0.0
        return self._forest_prior(leaf, 1.0, False, informed)

    def variance_prior(self, informed: bool = True) -> ForestPrior:
        """Prior of the variance forest: leaf factors are inverse gamma(a, a), a = trees / spread^2 + 1/2.

        The log of such a factor has variance of about 1 / a and its mode at 0.

        Parameters
        ----------
        informed : bool, default=True
            False makes the rows count for nothing.

        Returns
        -------
        ForestPrior
            For the moves.
        """
        shape = max(self.n_variance_trees, 1) / self.variance_spread**2 + 0.5
        return self._forest_prior((1.0, 0.0, 0.0), shape, True, informed)

    def _forest_prior(
        self, leaf: tuple[float, float, float], shape: float, scale: bool, informed: bool
    ) -> ForestPrior:
        return ForestPrior(
            float(self.alpha),
            float(self.beta),
            int(self.min_leaf),
            float(self.p_grow),
            float(self.p_prune),
            float(self.p_swap),
            np.array([leaf[0]], dtype=np.float64),
            float(leaf[1]),
            float(leaf[2]),
            float(shape),
            float(shape),
            scale,
            1.0 if informed else 0.0,
        )


def sigma_scale(guess: float, nu: float, q: float) -> float:
    """Scale lambda of the prior sigma^2 ~ nu lambda / chi^2_nu with P(sigma < guess) = q.

    Parameters
    ----------
    guess : float
        Rough upper guess of sigma.
    nu : float
        Degrees of freedom.
    q : float
        Prior probability below the guess, in (0, 1).

    Returns
    -------
    float
        lambda.

    Examples
    --------
    >>> from scipy.stats import chi2
    >>> lam = sigma_scale(2.0, nu=3.0, q=0.9)
    >>> round(float(chi2.sf(3.0 * lam / 2.0**2, 3.0)), 3)
    0.9
    """
    # A prior of next to no weight keeps a scale, or a perfect fit would make sigma 0.
    return guess**2 * max(float(chi2.ppf(1.0 - q, nu)) / nu, _LEAST_SCALE)


def calibration_rows(n: int) -> slice:
    """Choose the rows that the guess of sigma looks at: some are enough.

    Parameters
    ----------
    n : int
        Rows.

    Returns
    -------
    slice
        All of some thousand rows, every so many of more.
    """
    return slice(None, None, -(-n // _CALIBRATION_ROWS))


def guess_sigma(design: np.ndarray, y: np.ndarray, weight: np.ndarray, geometric: bool) -> float:
    """Guess sigma from the residuals of a linear regression.

    Parameters
    ----------
    design : ndarray of shape (n, d)
        Regressors without intercept, no missing values.
    y : ndarray of shape (n,)
        Response.
    weight : ndarray of shape (n,)
        Observation weights: the variance of a row is sigma^2 / weight.
    geometric : bool
        Guess the geometric mean of the rows' variances, as suits a model in which sigma^2 is the
        variance at the centre of the variance covariates, instead of the arithmetic one.

    Returns
    -------
    float
        Guess, positive; from sd(y) where p >= n - 1 or the regressors are collinear.
    """
    root = np.sqrt(weight)
    centre = np.average(y, weights=weight)
    residual = (y - centre) * root
    spread = math.sqrt(residual @ residual / max(len(y) - 1, 1))
    if design.shape[1] < len(y) - 1:
        # Unit-sized columns, so that the rank says collinear and not "of different units".
        centred = design - design.mean(axis=0)
        size = np.sqrt((centred**2).mean(axis=0))
        centred = centred[:, size > 0] / size[size > 0]
        full = np.column_stack([np.ones(len(y)), centred]) * root[:, None]
        fit, _, rank, _ = np.linalg.lstsq(full, (y - centre) * root, rcond=1e-10)
        if rank == full.shape[1] < len(y):
            left = residual - full @ fit
            guess = math.sqrt(left @ left / (len(y) - rank))
            if geometric and guess > 0:
                log_square = np.log(np.maximum(left**2, (1e-6 * guess) ** 2))
                guess = min(guess, math.exp(0.5 * (log_square.mean() - _MEAN_LOG_CHI2)))
            return max(guess, _LEAST_SIGMA * spread) or 1.0
    return spread or 1.0
