"""USNRTRegressor: mean and variance networks in the leaves of a tree grown by Levene's test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from boostplugins._validation import check_integer, check_option, check_real
from boostplugins.estimators._networks import PairRegressor, hidden_units, least_rows
from boostplugins.estimators._refitting import all_or_nothing
from boostplugins.usnrt.growth import TreePlan
from boostplugins.usnrt.picture import draw_tree
from boostplugins.usnrt.splits import SPLIT_TESTS
from boostplugins.usnrt.tree import describe, write_text
from boostplugins.usnrt.workers import Progress


class USNRTRegressor(PairRegressor):
    """Uncertainty-splitting neural regression tree, single or as an ensemble [1]_.

    A tree divides the rows where the residuals of a splitting network differ most in variance, by
    Levene's test; each leaf holds a network of the mean and one of the variance, trained in turns.

    Parameters
    ----------
    n_members : int, default=1
        Trees; more than 1 give a mixture with a knowledge part.
    split_hidden : sequence of int, optional
        Hidden units of the splitting networks; by default (8 d, 4 d) for d features.
    leaf_hidden : sequence of int, optional
        Hidden units of the leaves' networks; by default (4 d, 2 d).
    split_test : {"levene-adjusted", "levene"}, default="levene-adjusted"
        "levene", the paper's rule, compares the smallest of thousands of p-values with `alpha` and
        so splits homoskedastic data too; "levene-adjusted" is a test of level `alpha` of the
        largest statistic; see `boostplugins.usnrt.splits.best_split`.
    alpha : float, default=0.01
        Level at which a node is divided.
    min_samples_leaf : int, optional
        Rows that a leaf must have; by default the larger of n / 10 and 1000.
    rounds : int, default=2
        Turns of mean, then variance.
    beta : float, default=0.0
        0: errors of the mean weigh 1 / variance, the likelihood; 1: all weigh the same; between the
        two, a variance to the power ``beta - 1`` (beta-NLL).
    calibration : {"shape", "scale", "coverage", None}, default="shape"
        Corrects each leaf by its held-out rows (20 at least). "shape" puts the distribution of its
        standardised errors, skewed or heavy-tailed as they are, in the place of the Normal: a mixture
        of 20 Normals. "scale" and "coverage" stay with the Normal and multiply its variance: for the
        best likelihood, or the best calibrated percentiles. None is the paper's tree.
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
        Threads over nodes, leaves and members; never changes a bit of the result.
    verbose : bool or int, default=False
        Whether to show progress.
    random_state : int, Generator, RandomState or None, default=0
        Seed of starts, orders and validation rows.

    Attributes
    ----------
    members_ : list of TreeModel
        Trees with their networks.
    history_ : list of tuple of History
        Validation losses of each leaf, in turns of mean and variance.
    n_iter_ : int
        Most epochs that a leaf's network ran.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where X had names.

    Notes
    -----
    Missing numbers are the training mean for the networks, with a column that marks them if there
    were some in training; at a split they go right. A missing category is a level of its own, an
    unknown one is all zeros for the networks and goes to the larger side of a split. Means and
    scales come from the rows given to `fit` only.

    References
    ----------
    .. [1] Ma, Yan, Shen, Tang (2022), Improving uncertainty quantification of variance networks by
       tree-structured learning. arXiv:2212.12658.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins import USNRTRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(1500, 1))
    >>> y = X[:, 0] + rng.normal(size=1500) * np.where(X[:, 0] < 0.5, 0.1, 1.0)
    >>> model = USNRTRegressor(min_samples_leaf=300, max_epochs=20).fit(X, y)
    >>> quiet, loud = model.predict_dist([[0.2], [0.8]]).std()
    >>> bool(quiet < 0.2 < 0.7 < loud)
    True
    """

    def __init__(
        self,
        n_members: int = 1,
        *,
        split_hidden: Sequence[int] | None = None,
        leaf_hidden: Sequence[int] | None = None,
        split_test: str = "levene-adjusted",
        alpha: float = 0.01,
        min_samples_leaf: int | None = None,
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
        self.split_hidden = split_hidden
        self.leaf_hidden = leaf_hidden
        self.split_test = split_test
        self.alpha = alpha
        self.min_samples_leaf = min_samples_leaf
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
        """Grow the trees and train their networks.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Features; NaN for missing.
        y : array-like of shape (n_samples,)
            Responses.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows in the networks' losses; in the scan of splits rows count alike,
            those of weight 0 not at all.
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
        check_option("split_test", self.split_test, SPLIT_TESTS)
        check_real("alpha", self.alpha, 0.0, 1.0)
        if self.min_samples_leaf is not None:
            least_rows(self.min_samples_leaf, 0)
        problem = self._prepare(X, y, sample_weight, self.n_members)
        d = self.n_features_in_
        plan = TreePlan(
            hidden_units("split_hidden", self.split_hidden, (8, 4), d),
            least_rows(self.min_samples_leaf, len(problem.table)),
            float(self.alpha) or np.nextafter(0.0, 1.0),
            self.split_test,
        )
        hidden = hidden_units("leaf_hidden", self.leaf_hidden, (4, 2), d)
        self._fit_members(problem, plan, hidden, callback)
        return self

    def apply(self, X: Any) -> np.ndarray:
        """Find the leaf of each row in each member.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of int of shape (n_samples, n_members)
            Numbers of nodes as in `export_text`.
        """
        table, _ = self._read(X)
        n_levels = self._encoder.n_levels
        return np.stack([member.tree.apply(table, n_levels) for member in self.members_], axis=1)

    def tree_data(self, member: int = 0) -> list[dict[str, Any]]:
        """Describe the nodes of a tree: regions, sizes, residual variances, and places for a picture.

        Parameters
        ----------
        member : int, default=0
            Which tree.

        Returns
        -------
        list of dict
            A node each; see `boostplugins.usnrt.tree.describe`. Variances are in squared units of
            the target.
        """
        check_is_fitted(self, "members_")
        member = check_integer("member", member, 0)
        if member >= len(self.members_):
            raise ValueError(f"member must be below n_members = {len(self.members_)}, got {member}")
        tree = self.members_[member].tree
        return describe(tree, self._names(), self._encoder.levels, self._unit)

    def export_text(self, member: int = 0) -> str:
        """Write a tree as text.

        Parameters
        ----------
        member : int, default=0
            Which tree.

        Returns
        -------
        str
            One node a line: how one gets there, its rows, its residual variance.
        """
        return write_text(self.tree_data(member))

    def plot_tree(self, member: int = 0, ax: Any = None) -> Any:
        """Draw a tree: regions, sizes, residual variances.

        Parameters
        ----------
        member : int, default=0
            Which tree.
        ax : matplotlib Axes, optional
            Where to draw; by default new axes.

        Returns
        -------
        matplotlib Axes
            The axes; ``ax.figure.savefig(...)`` writes the picture.
        """
        return draw_tree(self.tree_data(member), ax)
