"""A CatBoost pool whose labels tell which row they belong to."""

from __future__ import annotations

from typing import Any

import numpy as np
from catboost import Pool
from numpy.typing import ArrayLike

from boostplugins._validation import check_target, check_weight
from boostplugins.losses import Loss

# Integers up to here are exact in float32, CatBoost's type of labels.
MAX_ROWS = 2**24


class ChainPool(Pool):
    """Training rows for a chain whose order CatBoost may change.

    CatBoost hands an objective labels, never row numbers, and with categorical features or ordered
    boosting it shuffles them. Here each label is unique, so that it names its row. For one output
    tied labels are spread over neighbouring float32 numbers (relative differences of 1e-7: metrics
    and target statistics do not notice); for several outputs the second column is the row number.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Features.
    y : array-like of shape (n_samples,)
        Responses; classes as 0 .. K - 1.
    loss : Loss
        Loss of the chain.
    sample_weight : array-like of shape (n_samples,), optional
        Weights.
    **options : dict
        Further arguments of `catboost.Pool`, such as ``cat_features``.

    Attributes
    ----------
    y_ : ndarray of shape (n_samples,)
        Responses in float64.
    weight_ : ndarray of shape (n_samples,) or None
        Weights as given.
    labels_ : ndarray of shape (n_samples,)
        Float32 labels of the rows (one output only).
    X_ : object
        The features as given.
    """

    def __init__(
        self, X: Any, y: ArrayLike, loss: Loss, sample_weight: ArrayLike | None = None, **options: Any
    ) -> None:
        from boostplugins.catboost.turns import in_turns

        self.y_ = check_target(y)
        if len(self.y_) >= MAX_ROWS:
            raise ValueError(f"a chain's pool must have fewer than {MAX_ROWS} rows, got {len(self.y_)}")
        loss.check_labels(self.y_)
        self.weight_ = check_weight(sample_weight, len(self.y_))
        ready = loss.ready(self.y_, self.weight_)
        self.X_ = X
        self.labels_ = unique_labels(self.y_)
        if ready.n_outputs == 1 or in_turns(ready):
            label = self.labels_
        else:
            rows = np.arange(len(self.y_), dtype=np.float32)
            label = np.stack([self.y_.astype(np.float32), *[rows] * (ready.n_outputs - 1)], axis=1)
        super().__init__(X, label=label, weight=self.weight_, **options)


def unique_labels(y: np.ndarray) -> np.ndarray:
    """Make labels unique by moving ties to neighbouring float32 numbers.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Finite responses.

    Returns
    -------
    ndarray of shape (n_samples,), dtype float32
        Distinct labels in the same order as `y`, ties in the order of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.catboost.pool import unique_labels
    >>> labels = unique_labels(np.array([1.0, 0.0, 1.0]))
    >>> len(set(labels.tolist())), labels.round(6).tolist()
    (3, [1.0, 0.0, 1.0])
    """
    label = y.astype(np.float32)
    order = np.argsort(y, kind="stable")
    bits = label[order].view(np.int32).astype(np.int64)
    # Float32 numbers in order, one integer each: negative ones run backwards from -1.
    rank = np.where(bits >= 0, bits, -(bits & 0x7FFFFFFF) - 1)
    steps = np.arange(len(rank))
    rank = np.maximum.accumulate(rank - steps) + steps
    back = np.where(rank >= 0, rank, (-(rank + 1)) | -0x80000000)
    label[order] = back.astype(np.int32).view(np.float32)
    return label
