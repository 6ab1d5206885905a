"""What a loss is: the cost of one row on the raw scale, its derivatives, its start and its response."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from boostplugins._kinds import plain_settings
from boostplugins._validation import check_target
from boostplugins.uncertainty import Uncertainty

_STEP = 1e-6  # of central differences on raw scores of order one: error about 1e-9


class Loss(ABC):
    """Base of losses: frozen values without counters, random state or data.

    A loss is the negative log likelihood of a row given its raw scores. The Langevin chain moves
    along `direction` with noise of size `noise_scale`: the negative gradient and unit noise, both
    preconditioned by a diagonal matrix P that does not depend on the score it multiplies
    (``direction = -P gradient``, ``noise_scale = sqrt(P)``), which leaves the posterior unchanged
    and makes the step free of the target's units.

    Attributes
    ----------
    name : str
        Name by which `get_loss` finds the loss.
    n_outputs : int
        Raw scores a row, K.
    classification : bool
        Whether the response is a class.
    kernel : int or None
        Number of the compiled direction, None to call `direction`.
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    classification: ClassVar[bool] = False
    kernel: ClassVar[int | None] = None

    @property
    def n_outputs(self) -> int:
        """Raw scores a row."""
        return 1

    @abstractmethod
    def value(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        """Cost of each row.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Responses.
        raw : ndarray of shape (n_samples, n_outputs)
            Raw scores.

        Returns
        -------
        ndarray of shape (n_samples,)
            Negative log likelihood with its constants.
        """

    @abstractmethod
    def gradient(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        """First derivatives of `value` in the raw scores.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Responses.
        raw : ndarray of shape (n_samples, n_outputs)
            Raw scores.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            Gradient, not its negative.
        """

    @abstractmethod
    def hessian(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        """Diagonal of the expected second derivatives in the raw scores.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Responses.
        raw : ndarray of shape (n_samples, n_outputs)
            Raw scores.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            Positive curvature.
        """

    @abstractmethod
    def start(self, y: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
        """Best constant raw scores.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Responses.
        weight : ndarray of shape (n_samples,), optional
            Weights.

        Returns
        -------
        ndarray of shape (n_outputs,)
            Raw scores that minimise the weighted sum of `value`.
        """

    @abstractmethod
    def response(self, raw: np.ndarray) -> np.ndarray:
        """Predicted mean or class probabilities.

        Parameters
        ----------
        raw : ndarray of shape (..., n_outputs)
            Raw scores.

        Returns
        -------
        ndarray of shape (...) or (..., n_classes)
            Means, or probabilities in the order of the classes.
        """

    @abstractmethod
    def uncertainty(self, members: np.ndarray) -> Uncertainty:
        """Knowledge, data and total uncertainty of an ensemble.

        Parameters
        ----------
        members : ndarray of shape (n_samples, n_members, n_outputs)
            Raw scores of the members.

        Returns
        -------
        Uncertainty
            Variances (regression) or nats (classification).
        """

    def direction(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        """Preconditioned negative gradient, what the trees are fitted to.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Responses.
        raw : ndarray of shape (n_samples, n_outputs)
            Raw scores.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            Downhill direction.
        """
        return -self.gradient(y, raw)

    def noise_scale(self, raw: np.ndarray) -> np.ndarray:
        """Square root of the preconditioner.

        Parameters
        ----------
        raw : ndarray of shape (n_samples, n_outputs)
            Raw scores.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            Factor of the Langevin noise.
        """
        return np.ones_like(raw)

    def direction_and_noise(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both `direction` and `noise_scale`, for losses that find them together.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Responses.
        raw : ndarray of shape (n_samples, n_outputs)
            Raw scores.

        Returns
        -------
        direction : ndarray of shape (n_samples, n_outputs)
            Downhill direction.
        noise_scale : ndarray of shape (n_samples, n_outputs)
            Factor of the Langevin noise.
        """
        return self.direction(y, raw), self.noise_scale(raw)

    def prior_units(self, y: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
        """Units in which a prior function's scale is meant.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Responses.
        weight : ndarray of shape (n_samples,), optional
            Weights.

        Returns
        -------
        ndarray of shape (n_outputs,)
            Size of the noise of each raw score; 0 for a score without a prior function.
        """
        return np.ones(self.n_outputs)

    def check_labels(self, y: np.ndarray) -> None:  # noqa: B027
        """Refuse responses outside the loss's support.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Responses.

        Raises
        ------
        ValueError
            Naming the first response that does not fit.
        """

    def ready(self, y: np.ndarray, weight: np.ndarray | None = None) -> Loss:
        """Settle what depends on the data, such as the number of classes.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Responses.
        weight : ndarray of shape (n_samples,), optional
            Weights.

        Returns
        -------
        Loss
            A loss without open settings, often this one.
        """
        return self

    def to_dict(self) -> dict[str, Any]:
        """Describe the loss.

        Returns
        -------
        dict
            JSON-ready; `loss_from_dict` reads it.
        """
        return {"name": self.name, **plain_settings(self)}


def check_loss(loss: Loss, y: np.ndarray, raw: np.ndarray, tolerance: float = 1e-5) -> None:
    """Compare a loss's derivatives with finite differences of its value.

    Parameters
    ----------
    loss : Loss
        Loss to check.
    y : ndarray of shape (n_samples,)
        Responses.
    raw : ndarray of shape (n_samples, n_outputs)
        Raw scores at which to check.
    tolerance : float, default=1e-5
        Largest relative error allowed (absolute below 1).

    Raises
    ------
    ValueError
        Naming what is wrong: shape, sign or size, and where.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.losses import Logistic, check_loss
    >>> check_loss(Logistic(), np.array([0.0, 1.0]), np.array([[0.3], [-2.0]]))
    """
    y = check_target(y)
    raw = np.asarray(raw, dtype=np.float64)
    if raw.shape != (len(y), loss.n_outputs):
        raise ValueError(f"raw must have shape ({len(y)}, {loss.n_outputs}), got {raw.shape}")
    gradient = np.asarray(loss.gradient(y, raw))
    if gradient.shape != raw.shape:
        raise ValueError(f"gradient of {loss.name} must have shape {raw.shape}, got {gradient.shape}")
    hessian = np.asarray(loss.hessian(y, raw))
    if hessian.shape != raw.shape:
        raise ValueError(
            f"hessian of {loss.name} must have shape {raw.shape}, the diagonal a row, got {hessian.shape}"
        )
    if not (np.isfinite(hessian).all() and (hessian > 0).all()):
        raise ValueError(
            f"hessian of {loss.name} must be finite and > 0, got {np.nanmin(hessian):g} at least"
        )
    numeric = np.empty_like(raw)
    for k in range(loss.n_outputs):
        step = np.zeros_like(raw)
        step[:, k] = _STEP
        numeric[:, k] = (loss.value(y, raw + step) - loss.value(y, raw - step)) / (2 * _STEP)
    scale = np.maximum(np.abs(numeric), 1.0)
    if (np.abs(gradient - numeric) / scale < tolerance).all():
        return
    if (np.abs(gradient + numeric) / scale < tolerance).all():
        raise ValueError(
            f"gradient of {loss.name} has the wrong sign: it must be d value / d raw, positive where "
            "the cost rises; the boosters' own signs are taken care of"
        )
    row, worst = np.unravel_index(np.argmax(np.abs(gradient - numeric) / scale), raw.shape)
    raise ValueError(
        f"gradient of {loss.name} is {gradient[row, worst]:g} in row {row}, output {worst}, "
        f"but finite differences give {numeric[row, worst]:g}"
    )
