"""Normal distribution by mean and standard deviation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr, ndtri

from boostplugins._jit import njit
from boostplugins.families._common import columns, quiet, run, spread, within
from boostplugins.families.base import Family
from boostplugins.links import Identity, Log

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Normal(Family):
    r"""Normal distribution, theta = (mu, sigma), raw = (mu, log sigma).

    .. math:: \log p = -\log\sigma - \tfrac12\log 2\pi - \tfrac12 z^2, \quad z = (y - \mu) / \sigma

    Score on the raw scale: :math:`(z / \sigma,\ z^2 - 1)`; Fisher: :math:`(1 / \sigma^2,\ 2)`.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.families import Normal
    >>> Normal().score_and_fisher(np.array([3.0]), np.array([[1.0, 0.0]]))
    (array([[2., 3.]]), array([[1., 2.]]))
    """

    name = "normal"
    aliases = ("gaussian", "NO")
    params = ("mu", "sigma")
    links = (Identity(), Log())
    locations = (0,)
    scales = (1,)

    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return run(self, _kernel, y, raw)

    def init(
        self, y: np.ndarray, weight: np.ndarray | None = None, offset: np.ndarray | None = None
    ) -> np.ndarray:
        y = np.asarray(y, dtype=np.float64)
        y = y if offset is None else y - np.asarray(offset, dtype=np.float64)
        mean, sd = spread(y, np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64))
        return np.array([mean, math.log(sd)])

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, sigma = columns(theta)
        y = np.asarray(y, dtype=np.float64)
        return within(np.isfinite(y), -np.log(sigma) - _HALF_LOG_2PI - 0.5 * ((y - mu) / sigma) ** 2)

    @quiet
    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, sigma = columns(theta)
        return ndtr((np.asarray(y) - mu) / sigma)

    @quiet
    def sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, sigma = columns(theta)
        return ndtr((mu - np.asarray(y)) / sigma)

    @quiet
    def log_cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, sigma = columns(theta)
        return log_ndtr((np.asarray(y) - mu) / sigma)

    @quiet
    def log_sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, sigma = columns(theta)
        return log_ndtr((mu - np.asarray(y)) / sigma)

    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, sigma = columns(theta)
        return mu + sigma * ndtri(np.asarray(q, dtype=np.float64))

    def mean(self, theta: ArrayLike) -> np.ndarray:
        return columns(theta)[0].copy()

    def var(self, theta: ArrayLike) -> np.ndarray:
        return columns(theta)[1] ** 2

    def sample(self, theta: ArrayLike, size: int, rng: np.random.Generator) -> np.ndarray:
        mu, sigma = columns(theta)
        return mu[..., None] + sigma[..., None] * rng.standard_normal((*mu.shape, size))

    @quiet
    def crps(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, sigma = columns(theta)
        gap = np.asarray(y, dtype=np.float64) - mu
        far = np.abs(gap) > 1e9 * sigma  # where z may overflow
        near = sigma * absolute_normal(np.where(far, 0.0, gap / sigma))
        return np.where(far, np.abs(gap), near) - sigma / math.sqrt(math.pi)


def absolute_normal(z: np.ndarray) -> np.ndarray:
    """Mean of ``|Z - z|`` for a standard normal Z.

    Parameters
    ----------
    z : ndarray
        Points.

    Returns
    -------
    ndarray
        ``z (2 Phi(z) - 1) + 2 phi(z)``.
    """
    return z * (2.0 * ndtr(z) - 1.0) + 2.0 * np.exp(-0.5 * z * z - _HALF_LOG_2PI)


@njit
def _kernel(y, raw, score, fisher):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        inverse = math.exp(-raw[i, 1])
        z = (y[i] - raw[i, 0]) * inverse
        score[i, 0] = z * inverse
        score[i, 1] = z * z - 1.0
        fisher[i, 0] = inverse * inverse
        fisher[i, 1] = 2.0
