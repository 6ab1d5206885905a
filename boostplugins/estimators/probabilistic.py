"""The predictive interface that every probabilistic regressor shares."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from boostplugins._blocks import in_blocks
from boostplugins._validation import check_target, check_weight
from boostplugins.metrics._checks import mean as weighted_mean

if TYPE_CHECKING:
    from boostplugins.predictive import Predictive
    from boostplugins.uncertainty import Uncertainty


class ProbabilisticRegressorMixin(RegressorMixin):
    """Means, intervals, quantiles, uncertainties and log scores from one `predict_dist`.

    A regressor implements `predict_dist`; the rest follows from the `Predictive` that it returns.
    """

    @abstractmethod
    def predict_dist(self, X: Any) -> Predictive:
        """Predict the whole distribution of the response.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        Predictive
            One distribution, or mixture of member distributions, a row.
        """

    def predict(self, X: Any) -> np.ndarray:
        """Predict the mean of the response.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictive means, in units of the target.
        """
        return in_blocks(lambda rows: self.predict_dist(rows).mean(), X)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Predict a central interval of the response.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.
        coverage : float, default=0.9
            Probability within the interval, in (0, 1); equal tails are left on either side.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper end, in units of the target.
        """
        return in_blocks(lambda rows: self.predict_dist(rows).interval(coverage), X)

    def predict_quantiles(self, X: Any, q: ArrayLike) -> np.ndarray:
        """Predict quantiles of the response.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.
        q : array-like of shape (n_quantiles,)
            Probabilities in (0, 1).

        Returns
        -------
        ndarray of shape (n_samples, n_quantiles)
            Quantiles, non-decreasing in `q`, in units of the target.
        """
        levels = quantile_levels(q)

        def quantiles(rows: Any) -> np.ndarray:
            dist = self.predict_dist(rows)
            return np.stack([dist.ppf(level) for level in levels], axis=1)

        return in_blocks(quantiles, X)

    def predict_uncertainty(self, X: Any) -> Uncertainty:
        """Split the predictive variance into knowledge and data parts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        Uncertainty
            Variances in squared units of the target; knowledge is 0 for a single member.
        """
        return in_blocks(lambda rows: self.predict_dist(rows).uncertainty(), X)

    def log_score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Average the log predictive density (or probability) of observed responses.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.
        y : array-like of shape (n_samples,)
            Observed responses.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        float
            Mean log density, higher is better.
        """
        scores = in_blocks(lambda rows, seen: self.predict_dist(rows).log_pdf(seen), X, check_target(y))
        return weighted_mean(scores, check_weight(sample_weight, len(scores)))


def quantile_levels(q: ArrayLike) -> np.ndarray:
    """Check the probabilities whose quantiles are asked for.

    Parameters
    ----------
    q : array-like of shape (n_quantiles,)
        Probabilities, or one.

    Returns
    -------
    ndarray of shape (n_quantiles,)
        The same.
    """
    levels = np.atleast_1d(np.asarray(q, dtype=np.float64))
    if levels.ndim != 1 or not len(levels):
        raise ValueError(f"q must be a number or have shape (n_quantiles,), got {levels.shape}")
    return levels
