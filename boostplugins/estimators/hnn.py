"""HNNRegressor: heteroskedastic networks and deep ensembles of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from boostplugins.estimators._networks import PairRegressor, hidden_units
from boostplugins.estimators._refitting import all_or_nothing
from boostplugins.usnrt.workers import Progress


class HNNRegressor(PairRegressor):
    """A mean network and a variance network for all rows; a deep ensemble if several.

    Parameters
    ----------
    n_members : int, default=1
        Pairs of networks; more than 1 give a deep ensemble [1]_ with a knowledge part.
    hidden : sequence of int, optional
        Hidden units of both networks; by default (8 d, 4 d) for d features.
    rounds : int, default=2
        Turns of mean, then variance.
    beta : float, default=0.0
        0: errors of the mean weigh 1 / variance, the likelihood; 1: all weigh the same; between the
        two, a variance to the power ``beta - 1`` (beta-NLL).
    calibration : {"shape", "scale", "coverage", None}, default="shape"
        Correction by held-out rows (20 at least). "shape" puts the distribution of standardised
        errors, skewed or heavy-tailed as they are, in the place of the Normal: a mixture of 20
        Normals. "scale" and "coverage" stay with the Normal and multiply its variance: for the best
        likelihood, or the best calibrated percentiles. None is the plain network.
    variance_floor : float, default=1e-8
        Least variance, in units of the target's variance.
    max_epochs : int, default=1000
        Most epochs of a network.
    batch_size : int, default=64
        Rows of a mini-batch.
    learning_rate : float, default=0.01
        Adam's rate.
    patience : int, default=20
        Epochs without a lower validation loss after which a network stops.
    learning_rate_drops : int, default=1
        How often a stalled network first goes on from its best weights at a tenth of the rate.
    validation_fraction : float, default=0.2
        Share of rows, drawn anew for each member, held out for early stopping and calibration.
    cat_features : sequence of int or str, optional
        Categorical columns besides those whose type says so.
    dtype : {"float32", "float64"}, default="float32"
        Arithmetic of the networks.
    n_jobs : int, optional
        Threads over members; never changes a bit of the result.
    verbose : bool or int, default=False
        Whether to show progress.
    random_state : int, Generator, RandomState or None, default=0
        Seed of starts, orders and validation rows.

    Attributes
    ----------
    members_ : list of TreeModel
        Members, each a single leaf.
    history_ : list of tuple of History
        Validation losses of each member, in turns of mean and variance.
    n_iter_ : int
        Most epochs that a network ran.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where X had names.

    References
    ----------
    .. [1] Lakshminarayanan, Pritzel, Blundell (2017), Simple and scalable predictive uncertainty
       estimation using deep ensembles. NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins import HNNRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(800, 1))
    >>> y = X[:, 0] + rng.normal(size=800) * np.exp(X[:, 0] - 1)
    >>> model = HNNRegressor(n_members=2, max_epochs=20).fit(X, y)
    >>> u = model.predict_uncertainty([[-0.8], [0.8]])
    >>> bool(u.data[1] > 3 * u.data[0]), bool((u.knowledge > 0).all())
    (True, True)
    """

    def __init__(
        self,
        n_members: int = 1,
        *,
        hidden: Sequence[int] | None = None,
        rounds: int = 2,
        beta: float = 0.0,
        calibration: str | None = "shape",
        variance_floor: float = 1e-8,
        max_epochs: int = 1000,
        batch_size: int = 64,
        learning_rate: float = 0.01,
        patience: int = 20,
        learning_rate_drops: int = 1,
        validation_fraction: float = 0.2,
        cat_features: Sequence[Any] | None = None,
        dtype: str = "float32",
        n_jobs: int | None = None,
        verbose: bool | int = False,
        random_state: int | np.random.Generator | np.random.RandomState | None = 0,
    ) -> None:
        self.n_members = n_members
        self.hidden = hidden
        self.rounds = rounds
        self.beta = beta
        self.calibration = calibration
        self.variance_floor = variance_floor
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.patience = patience
        self.learning_rate_drops = learning_rate_drops
        self.validation_fraction = validation_fraction
        self.cat_features = cat_features
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        callback: Callable[[Progress], object] | None = None,
    ) -> Self:
        """Train the networks.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Features; NaN for missing.
        y : array-like of shape (n_samples,)
            Responses.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows in the losses.
        callback : callable, optional
            Called with a `boostplugins.usnrt.workers.Progress` (member, node, network, epoch, loss)
            at the start and after each epoch of each network, from several threads if `n_jobs` says
            so; what it raises ends the fit, as a tuner that prunes wants.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_pair_params()
        problem = self._prepare(X, y, sample_weight, self.n_members)
        hidden = hidden_units("hidden", self.hidden, (8, 4), self.n_features_in_)
        self._fit_members(problem, None, hidden, callback)
        return self
