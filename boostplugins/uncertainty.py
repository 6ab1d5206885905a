"""Knowledge, data and total uncertainty from the members of an ensemble."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr


@dataclass(frozen=True, repr=False)
class Uncertainty:
    """Knowledge, data and total uncertainty of each row.

    In regression the three are variances in the squared units of the target; in
    classification they are entropies in nats. ``knowledge + data == total``.

    Attributes
    ----------
    knowledge : ndarray of shape (n_samples,)
        What the model has not seen: disagreement between members, zero where they agree.
    data : ndarray of shape (n_samples,)
        Noise of the response itself: what stays when the members agree.
    total : ndarray of shape (n_samples,)
        Their sum.

    Notes
    -----
    Classification [1]_: total = H(mean p), data = mean H(p), knowledge = their difference, the
    mutual information between the label and the member. Regression: knowledge = variance of the
    member means (divisor M), data = mean of the member variances (law of total variance).

    References
    ----------
    .. [1] Malinin, Prokhorenkova, Ustimenko (2021), Uncertainty in gradient boosting via ensembles.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.uncertainty import Uncertainty
    >>> u = Uncertainty.from_moments(mean=np.array([[1.0, 3.0]]), var=np.array([[0.5, 1.5]]))
    >>> u.knowledge, u.data, u.total
    (array([1.]), array([1.]), array([2.]))
    >>> u
    Uncertainty(n_samples=1, means: knowledge=1, data=1, total=2)
    """

    knowledge: np.ndarray
    data: np.ndarray
    total: np.ndarray

    def __repr__(self) -> str:
        if np.ndim(self.total) != 1 or not len(self.total):
            return f"Uncertainty(shape={np.shape(self.total)})"
        parts = ((name, getattr(self, name)) for name in ("knowledge", "data", "total"))
        means = ", ".join(f"{name}={np.mean(values):.4g}" for name, values in parts)
        return f"Uncertainty(n_samples={len(self.total)}, means: {means})"

    @classmethod
    def from_moments(cls, mean: ArrayLike, var: ArrayLike, weights: ArrayLike | None = None) -> Uncertainty:
        """Split the variance of a mixture of members.

        Parameters
        ----------
        mean : array-like of shape (n_samples, n_members)
            Member means.
        var : array-like of shape (n_samples, n_members)
            Member variances, or anything that broadcasts to it.
        weights : array-like of shape (n_members,), optional
            Weights of the members, summing to 1; equal by default.

        Returns
        -------
        Uncertainty
            Variances in squared units of the target.
        """
        mean = np.asarray(mean, dtype=np.float64)
        if mean.ndim != 2:
            raise ValueError(f"mean must have shape (n_samples, n_members), got {mean.shape}")
        var = np.broadcast_to(np.asarray(var, dtype=np.float64), mean.shape)
        w = None if weights is None else np.asarray(weights, dtype=np.float64)
        if w is not None and (w == 0).any():  # members that do not count, be they infinite
            mean, var, w = mean[:, w != 0], var[:, w != 0], w[w != 0]
        # Centred on the first member, so that equal members give an exact zero.
        deviation = mean - mean[:, :1]
        deviation = deviation - member_mean(deviation, w)[:, None]
        knowledge, data = member_mean(deviation**2, w), member_mean(var, w)
        return cls(knowledge, data, knowledge + data)

    @classmethod
    def from_probabilities(cls, proba: ArrayLike, weights: ArrayLike | None = None) -> Uncertainty:
        """Split the entropy of a mixture of class probabilities.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_members, n_classes)
            Member class probabilities; each row of classes sums to 1.
        weights : array-like of shape (n_members,), optional
            Weights of the members, summing to 1; equal by default.

        Returns
        -------
        Uncertainty
            Entropies in nats.
        """
        proba = np.asarray(proba, dtype=np.float64)
        if proba.ndim != 3:
            raise ValueError(f"proba must have shape (n_samples, n_members, n_classes), got {proba.shape}")
        w = None if weights is None else np.asarray(weights, dtype=np.float64)
        mean, data = member_mean(proba, w), member_mean(entr(proba).sum(axis=2), w)
        # Mutual information as a mean of non-negative divergences: sum over members of
        # KL(p_m || mean), exact where total - data would cancel; equal members give 0 exactly.
        agree = (proba == proba[:, :1]).all(axis=(1, 2))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(proba > 0, proba / mean[:, None, :], 1.0)
        divergence = (proba * np.log(ratio)).sum(axis=2)
        knowledge = np.maximum(member_mean(divergence, w), 0.0)
        knowledge[agree] = 0.0
        return cls(knowledge, data, knowledge + data)


def member_mean(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Average over members, of any number of rows.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_members, ...)
        Values; those of members of weight 0 do not count, be they infinite.
    weights : ndarray of shape (n_members,) or None
        Weights, or None for equal ones.

    Returns
    -------
    ndarray of shape (n_samples, ...)
        Means.
    """
    if weights is None:
        return values.mean(axis=1)
    return np.average(values[:, weights > 0], axis=1, weights=weights[weights > 0])
