"""HBARTRegressor: Bayesian additive regression trees whose noise depends on the features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from boostplugins._validation import check_integer, check_option, check_real
from boostplugins.estimators._refitting import all_or_nothing
from boostplugins.estimators.bart import TreeRegressor
from boostplugins.hbart.design import INDICATOR_SCALE
from boostplugins.hbart.priors import Hyperparameters

_PAPER_K = 2.0
# Log variances beyond 60 are excluded, so that wider priors of gamma are all alike; where covariates are
# collinear, rounding would bury the data under them.
_GAMMA_VARIANCES = (1e-9, 1e6)
_FEW_ACCEPTED = 0.1  # of gamma's proposals; dozens of covariates have no more
_FEW_ROWS = 20  # of a level: they tell its log variance to within 0.6, two standard errors
_SPREADS = (1e-4, 1e4)  # beyond them the gamma functions of the leaf factors' prior lose their digits


class HBARTRegressor(TreeRegressor):
    """Heteroskedastic BART: a sum of trees for the mean, a model of the features for the variance.

    With ``variance="log-linear"`` [1]_, log sigma_i^2 = log sigma^2 + z_i' gamma; with
    ``variance="forest"`` [2]_, sigma_i^2 = sigma^2 times a product of trees.

    Parameters
    ----------
    n_trees : int, default=50
        Mean trees.
    n_burn : int, default=1000
        Iterations of each chain before the first draw.
    n_draws : int, default=500
        Draws kept of each chain.
    n_chains : int, default=2
        Independent chains. A single one understates what is not known of f, for it mixes slowly; more
        than two of the same total length overstate it, for they have not found the same place yet.
    variance : {"log-linear", "forest", "constant"}, default="log-linear"
        Model of the variance; "constant" is BART.
    variance_features : None, sequence of int or str, "none", callable or transformer, default=None
        Covariates of a log-linear variance: all columns (categories as one column a level), some,
        none at all, or what a function of X returns, such as `OrthogonalPolynomials`. In prediction
        each is cut to its range in training, so that a constant one has no effect; a level not seen
        there is the average level, or a missing one where levels were missing in training.
    n_variance_trees : int, default=20
        Trees of a variance forest.
    variance_spread : float, default=1.5
        Prior standard deviation of log sigma^2(x) under a variance forest, about.
    gamma_prior_variance : float, default=1000.0
        Prior variance of the effect of each numeric covariate, per standard deviation of the covariate.
        The default hardly shrinks; with many covariates for the rows at hand choose less, or let
        `HBARTRegressorCV` choose. Effects of levels have a prior variance of 4 times this (per standard
        deviation of a balanced 0/1 column, 0.5), but of level_spread**2 at most. Factors beyond exp(-60) ..
        exp(60) are excluded.
    level_spread : float, default=0.5
        Largest prior standard deviation of the effect on log sigma^2 of a category's level, and of a
        value's being missing, however few its rows.
    gamma_proposal : {"mode", "slice", "gamerman"}, default="mode"
        How gamma moves: by Metropolis with a multivariate t around the conditional mode; by elliptical
        slices of the same t, which always move, where dozens of covariates leave the first few accepted
        proposals; or by the single scoring step of Gamerman (1997), which can fail to move at all, for
        comparison.
    k : float, "sample" or None, default=None
        Prior standard deviation of f is range(y) / (2 k); larger shrinks more. "sample" draws it: f's
        prior variance is scaled inverse chi-square of 3 degrees of freedom, below var(y) with
        probability 0.9. None draws it under a variance forest and is 2 otherwise.
    alpha, beta : float, default=0.95 and 2.0
        A node of depth d splits with prior probability alpha (1 + d)**-beta.
    nu, q : float, default=3.0 and 0.9
        sigma^2 has a scaled inverse chi-square prior of nu degrees of freedom, scaled so that sigma
        lies with probability q below a guess from a linear regression: the geometric mean of the
        residuals' size, since sigma is the noise at the centre of the covariates.
    min_samples_leaf : int, default=5
        Least rows in a leaf.
    max_bins : int or None, default=None
        Most bins of a column. None keeps all values apart up to 2000 distinct ones, else takes 255
        bins of equal counts.
    cat_features : sequence of int or str, or None, default=None
        Categorical columns beside those whose type says so; rules send subsets of levels left.
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
    variance_names_ : tuple of str
        Names of the variance covariates, in the order of gamma.
    acceptance_ : dict
        Accepted share of the proposals, by move.
    rhat_ : float
        Largest split R-hat of sigma, gamma and of f's median over 24 training rows.
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

    Notes
    -----
    A level of m rows tells its log variance to within a standard error of sqrt(2 / m), and the mean may fit
    all of them: the prior has to say what few rows do not. Under a vague one, whose standard deviation is
    that of the coefficient per standard deviation of a 0/1 column, a rare level's variance may be anything
    within the factors that are not excluded, and intervals with it. So the prior of a level's effect is of
    the noise itself, the same for rare and common levels: with the default `level_spread` of 0.5, two
    levels' standard deviations of the noise differ a priori by a factor of 2 or less (0.95 probability),
    and much more where their rows say so. Numbers keep the vague prior, 0/1 columns among them: give rare
    categories as levels, or choose a lower `gamma_prior_variance`.

    References
    ----------
    .. [1] Bleich, Kapelner (2014), Bayesian additive regression trees with parametric models of
       heteroskedasticity. arXiv 1402.5397.
    .. [2] Pratola, Chipman, George, McCulloch (2020), Heteroscedastic BART via multiplicative
       regression trees. Journal of Computational and Graphical Statistics 29.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from boostplugins import HBARTRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = np.linspace(0.0, 1.0, 250)[:, None]
    >>> y = 100.0 * X[:, 0] + np.exp(3.5 * X[:, 0]) * rng.standard_normal(250)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     model = HBARTRegressor(n_trees=20, n_chains=2, random_state=0).fit(X, y)
    >>> low, high = model.predict_interval([[0.1], [0.9]])
    >>> bool(high[1] - high[0] > 5 * (low[1] - low[0]))
    True
    >>> bool(5.5 < model.posterior_draws()["gamma"].mean() < 8.5)
    True
    """

    def __init__(
        self,
        n_trees: int = 50,
        n_burn: int = 1000,
        n_draws: int = 500,
        n_chains: int = 2,
        *,
        variance: str = "log-linear",
        variance_features: Sequence[int | str] | Callable[[Any], Any] | str | None = None,
        n_variance_trees: int = 20,
        variance_spread: float = 1.5,
        gamma_prior_variance: float = 1000.0,
        level_spread: float = 0.5,
        gamma_proposal: str = "mode",
        k: float | str | None = None,
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
        self.variance = variance
        self.variance_features = variance_features
        self.n_variance_trees = n_variance_trees
        self.variance_spread = variance_spread
        self.gamma_prior_variance = gamma_prior_variance
        self.level_spread = level_spread
        self.gamma_proposal = gamma_proposal
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
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> HBARTRegressor:
        """Sample the posterior.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features; NaN where missing.
        y : array-like of shape (n_samples,)
            Responses.
        sample_weight : array-like of shape (n_samples,), optional
            Precisions: the variance of row i is divided by weight_i; weights are scaled to mean 1.

        Returns
        -------
        self
            Fitted estimator.
        """
        hyper, features = self._check_variance()
        self._fit(X, y, sample_weight, hyper, features)
        return self

    def _k(self) -> float | None:
        if self.k is None:
            return None if self.variance == "forest" else _PAPER_K
        return super()._k()

    def _worst_covariate(self) -> int | None:
        """Number of the variance covariate of the largest R-hat, None for another quantity."""
        name, _, number = self.rhat_of_.partition("[")
        return int(number.removesuffix("]")) if name == "gamma" else None

    def _worst(self) -> str:
        j = self._worst_covariate()
        return super()._worst() if j is None else f"gamma[{self.variance_names_[j]}]"

    def _advice(self) -> str:
        more, j = super()._advice(), self._worst_covariate()
        accepted = self.acceptance_.get("gamma", 1.0)
        if accepted <= _FEW_ACCEPTED:
            stuck = (
                f"{accepted:.1%} of gamma's proposals were accepted: gamma_proposal='slice' always moves, "
                "and a lower gamma_prior_variance, fewer variance_features or variance='forest' mix better"
            )
            return stuck if j is not None else f"{more}. {stuck}"
        rows = None if j is None else self._rows_of_indicator(j)
        if rows is None or rows >= _FEW_ROWS:
            return more
        few = "1 row" if rows == 1 else f"{rows} rows"
        return f"it has {few}: a lower level_spread, or variance='forest', asks less of so few"

    def _rows_of_indicator(self, j: int) -> int | None:
        """Training rows of a level, or with a missing value; None for a number."""
        design = self._variance_design
        if design is None or not np.broadcast_to(design.indicators(self._columns), len(design.names))[j]:
            return None
        return round(float(design.centre[j]) * len(self._weight))

    def _check_variance(self) -> tuple[Hyperparameters, Any]:
        check_option("variance", self.variance, ("log-linear", "forest", "constant"))
        check_option("gamma_proposal", self.gamma_proposal, ("mode", "slice", "gamerman"))
        check_integer("n_variance_trees", self.n_variance_trees, 1)
        features = self.variance_features
        if isinstance(features, str) and features != "none":
            raise ValueError(
                f"variance_features must be None, a list of columns, 'none' or a function, got {features!r}; "
                f"write [{features!r}] for one column"
            )
        if isinstance(features, Real):
            raise TypeError(
                f"variance_features must be None, a list of columns or a function, got {features!r}"
            )
        if self.variance != "log-linear":
            if features is not None and not isinstance(features, str):
                raise ValueError(
                    "variance_features belong to variance='log-linear'; "
                    f"leave them None with variance={self.variance!r}"
                )
            features = "none"
        extra = {
            "n_variance_trees": int(self.n_variance_trees) if self.variance == "forest" else 0,
            "variance_spread": check_real("variance_spread", self.variance_spread, *_SPREADS),
            "gamma_var": check_real("gamma_prior_variance", self.gamma_prior_variance, *_GAMMA_VARIANCES),
            "indicator_var": (INDICATOR_SCALE * check_real("level_spread", self.level_spread, *_SPREADS))
            ** 2,
            "gamerman": self.gamma_proposal == "gamerman",
            "slices": self.gamma_proposal == "slice",
        }
        return Hyperparameters(**{**vars(self._check_params()), **self._sigma_prior(), **extra}), features

    @property
    def variance_names_(self) -> tuple[str, ...]:
        """Names of the variance covariates, in the order of gamma."""
        return self._variance_design.names if self._variance_design is not None else ()
