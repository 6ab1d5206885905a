"""BARTRegressor: Bayesian additive regression trees with constant noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from boostplugins._validation import check_real, check_target
from boostplugins._warnings import warn
from boostplugins.estimators._bart_files import SavedTrees
from boostplugins.estimators._bart_results import RegressionResults
from boostplugins.estimators._refitting import all_or_nothing
from boostplugins.hbart.bins import Bins
from boostplugins.hbart.chains import Problem
from boostplugins.hbart.design import VarianceDesign
from boostplugins.hbart.priors import Hyperparameters, calibration_rows, guess_sigma, sigma_scale

# Scale given to a constant response, relative to its size: draws stay within rounding of it.
_CONSTANT_SCALE = 1e-9
# Degrees of freedom, or a probability, below which the prior of sigma is no distribution in floats.
_LEAST_PRIOR = 1e-9


class TreeRegressor(RegressionResults, SavedTrees):
    """What BARTRegressor and HBARTRegressor share; no estimator by itself."""

    nu: float
    q: float
    _saved_scalars = ("_centre", "_scale", "rhat_", "rhat_of_", "acceptance_", "interrupted_")

    def _fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, hyper: Hyperparameters, features: Any
    ) -> Any:
        """Scale the response to [-1/2, 1/2], calibrate the prior of sigma, and sample.

        `features` are the covariates of a log-linear variance, "none" for no such model.
        """
        X, matrix, kept = self._encode(X, y, sample_weight)
        y = check_target(y)[kept]
        low, high = float(y.min()), float(y.max())
        # Halves first: the range of huge responses could overflow.
        self._centre, self._scale = 0.5 * low + 0.5 * high, high - low
        if not np.isfinite(self._scale):
            raise ValueError(f"y must have a finite range, got {low:g} to {high:g}; rescale it")
        if self._scale == 0.0:
            warn(f"y is constant, {low:g}: the fit is that constant")
            self._scale = _CONSTANT_SCALE * max(abs(low), 1.0)
        target = (y - self._centre) / self._scale
        n_levels = np.array([len(levels or ()) for levels in self._columns.levels])
        self._bins = Bins.learn(matrix, n_levels, self.max_bins)
        z, indicators = np.empty((len(y), 0)), np.array(False)
        self._variance_design = None
        if not (isinstance(features, str) and features == "none"):
            self._variance_design = VarianceDesign.learn(X, matrix, self._columns, features)
            z = self._variance_design.standardised(X, matrix, self._columns)
            indicators = self._variance_design.indicators(self._columns)
        varies = z.shape[1] > 0 or hyper.n_variance_trees > 0
        some = calibration_rows(len(y))
        guess = guess_sigma(self._regressors(matrix[some]), target[some], self._weight[some], varies)
        problem = Problem(
            self._bins.codes(matrix),
            self._bins.rules(),
            target,
            np.empty(0),
            self._weight,
            z,
            sigma_scale(guess, hyper.nu, hyper.q),
            guess**2,
            0.0,
            _spread(target, self._weight),
            indicators,
        )
        self._sample(problem, hyper, matrix)
        return self

    def _sigma_prior(self) -> dict[str, float]:
        return {
            "nu": check_real("nu", self.nu, _LEAST_PRIOR),
            "q": check_real("q", self.q, _LEAST_PRIOR, 1, closed="left"),
        }


def _spread(target: np.ndarray, weight: np.ndarray) -> float:
    """Upper guess of the standard deviation of f: the response's, which it cannot exceed by much."""
    centred = target - np.average(target, weights=weight)
    return math.sqrt(np.average(centred**2, weights=weight)) or 0.5


class BARTRegressor(TreeRegressor):
    """Bayesian additive regression trees: a sum of many shallow trees plus normal noise.

    Parameters
    ----------
    n_trees : int, default=50
        Trees in the sum.
    n_burn : int, default=1000
        Iterations of each chain before the first draw.
    n_draws : int, default=500
        Draws kept of each chain.
    n_chains : int, default=2
        Independent chains; they mix slowly in every BART, so several show what one would hide.
    k : float or "sample", default=2.0
        Prior standard deviation of f is range(y) / (2 k); larger shrinks more. "sample" draws it: f's
        prior variance is scaled inverse chi-square of 3 degrees of freedom, below var(y) with
        probability 0.9.
    alpha, beta : float, default=0.95 and 2.0
        A node of depth d splits with prior probability alpha (1 + d)**-beta.
    nu, q : float, default=3.0 and 0.9
        sigma^2 has a scaled inverse chi-square prior of nu degrees of freedom, scaled so that sigma
        lies below the residual standard deviation of a linear regression with probability q.
    min_samples_leaf : int, default=5
        Least rows in a leaf.
    max_bins : int or None, default=None
        Most bins of a column. None keeps all values apart up to 2000 distinct ones, else takes 255
        bins of equal counts.
    cat_features : sequence of int or str, or None, default=None
        Categorical columns beside those whose type says so; rules send subsets of levels left. A
        level not seen in training counts as missing, and missing values go left or right as each
        rule has it.
    moves : tuple of three or four float, default=(2.5/9, 2.5/9, 4/9)
        Chances of GROW, PRUNE, CHANGE and, if given, SWAP (a rule and the one above change places).
    n_jobs : int or None, default=None
        Threads for the chains; None is 1, -1 all. Draws do not depend on it.
    random_state : int, Generator, RandomState or None, default=None
        Seed; None draws anew each time.
    verbose : bool or int, default=False
        Whether to show progress on the standard error stream.
    checkpoint : str, Path or None, default=None
        File that keeps where the chains stand; a fit that was killed goes on from it, to the same bits.
        A fit that ends removes it.
    checkpoint_every : int, default=100
        Iterations between two checkpoints.

    Attributes
    ----------
    posterior_ : Posterior
        Draws, compact.
    acceptance_ : dict
        Accepted share of the proposals, by move.
    rhat_ : float
        Largest split R-hat of sigma and of f's median over 24 training rows.
    rhat_of_ : str
        Which of them that is.
    interrupted_ : bool
        Whether sampling was interrupted; the draws so far are kept.
    n_draws_ : int
        Draws of all chains.

    Warns
    -----
    MixingWarning
        Where `rhat_` exceeds 1.05.

    References
    ----------
    .. [1] Chipman, George, McCulloch (2010), BART: Bayesian additive regression trees. Annals of
       Applied Statistics 4.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from boostplugins import BARTRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((200, 2))
    >>> y = 10.0 * (X[:, 0] > 0.5) + rng.standard_normal(200)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     model = BARTRegressor(n_trees=20, n_chains=2, random_state=0).fit(X, y)
    >>> bool(abs(model.predict([[0.9, 0.5]])[0] - 10.0) < 1.0)
    True
    """

    def __init__(
        self,
        n_trees: int = 50,
        n_burn: int = 1000,
        n_draws: int = 500,
        n_chains: int = 2,
        *,
        k: float | str = 2.0,
        alpha: float = 0.95,
        beta: float = 2.0,
        nu: float = 3.0,
        q: float = 0.9,
        min_samples_leaf: int = 5,
        max_bins: int | None = None,
        cat_features: Sequence[int | str] | None = None,
        moves: tuple[float, ...] = (2.5 / 9.0, 2.5 / 9.0, 4.0 / 9.0),
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 100,
    ) -> None:
        self.n_trees = n_trees
        self.n_burn = n_burn
        self.n_draws = n_draws
        self.n_chains = n_chains
        self.k = k
        self.alpha = alpha
        self.beta = beta
        self.nu = nu
        self.q = q
        self.min_samples_leaf = min_samples_leaf
        self.max_bins = max_bins
        self.cat_features = cat_features
        self.moves = moves
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> BARTRegressor:
        """Sample the posterior.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features; NaN where missing.
        y : array-like of shape (n_samples,)
            Responses.
        sample_weight : array-like of shape (n_samples,), optional
            Precisions: row i has variance sigma^2 / weight_i, weights scaled to mean 1.

        Returns
        -------
        self
            Fitted estimator.
        """
        hyper = Hyperparameters(**{**vars(self._check_params()), **self._sigma_prior()})
        return self._fit(X, y, sample_weight, hyper, "none")
