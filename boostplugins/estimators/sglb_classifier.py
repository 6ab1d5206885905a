"""SGLBClassifier: a classifier that samples its posterior."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from boostplugins._blocks import in_blocks
from boostplugins._validation import check_weight
from boostplugins.estimators._frames import fit_frame, predict_frame
from boostplugins.estimators._labels import labels_of
from boostplugins.estimators._refitting import all_or_nothing
from boostplugins.estimators._rows import check_rows, held_out
from boostplugins.estimators._sglb_base import SGLBBase
from boostplugins.losses import Logistic, Loss, Softmax, get_loss


class SGLBClassifier(ClassifierMixin, SGLBBase):
    """Classifier that samples its posterior by (cyclical) stochastic gradient Langevin boosting.

    Parameters
    ----------
    loss : str or Loss, optional
        "logistic" (default for two classes) or "softmax" (for more).
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
        the prior is worth 130 rows: 130 / n_samples, at most 0.03.
    structure_noise : float, default=0.1
        Factor of the noise that the choice of splits sees; leaves keep the whole noise.
    prior : RandomPrior, "auto" or None, default="auto"
        Random function of the numeric features added to the raw scores of each cycle, zero on the training
        rows, so that members differ where there are no data. "auto": `RandomPrior` where there are
        numeric features, the chain has noise, and there are cycles or several chains.
    n_estimators : int, default=500
        Iterations of a chain.
    learning_rate : float, optional
        Step of the chain, in (0, 1]; 0.2 by default.
    depth : int, optional
        Depth of the trees: 6 by default on CatBoost; LightGBM grows 31 leaves, the best ones first.
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
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    models_ : list
        The boosters' own models, one a chain.
    n_members_ : int
        Members of the ensemble, over all chains.
    n_iterations_ : int
        Iterations of the first chain.
    constant_ : ndarray of shape (n_outputs,)
        Raw scores of the loss's best constant.
    loss_ : Loss
        Loss with the settings taken from the data.
    n_features_in_ : int
        Number of features.
    categorical_features_ : list of int
        Numbers of the categorical columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from boostplugins import SGLBClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SGLBClassifier(n_estimators=100).fit(X, y)
    >>> model.predict_uncertainty(X).knowledge.shape
    (150,)
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
            Class labels of any sortable type.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.
        eval_set : tuple of (X, y) or (X, y, sample_weight), or list with one, optional
            Held-out rows for early stopping.
        callbacks : sequence, default=()
            User callbacks; their exceptions keep their type.

        Returns
        -------
        SGLBClassifier
            This estimator.
        """
        settings = self._check_settings()
        frame, categorical = fit_frame(self, X, self.cat_features)
        labels = labels_of(y, len(frame))
        check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"y must hold at least 2 classes, got 1 class only: {classes.tolist()[0]!r}")
        loss = self._classification_loss(len(classes))
        weight = check_weight(sample_weight, len(labels))
        self.classes_, self.categorical_features_ = classes, categorical
        held = None
        if eval_set is not None:
            X_held, y_held, held_weight, _ = held_out(eval_set, 3)
            rows = predict_frame(self, X_held, categorical)
            held_labels = labels_of(y_held, len(rows), "y of eval_set")
            unseen = np.setdiff1d(held_labels, classes)
            if len(unseen):
                raise ValueError(f"eval_set must hold classes seen in training, got {unseen.tolist()}")
            held_codes = np.searchsorted(classes, held_labels)
            held = check_rows(rows, held_codes, held_weight, None, "y of eval_set")[:3]
        self._train(frame, codes.astype(np.float64), loss, weight, held, callbacks, settings, stratify=True)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict class probabilities, averaged over the members.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``.
        """
        check_is_fitted(self, "models_")
        return in_blocks(lambda rows: self.loss_.response(self.members(rows)).mean(axis=1), X)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the most probable class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        proba = self.predict_proba(X)
        return self.classes_[proba.argmax(axis=1)]

    def _classification_loss(self, n_classes: int) -> Loss:
        if self.loss is None:
            return Logistic() if n_classes == 2 else Softmax(n_classes)
        loss = get_loss(self.loss)
        if not loss.classification:
            raise ValueError(f"loss must be a classification loss, got {loss.name!r}; use SGLBRegressor")
        if isinstance(loss, Logistic) and n_classes > 2:
            raise ValueError(f"loss 'logistic' takes 2 classes, got {n_classes}; use 'softmax'")
        return Softmax(n_classes) if isinstance(loss, Softmax) else loss
