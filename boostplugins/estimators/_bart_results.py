"""What a fitted regression with Bayesian trees can tell: means, intervals, draws, all by blocks of rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from boostplugins._validation import check_integer, check_real, check_target, check_weight
from boostplugins.estimators._bart_base import BayesianTrees
from boostplugins.estimators.probabilistic import ProbabilisticRegressorMixin
from boostplugins.hbart.diagnostics import interaction_counts, split_counts
from boostplugins.metrics._checks import mean as weighted_mean
from boostplugins.predictive import Predictive
from boostplugins.uncertainty import Uncertainty

# Members times rows that one Predictive may hold; beyond it draws are thinned evenly.
_LARGEST_MIXTURE = 20_000_000


def mean_over_draws(values: np.ndarray) -> np.ndarray:
    """Average over the first axis, draw by draw: NumPy's own order of additions depends on the shape.

    Parameters
    ----------
    values : ndarray of shape (n_draws, n)
        Values.

    Returns
    -------
    ndarray of shape (n,)
        Means.
    """
    total = np.zeros(values.shape[1])
    for draw in values:
        total += draw
    return total / len(values)


class PosteriorResults(BayesianTrees):
    """Draws, their parameters and what the trees use: shared by regressors and the classifier."""

    def _blocks(self, X: Any, variance: bool = True) -> Iterator[tuple[slice, np.ndarray, Any]]:
        """Means and variances of blocks of rows on the scaled response, (n_draws, rows) each."""
        matrix = self._matrix(X)
        z = self._design(X, matrix) if variance else np.empty((len(matrix), 0))
        for rows in self.posterior_.row_blocks(len(matrix)):
            codes = self._bins.codes(matrix[rows])
            mean, spread = self.posterior_.moments(codes, z[rows], variance=variance)
            yield rows, mean, spread

    def _k_draws(self) -> dict[str, np.ndarray]:
        """Draws of k by chain, if it was drawn."""
        posterior = self.posterior_
        if not np.ptp(posterior.leaf_var) > 0:  # unknown in old files
            return {}
        n_trees = posterior.mean.structure.shape[1]
        return {"k": posterior.by_chain(self._half_range / np.sqrt(posterior.leaf_var * n_trees))}

    def inclusion_proportions(self) -> np.ndarray:
        """Share of the mean trees' rules on each column, averaged over draws.

        Returns
        -------
        ndarray of shape (n_features,)
            Shares; they sum to 1 unless no draw has a rule.
        """
        check_is_fitted(self, "posterior_")
        counts = split_counts(self.posterior_.mean, self.n_features_in_).astype(np.float64)
        total = counts.sum(axis=1, keepdims=True)
        return np.divide(counts, total, out=np.zeros_like(counts), where=total > 0).mean(axis=0)

    def interaction_counts(self) -> np.ndarray:
        """Mean number of parent and child rules on each pair of columns.

        Returns
        -------
        ndarray of shape (n_features, n_features)
            Counts a draw, symmetric.
        """
        check_is_fitted(self, "posterior_")
        return interaction_counts(self.posterior_.mean, self.n_features_in_)

    @abstractmethod
    def posterior_draws(self, X: Any = None) -> dict[str, np.ndarray]:
        """Draws by chain.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), optional
            Rows to evaluate too.

        Returns
        -------
        dict of ndarray of shape (n_chains, n_draws, ...)
            Draws.
        """

    def to_arviz(self, X: Any = None) -> Any:
        """Hand the draws to ArviZ.

        Parameters
        ----------
        X : array-like, optional
            Rows at which f is wanted too.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            What the installed ArviZ makes of `posterior_draws`.

        Raises
        ------
        ImportError
            Without ArviZ: install the extra ``boostplugins[arviz]``.
        """
        try:
            import arviz
        except ImportError:
            raise ImportError("to_arviz needs ArviZ: pip install 'boostplugins[arviz]'") from None
        draws = {"posterior": self.posterior_draws(X)}
        # ArviZ 1 takes the groups as one dictionary, earlier versions as keywords.
        if int(arviz.__version__.split(".")[0]) >= 1:
            return arviz.from_dict(draws)
        return arviz.from_dict(**draws)


class RegressionResults(ProbabilisticRegressorMixin, PosteriorResults):
    """Predictions of a regression, in units of the target."""

    _centre: float
    _scale: float

    def predict(self, X: Any) -> np.ndarray:
        """Predict the mean of the response: the posterior mean of f over all draws.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Means; memory does not grow with rows times draws.
        """
        blocks = [mean_over_draws(mean) for _, mean, _ in self._blocks(X, variance=False)]
        return self._centre + self._scale * np.concatenate(blocks)

    def predict_dist(self, X: Any) -> Predictive:
        """Predict the whole distribution: a mixture of normals, one a draw.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        Predictive
            Mixture; evenly thinned draws where rows times draws exceed 2e7. The other methods of
            prediction work in blocks and never thin.
        """
        matrix = self._matrix(X)
        step = max(1, -(-len(matrix) * self.n_draws_ // _LARGEST_MIXTURE))
        return self._mixture(X, slice(None, None, step))

    def _mixture(self, X: Any, members: slice) -> Predictive:
        parts = [self._members(mean[members], spread[members]) for _, mean, spread in self._blocks(X)]
        return Predictive("normal", np.concatenate(parts))

    def _members(self, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
        theta = np.empty((mean.shape[1], mean.shape[0], 2))
        theta[:, :, 0] = self._centre + self._scale * mean.T
        theta[:, :, 1] = self._scale * np.sqrt(spread.T)
        return theta

    def _by_block(self, X: Any, function: Callable[[Predictive, slice], Any]) -> list[Any]:
        return [
            function(Predictive("normal", self._members(mean, spread)), rows)
            for rows, mean, spread in self._blocks(X)
        ]

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Predict an interval of the response: posterior spread of f plus noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        coverage : float, default=0.9
            Probability that a new response lies inside, in (0, 1).

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper end.
        """
        return np.concatenate(self._by_block(X, lambda dist, rows: dist.interval(coverage)))

    def predict_credible_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Give an interval of the mean f alone, without the noise of a response.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        coverage : float, default=0.9
            Posterior probability inside, in (0, 1).

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper end; narrower than `predict_interval`.
        """
        check_real("coverage", coverage, 0, 1, closed="neither")
        tails = [0.5 * (1.0 - coverage), 0.5 * (1.0 + coverage)]
        blocks = [np.quantile(mean, tails, axis=0).T for _, mean, _ in self._blocks(X, variance=False)]
        return self._centre + self._scale * np.concatenate(blocks)

    def predict_quantiles(self, X: Any, q: ArrayLike) -> np.ndarray:
        """Predict quantiles of the response.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        q : array-like of shape (n_quantiles,)
            Probabilities in (0, 1).

        Returns
        -------
        ndarray of shape (n_samples, n_quantiles)
            Quantiles.
        """
        levels = np.atleast_1d(np.asarray(q, dtype=float))
        if levels.ndim != 1 or not len(levels):
            raise ValueError(f"q must be a number or have shape (n_quantiles,), got {levels.shape}")
        blocks = self._by_block(X, lambda dist, rows: np.stack([dist.ppf(level) for level in levels], axis=1))
        return np.concatenate(blocks)

    def predict_uncertainty(self, X: Any) -> Uncertainty:
        """Split the predictive variance into the spread of f (knowledge) and the noise (data).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        Uncertainty
            Variances in squared units of the target.
        """
        parts = self._by_block(X, lambda dist, rows: dist.uncertainty())
        names = ("knowledge", "data", "total")
        return Uncertainty(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def log_score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Average the log predictive density of observed responses.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Responses.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the average.

        Returns
        -------
        float
            Mean log density, higher is better.
        """
        y = check_target(y)
        weight = check_weight(sample_weight, len(y))
        if len(X) != len(y):
            raise ValueError(f"X and y must have as many rows, got {len(X)} and {len(y)}")
        density = self._by_block(X, lambda dist, rows: dist.log_pdf(y[rows]))
        return weighted_mean(np.concatenate(density), weight)

    def posterior_draws(self, X: Any = None) -> dict[str, np.ndarray]:
        """Draws by chain, in the user's units.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), optional
            Rows at which f and the noise's standard deviation are wanted too.

        Returns
        -------
        dict of ndarray of shape (n_chains, n_draws, ...)
            ``sigma``: standard deviation of the noise (at the mean of the variance covariates);
            ``gamma``: effects on the log variance of one unit of each covariate, if any, and of a level
            against the average one; ``k``, if it is drawn; with X, ``f`` and ``noise`` at its rows. ArviZ
            reads such a dictionary as it is. Of collinear covariates only what they do together is known:
            each one's effect is as uncertain as its prior.
        """
        check_is_fitted(self, "posterior_")
        posterior = self.posterior_
        draws = {"sigma": posterior.by_chain(self._scale * np.sqrt(posterior.sigma2))}
        if self._variance_design is not None and posterior.gamma.shape[1]:
            draws["gamma"] = posterior.by_chain(self._variance_design.effects(posterior.gamma, self._columns))
        draws |= self._k_draws()
        if X is not None:
            parts = list(self._blocks(X))
            f = self._centre + self._scale * np.concatenate([mean for _, mean, _ in parts], axis=1)
            noise = self._scale * np.sqrt(np.concatenate([spread for _, _, spread in parts], axis=1))
            draws["f"], draws["noise"] = posterior.by_chain(f), posterior.by_chain(noise)
        return draws

    def partial_dependence(
        self, X: Any, feature: int | str, grid: ArrayLike | None = None, coverage: float = 0.9
    ) -> dict[str, np.ndarray]:
        """Average f over rows whose one column is set to each grid value.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to average over.
        feature : int or str
            Column to set.
        grid : array-like, optional
            Values; by default up to 20 quantiles of the column in X, or all levels of a categorical one,
            by number. Levels may be given by name; NaN is a missing value.
        coverage : float, default=0.9
            Posterior probability inside the band.

        Returns
        -------
        dict of ndarray of shape (n_grid,)
            ``grid``, ``mean``, ``lower`` and ``upper``.

        Raises
        ------
        ValueError
            For a level that training did not show.
        """
        check_real("coverage", coverage, 0, 1, closed="neither")
        matrix = self._matrix(X)
        j = self._columns.position(feature)
        values = self._columns.grid(j, matrix[:, j], grid)
        curve = np.empty((len(values), self.n_draws_))
        for i, value in enumerate(values):
            matrix[:, j] = value
            curve[i] = self._mean_over_rows(matrix)
        curve = self._centre + self._scale * curve
        tails = [0.5 * (1.0 - coverage), 0.5 * (1.0 + coverage)]
        lower, upper = np.quantile(curve, tails, axis=1)
        return {"grid": values, "mean": curve.mean(axis=1), "lower": lower, "upper": upper}

    def _mean_over_rows(self, matrix: np.ndarray) -> np.ndarray:
        total = np.zeros(self.n_draws_)
        for rows in self.posterior_.row_blocks(len(matrix)):
            codes = self._bins.codes(matrix[rows])
            total += self.posterior_.mean.predict(codes, slice(None), False).sum(axis=1)
        return total / len(matrix)

    def sample_posterior_predictive(self, X: Any, size: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw responses.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        size : int, default=1
            Draws a row.
        random_state : int, Generator or None, default=None
            Source of randomness.

        Returns
        -------
        ndarray of shape (n_samples, size)
            Responses; f, noise and gamma of each come from the same posterior draw.
        """
        check_integer("size", size, 1)
        rng = np.random.default_rng(random_state)
        return np.concatenate(self._by_block(X, lambda dist, rows: dist.sample(size, rng)))
