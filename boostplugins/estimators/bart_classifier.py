"""BARTClassifier: Bayesian additive regression trees for two classes, by probit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from boostplugins._validation import check_real, refuse_times
from boostplugins.estimators._bart_files import SavedTrees
from boostplugins.estimators._bart_results import PosteriorResults, mean_over_draws
from boostplugins.estimators._labels import refuse_odd_labels
from boostplugins.estimators._refitting import all_or_nothing
from boostplugins.hbart.bins import Bins
from boostplugins.hbart.chains import Problem
from boostplugins.uncertainty import Uncertainty


class BARTClassifier(ClassifierMixin, PosteriorResults, SavedTrees):
    """Probit BART: P(second class) = Phi(offset + sum of trees), sampled with latent normals [1]_.

    Parameters
    ----------
    n_trees : int, default=50
        Trees in the sum.
    n_burn : int, default=1000
        Iterations of each chain before the first draw.
    n_draws : int, default=500
        Draws kept of each chain.
    n_chains : int, default=2
        Independent chains.
    k : float or "sample", default=2.0
        Prior standard deviation of the trees' sum is 3 / k; larger shrinks more. "sample" draws it: the
        sum's prior variance is scaled inverse chi-square of 3 degrees of freedom, and k above 2 with
        probability 0.9.
    alpha, beta : float, default=0.95 and 2.0
        A node of depth d splits with prior probability alpha (1 + d)**-beta.
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
    classes_ : ndarray of shape (2,)
        Labels, sorted.
    posterior_ : Posterior
        Draws, compact.
    acceptance_ : dict
        Accepted share of the proposals, by move.
    rhat_ : float
        Median split R-hat of the latent f over 24 training rows.
    rhat_of_ : str
        Name of that quantity.
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
    .. [1] Albert, Chib (1993), Bayesian analysis of binary and polychotomous response data. JASA 88.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from boostplugins import BARTClassifier
    >>> X = np.random.default_rng(0).random((200, 2))
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     model = BARTClassifier(n_trees=20, n_chains=2, random_state=0).fit(X, X[:, 0] > 0.5)
    >>> model.predict([[0.1, 0.5], [0.9, 0.5]])
    array([False,  True])
    """

    _half_range = 3.0
    _saved_scalars = ("_offset", "rhat_", "rhat_of_", "acceptance_", "interrupted_")

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
    def fit(self, X: Any, y: ArrayLike) -> BARTClassifier:
        """Sample the posterior.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features; NaN where missing.
        y : array-like of shape (n_samples,)
            Labels of at most two classes.

        Returns
        -------
        self
            Fitted estimator.

        Raises
        ------
        ValueError
            For more than two classes: wrap the estimator in scikit-learn's OneVsRestClassifier.
        """
        hyper = self._check_params()
        X, matrix, _ = self._encode(X, y, None)
        labels = np.asarray(y)
        labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
        if labels.ndim != 1:
            raise ValueError(f"y must have shape (n_samples,), got {labels.shape}")
        refuse_times("y", labels)
        refuse_odd_labels("y", labels)
        check_classification_targets(labels)
        self.classes_, code = np.unique(labels, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass, with "
                f"{len(self.classes_)} classes; wrap the estimator in OneVsRestClassifier"
            )
        if len(self.classes_) < 2:
            raise ValueError(f"y must hold two classes, got one class: {self.classes_[0]!r}")
        n_levels = np.array([len(levels or ()) for levels in self._columns.levels])
        self._bins = Bins.learn(matrix, n_levels, self.max_bins)
        self._offset = float(ndtri(code.mean()))
        problem = Problem(
            self._bins.codes(matrix),
            self._bins.rules(),
            np.zeros(len(code)),
            np.where(code == 1, 1.0, -1.0),
            np.ones(len(code)),
            np.empty((len(code), 0)),
            1.0,
            1.0,
            self._offset,
            0.5 * self._half_range,
        )
        self._sample(problem, hyper, matrix)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict class probabilities, averaged over draws.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities of the classes in the order of `classes_`.
        """
        both = [
            [mean_over_draws(ndtr(sign * (self._offset + f))) for sign in (-1.0, 1.0)]
            for _, f, _ in self._blocks(X, variance=False)
        ]
        return np.concatenate([np.stack(pair, axis=1) for pair in both])

    def predict(self, X: Any) -> np.ndarray:
        """Predict the more probable class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        likeliest = self.predict_proba(X).argmax(axis=1)
        return self.classes_[likeliest]

    def predict_credible_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Give an interval of the probability of the second class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        coverage : float, default=0.9
            Posterior probability inside, in (0, 1).

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper end.
        """
        check_real("coverage", coverage, 0, 1, closed="neither")
        tails = [0.5 * (1.0 - coverage), 0.5 * (1.0 + coverage)]
        blocks = [np.quantile(f, tails, axis=0).T for _, f, _ in self._blocks(X, variance=False)]
        return ndtr(self._offset + np.concatenate(blocks))

    def predict_uncertainty(self, X: Any) -> Uncertainty:
        """Split the predictive entropy into knowledge and data parts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        Uncertainty
            Entropies in nats.
        """
        parts = []
        for _, f, _ in self._blocks(X, variance=False):
            latent = self._offset + f.T
            parts.append(Uncertainty.from_probabilities(np.stack([ndtr(-latent), ndtr(latent)], axis=2)))
        names = ("knowledge", "data", "total")
        return Uncertainty(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def posterior_draws(self, X: Any = None) -> dict[str, np.ndarray]:
        """Draws by chain.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), optional
            Rows whose probabilities are wanted.

        Returns
        -------
        dict of ndarray of shape (n_chains, n_draws, ...)
            ``n_rules``: rules in all trees; ``k``, if it is drawn; with X, ``p``: probability of the
            second class.
        """
        check_is_fitted(self, "posterior_")
        posterior = self.posterior_
        rules = (posterior.mean.n_leaves - 1)[posterior.mean.structure].sum(axis=1)
        draws = {"n_rules": posterior.by_chain(rules), **self._k_draws()}
        if X is not None:
            f = np.concatenate([f for _, f, _ in self._blocks(X, variance=False)], axis=1)
            draws["p"] = posterior.by_chain(ndtr(self._offset + f))
        return draws

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
