"""SGLBRegressor: a regressor that samples its posterior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from boostplugins._blocks import in_blocks
from boostplugins._validation import check_target, check_weight
from boostplugins.estimators._frames import fit_frame, predict_frame
from boostplugins.estimators._labels import labels_of
from boostplugins.estimators._refitting import all_or_nothing
from boostplugins.estimators._rows import check_rows, held_out
from boostplugins.estimators._sglb_base import SGLBBase
from boostplugins.estimators.probabilistic import ProbabilisticRegressorMixin
from boostplugins.losses import FamilyLikelihood, NormalLikelihood, SquaredError, get_loss
from boostplugins.uncertainty import Uncertainty

if TYPE_CHECKING:
    from boostplugins.predictive import Predictive

# Rounding of the responses at most, as a share of their standard deviation.
_MOST_LOST = 0.1
# Beyond these, variances and directions leave the range of single precision.
_LEAST_SPREAD, _LARGEST = 1e-18, 1e37


class SGLBRegressor(ProbabilisticRegressorMixin, SGLBBase):
    """Regressor that samples its posterior by (cyclical) stochastic gradient Langevin boosting.

    Parameters
    ----------
    loss : str or Loss, optional
        "squared_error" (default; one noise variance, estimated on held-out rows if not given) or
        "normal" (mean and standard deviation of each row).
    booster : {"catboost", "lightgbm"}, default="catboost"
        Who grows the trees.
    schedule : GradientSchedule, optional
        Gradient schedule; by default cosine cycles, ten over the run, or more where they would be longer
        than 50 iterations. `Constant` for plain SGLB.
    mask : RowMask, optional
        `BernoulliMask` for bootstrap exploration; every row by default.
    temperature : float, default=1.0
        Inverse temperature: 1 samples the posterior, larger is colder, ``math.inf`` is no noise.
        Steer the fit by learning rate, depth and leaf size rather than by this: colder chains score
        better in the domain and know less beyond it.
    shrink : float, optional
        Rate at which the model is shrunk to its start, a Gaussian prior on leaf values. By default
        the prior is worth 400 rows: 400 / n_samples, at most 0.5.
    structure_noise : float, default=0.1
        Factor of the noise that the choice of splits sees; leaves keep the whole noise.
    prior : RandomPrior, "auto" or None, default="auto"
        Random function of the numeric features added to the raw scores of each cycle, zero on the training
        rows, so that members differ where there are no data. "auto": `RandomPrior` where there are
        numeric features, the chain has noise, and there are cycles or several chains.
    n_estimators : int, default=500
        Iterations of a chain.
    learning_rate : float, optional
        Step of the chain, in (0, 1]; 0.015 by default.
    depth : int, optional
        Depth of the trees: 6 by default on CatBoost; LightGBM grows 64 leaves, the best ones first.
    min_samples_leaf : int, default=30
        Least rows of a leaf; at most a tenth of the rows.
    n_chains : int, default=1
        Independent chains; their members are pooled.
    cat_features : sequence of int or str, optional
        Categorical columns besides those whose type says so.
    early_stopping_rounds : int, optional
        Stop after so many iterations, at least a cycle, without a better log score on held-out rows.
    validation_fraction : float, optional
        Share of the training rows to hold out.
    n_jobs : int, optional
        Threads; all by default. Results do not depend on it.
    verbose : bool or int, default=False
        Show progress, every so many iterations; LightGBM shows none without held-out rows.
    random_state : int, Generator, RandomState or None, default=0
        Seed; an integer gives the same model anywhere.
    booster_params : dict, optional
        Further parameters of the booster.
    checkpoint : str, Path or None, default=None
        File that keeps where the fit stands; one that was killed goes on from it, to the same bits. A
        fit that ends removes it. On CatBoost, whose own snapshot does it, a second file stands beside.
    checkpoint_every : int, default=50
        Iterations between two checkpoints.

    Attributes
    ----------
    models_ : list
        The boosters' own models, one a chain.
    n_members_ : int
        Members of the ensemble, over all chains.
    n_iterations_ : int
        Iterations of the first chain.
    constant_ : ndarray of shape (n_outputs,)
        Raw scores of the loss's best constant.
    loss_ : Loss
        Loss with the settings taken from the data, such as the noise variance.
    n_features_in_ : int
        Number of features.
    categorical_features_ : list of int
        Numbers of the categorical columns.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from boostplugins import SGLBRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SGLBRegressor(n_estimators=100, depth=4).fit(X, y)
    >>> model.predict_interval(X, coverage=0.9).shape
    (442, 2)
    """

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        eval_set: tuple[Any, ...] | list[tuple[Any, ...]] | None = None,
        callbacks: Sequence[Any] = (),
    ) -> Self:
        """Train the chains.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features; NaN stands for missing numbers.
        y : array-like of shape (n_samples,)
            Finite responses, whose spread single precision can hold.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.
        eval_set : tuple of (X, y) or (X, y, sample_weight), or list with one, optional
            Held-out rows for early stopping.
        callbacks : sequence, default=()
            User callbacks; their exceptions keep their type.

        Returns
        -------
        SGLBRegressor
            This estimator.
        """
        settings = self._check_settings()
        loss = SquaredError() if self.loss is None else get_loss(self.loss)
        if loss.classification:
            raise ValueError(f"loss must be a regression loss, got {loss.name!r}; use SGLBClassifier")
        frame, categorical = fit_frame(self, X, self.cat_features)
        target = check_target(labels_of(y, len(frame)))
        _check_rounding(target)
        weight = check_weight(sample_weight, len(target))
        self.categorical_features_ = categorical
        held = None
        if eval_set is not None:
            X_held, y_held, held_weight, _ = held_out(eval_set, 3)
            rows = predict_frame(self, X_held, categorical)
            held = check_rows(rows, y_held, held_weight, None, "y of eval_set")[:3]
        self._train(frame, target, loss, weight, held, callbacks, settings, stratify=False)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict the mean response.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Mean over the members, in units of the target.
        """
        check_is_fitted(self, "models_")
        return in_blocks(lambda rows: self.loss_.response(self.members(rows)).mean(axis=1), X)

    def predict_uncertainty(self, X: Any) -> Uncertainty:
        """Split the predictive variance of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        Uncertainty
            Knowledge, data and total variances in squared units of the target.
        """
        check_is_fitted(self, "models_")
        return in_blocks(lambda rows: self.loss_.uncertainty(self.members(rows)), X)

    def predict_dist(self, X: Any) -> Predictive:
        """Predict the whole distribution of the response.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        Predictive
            A mixture of Normals, or of the loss's family, one a member.
        """
        from boostplugins.families import Normal
        from boostplugins.predictive import Predictive

        members = self.members(X)
        if isinstance(self.loss_, NormalLikelihood):
            theta = np.stack([members[..., 0], np.exp(self.loss_.log_sigma(members))], axis=-1)
        elif isinstance(self.loss_, SquaredError):
            sigma = math.sqrt(self.loss_.noise_variance or 0.0)
            theta = np.stack([members[..., 0], np.full(members.shape[:2], sigma)], axis=-1)
        elif isinstance(self.loss_, FamilyLikelihood):
            return Predictive(self.loss_.family, self.loss_.theta(members))
        else:
            raise AttributeError(f"the {self.loss_.name} loss has no predictive distribution")
        return Predictive(Normal(), theta)


def _check_rounding(y: np.ndarray) -> None:
    """Refuse responses whose spread is lost in the single precision in which boosters keep labels."""
    with np.errstate(all="ignore"):
        lost = np.std(y - y.astype(np.float32))
        spread = np.std(y - y[0])
    if (y == y[0]).all():  # whose computed spread is not quite 0; nothing is to be learned from it
        spread = lost = 0.0
    if not np.abs(y).max() < _LARGEST or 0.0 < spread < _LEAST_SPREAD:
        raise ValueError(
            f"y must have a standard deviation of at least {_LEAST_SPREAD:g} and no value beyond "
            f"{_LARGEST:g}, got {spread:.3g} and {np.abs(y).max():.3g}; use another unit"
        )
    if lost > _MOST_LOST * spread:
        raise ValueError(
            "y must keep its spread in single precision, in which boosters hold labels: its standard "
            f"deviation is {spread:.3g}, rounding adds {lost:.3g}; subtract a constant from y: its mean"
        )
