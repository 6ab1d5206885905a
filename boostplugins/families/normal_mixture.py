"""Finite mixture of Normals with boosted weights, means and standard deviations."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, logsumexp, ndtr, softmax

from boostplugins._jit import njit
from boostplugins._validation import check_integer
from boostplugins.families._common import LEAST_LOG, quiet, run, spread, within
from boostplugins.families._invert import invert
from boostplugins.families._quantile import weighted_quantile
from boostplugins.families.base import Family
from boostplugins.families.normal import Normal, absolute_normal
from boostplugins.links import Identity, Link, Log

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_LIMIT = 30.0  # of the weights' raw scores


@dataclass(frozen=True)
class NormalMixture(Family):
    r"""Mixture of C Normals; theta = (weights, means, standard deviations), 3 C parameters.

    Raw scores are (softmax scores, means, log standard deviations). The curvature given to the
    booster is that of the complete data, :math:`(w (1 - w), w / \sigma^2, 2 w)`: an upper bound of
    the Fisher information, as in the EM algorithm, hence safe but shorter steps.

    Parameters
    ----------
    n_components : int, default=2
        Number C of Normals, >= 2.

    Examples
    --------
    >>> from boostplugins.families import NormalMixture
    >>> float(NormalMixture(2).mean([0.25, 0.75, 0.0, 4.0, 1.0, 1.0]))
    3.0
    """

    n_components: int = 2

    name = "normal_mixture"
    fisher_exact = False

    def __post_init__(self) -> None:
        check_integer("n_components", self.n_components, 2, "use Normal() for one")

    @property
    def params(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names: weights, means, standard deviations."""
        numbers = range(self.n_components)
        return tuple(f"{name}{k}" for name in ("weight", "mu", "sigma") for k in numbers)

    @property
    def links(self) -> tuple[Link, ...]:  # type: ignore[override]
        """Limits of the weights' scores (the link itself is their softmax), identity, log."""
        c = self.n_components
        return (Identity(-_LIMIT, _LIMIT),) * c + (Identity(),) * c + (Log(),) * c

    @property
    def locations(self) -> tuple[int, ...]:  # type: ignore[override]
        """Numbers of the means."""
        return tuple(range(self.n_components, 2 * self.n_components))

    @property
    def scales(self) -> tuple[int, ...]:  # type: ignore[override]
        """Numbers of the standard deviations."""
        return tuple(range(2 * self.n_components, 3 * self.n_components))

    def theta(self, raw: ArrayLike) -> np.ndarray:
        theta = super().theta(raw)
        c = self.n_components
        theta[..., :c] = softmax(theta[..., :c], axis=-1)
        return theta

    def raw(self, theta: ArrayLike) -> np.ndarray:
        theta = np.array(theta, dtype=np.float64)
        c = self.n_components
        with np.errstate(divide="ignore"):
            logs = np.log(theta[..., :c])
        theta[..., :c] = logs - logs.mean(axis=-1, keepdims=True)
        return super().raw(theta)

    def _split(self, theta: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        theta = np.asarray(theta, dtype=np.float64)
        c = self.n_components
        return theta[..., :c], theta[..., c : 2 * c], theta[..., 2 * c :]

    def _guess(self, y: np.ndarray, weight: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
        c = self.n_components
        levels = (np.arange(c) + 0.5) / c
        means = [weighted_quantile(y, weight, level) for level in levels]
        return np.array([0.0] * c + means + [math.log(spread(y, weight)[1] / c)] * c)

    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return run(self, _kernel, y, raw, self.n_components)

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        w, mu, sigma = self._split(theta)
        y = np.asarray(y, dtype=np.float64)
        parts = -np.log(sigma) - _HALF_LOG_2PI - 0.5 * ((y[..., None] - mu) / sigma) ** 2
        parts = np.maximum(parts, LEAST_LOG)
        return within(np.isfinite(y), logsumexp(parts, axis=-1, b=np.broadcast_to(w, parts.shape)))

    @quiet
    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        w, mu, sigma = self._split(theta)
        return (w * ndtr((np.asarray(y, dtype=np.float64)[..., None] - mu) / sigma)).sum(axis=-1)

    @quiet
    def sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        w, mu, sigma = self._split(theta)
        return (w * ndtr((mu - np.asarray(y, dtype=np.float64)[..., None]) / sigma)).sum(axis=-1)

    @quiet
    def log_cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        w, mu, sigma = self._split(theta)
        parts = log_ndtr((np.asarray(y, dtype=np.float64)[..., None] - mu) / sigma)
        return logsumexp(parts, axis=-1, b=np.broadcast_to(w, parts.shape))

    @quiet
    def log_sf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        w, mu, sigma = self._split(theta)
        parts = log_ndtr((mu - np.asarray(y, dtype=np.float64)[..., None]) / sigma)
        return logsumexp(parts, axis=-1, b=np.broadcast_to(w, parts.shape))

    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        theta = np.asarray(theta, dtype=np.float64)
        q, _ = np.broadcast_arrays(np.asarray(q, dtype=np.float64), theta[..., 0])
        flat = np.broadcast_to(theta, (*q.shape, theta.shape[-1])).reshape(-1, theta.shape[-1])
        _, mu, sigma = self._split(flat)
        level = q.reshape(-1)
        ends = Normal().ppf(level[:, None], np.stack([mu, sigma], axis=-1))
        low, high = ends.min(axis=1), ends.max(axis=1)
        root = low.copy()
        rows = np.flatnonzero(np.isfinite(low) & (high > low))
        if len(rows):
            root[rows] = invert(lambda x, i: self.cdf(x, flat[rows[i]]), level[rows], low[rows], high[rows])
        return root.reshape(q.shape)

    def crps(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        w, mu, sigma = self._split(theta)
        return mixture_of_normals_crps(np.asarray(y, dtype=np.float64), w, mu, sigma)

    def mean(self, theta: ArrayLike) -> np.ndarray:
        w, mu, _ = self._split(theta)
        return (w * mu).sum(axis=-1)

    def var(self, theta: ArrayLike) -> np.ndarray:
        w, mu, sigma = self._split(theta)
        return (w * (sigma**2 + (mu - self.mean(theta)[..., None]) ** 2)).sum(axis=-1)

    def sample(self, theta: ArrayLike, size: int, rng: np.random.Generator) -> np.ndarray:
        w, mu, sigma = self._split(theta)
        u = rng.random((*w.shape[:-1], size))
        chosen = (np.cumsum(w, axis=-1)[..., None, :-1] < u[..., None]).sum(axis=-1)
        mu, sigma = np.take_along_axis(mu, chosen, -1), np.take_along_axis(sigma, chosen, -1)
        return mu + sigma * rng.standard_normal(u.shape)


def mixture_of_normals_crps(y: np.ndarray, w: np.ndarray, mu: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    """CRPS of mixtures: E|X - y| - E|X - X'| / 2, both known for pairs of Normals.

    Parameters
    ----------
    y : ndarray of shape (...)
        Responses.
    w : ndarray of shape (..., C) or (C,)
        Weights, summing to 1.
    mu, sigma : ndarray of shape (..., C)
        Means and standard deviations.

    Returns
    -------
    ndarray of shape (...)
        Scores (Grimit et al., 2006).
    """
    near = (w * sigma * absolute_normal((y[..., None] - mu) / sigma)).sum(axis=-1)
    root = np.sqrt(sigma[..., :, None] ** 2 + sigma[..., None, :] ** 2)
    pair = root * absolute_normal((mu[..., :, None] - mu[..., None, :]) / root)
    return near - 0.5 * (w[..., :, None] * w[..., None, :] * pair).sum(axis=(-1, -2))


@njit
def _kernel(y, raw, score, fisher, c):  # type: ignore[no-untyped-def]
    log_part = np.empty(c)
    w = np.empty(c)
    for i in range(len(y)):
        top, peak = raw[i, 0], -np.inf
        for k in range(1, c):
            top = max(top, raw[i, k])
        total = 0.0
        for k in range(c):
            w[k] = math.exp(raw[i, k] - top)
            total += w[k]
        for k in range(c):
            w[k] /= total
            z = (y[i] - raw[i, c + k]) * math.exp(-raw[i, 2 * c + k])
            log_part[k] = math.log(w[k]) - raw[i, 2 * c + k] - 0.5 * z * z
            peak = max(peak, log_part[k])
        if peak == -np.inf:  # all squares overflow: the nearest part has it all
            for k in range(c):
                log_part[k] = raw[i, 2 * c + k] - math.log(abs(y[i] - raw[i, c + k]))
                peak = max(peak, log_part[k])
            for k in range(c):
                log_part[k] = math.log(w[k]) if log_part[k] == peak else -np.inf
            peak = 0.0
        total = 0.0
        for k in range(c):
            log_part[k] = math.exp(log_part[k] - peak)
            total += log_part[k]
        for k in range(c):
            share = log_part[k] / total
            inverse = math.exp(-raw[i, 2 * c + k])
            z = (y[i] - raw[i, c + k]) * inverse
            score[i, k] = share - w[k]
            # A share of 0 rids of squares that overflow.
            score[i, c + k] = share * z * inverse if share > 0.0 else 0.0
            score[i, 2 * c + k] = share * (z * z - 1.0) if share > 0.0 else 0.0
            fisher[i, k] = w[k] * (1.0 - w[k])
            fisher[i, c + k] = w[k] * inverse * inverse
            fisher[i, 2 * c + k] = 2.0 * w[k]
