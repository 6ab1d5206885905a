"""Tweedie distribution (compound Poisson of gamma jumps) by mean and dispersion."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc, gammaln, xlogy

from boostplugins._jit import njit
from boostplugins._validation import check_real
from boostplugins.families._common import LEAST_LOG, columns, quiet, run, spread
from boostplugins.families._invert import invert_positive
from boostplugins.families._tables import interpolate_line, tweedie_table
from boostplugins.families.base import Family
from boostplugins.families.support import Support
from boostplugins.links import Log

# Largest mean number of jumps whose density is summed term by term; beyond it the saddlepoint
# density is good to the fourth digit of a number that hardly matters.
_MOST_JUMPS = 2e4
_TERM = -37.0  # log size of the first term left out, relative to the largest
# Mean number of jumps beyond which its probabilities go by Stirling's series.
_MANY = 1e6
_WINDOW = 400  # numbers of jumps visited by the cdf


@dataclass(frozen=True)
class Tweedie(Family):
    r"""Tweedie distribution, theta = (mu, phi), raw = (log mu, log phi).

    A Poisson number of gamma jumps: zero with probability exp(-lambda), continuous above; the
    variance is phi mu^power. The density is the series of Dunn and Smyth (2005), its score is
    that series differentiated. Mean and dispersion are orthogonal: Fisher information
    :math:`\mu^{2 - p} / \phi` and a function of :math:`\phi \mu^{p - 2}` alone, tabulated.

    Parameters
    ----------
    power : float, default=1.5
        Variance power in [1.01, 1.99]; fixed, not boosted.

    Examples
    --------
    >>> from boostplugins.families import Tweedie
    >>> float(Tweedie(power=1.5).var([4.0, 2.0]))
    16.0
    """

    power: float = 1.5

    name = "tweedie"
    aliases = ("TW",)
    params = ("mu", "phi")
    links = (Log(-60.0, 60.0), Log(-60.0, 60.0))
    support = Support(0.0, closed_low=True)
    atoms = (0.0,)

    def __post_init__(self) -> None:
        check_real("power", self.power, 1.01, 1.99, remedy="use Poisson (1) or Gamma (2) beyond")

    @property
    def equivariance(self) -> str | None:
        return "scale"

    def rescale(self, theta: ArrayLike, scale: float, shift: float = 0.0) -> np.ndarray:
        if shift != 0:
            raise ValueError(f"family {self.name} does not follow y -> {scale:g} y + {shift:g}")
        return np.asarray(theta, dtype=np.float64) * np.array([scale, scale ** (2.0 - self.power)])

    def score_and_fisher(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return run(self, _kernel, y, raw, float(self.power), *tweedie_table(float(self.power), _at_mean_one))

    def _guess(self, y: np.ndarray, weight: np.ndarray, offset: np.ndarray | None) -> np.ndarray:
        base = 1.0 if offset is None else np.average(np.exp(offset), weights=weight)
        mean, sd = spread(y, weight)
        mean = max(mean, 1e-20)
        return self.raw(np.array([mean / base, max(sd, 1e-9 * mean) ** 2 / mean**self.power]))

    def _jumps(self, theta: ArrayLike) -> tuple[np.ndarray, float, np.ndarray]:
        """Mean number of jumps, and the shape and scale of one jump."""
        mu, phi = columns(theta)
        p = self.power
        return mu ** (2.0 - p) / (phi * (2.0 - p)), (2.0 - p) / (p - 1.0), phi * (p - 1.0) * mu ** (p - 1.0)

    @quiet
    def log_pdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, phi = columns(theta)
        y, mu, phi = np.broadcast_arrays(np.asarray(y, dtype=np.float64), mu, phi)
        out = np.full(y.size, -np.inf)
        inside = (y.ravel() >= 0) & np.isfinite(y.ravel())
        flat = [np.ascontiguousarray(part.ravel()[inside]) for part in (y, mu, phi)]
        dense = np.empty(len(flat[0]))
        _log_density(*flat, self.power, dense)
        out[inside] = np.maximum(dense, LEAST_LOG)
        return out.reshape(y.shape)

    @quiet
    def cdf(self, y: ArrayLike, theta: ArrayLike) -> np.ndarray:
        rate, shape, scale = self._jumps(theta)
        y, rate, scale = np.broadcast_arrays(np.asarray(y, dtype=np.float64), rate, scale)
        t = np.maximum(y, 0.0) / scale
        total = np.exp(-rate)
        # Numbers of jumps within nine standard deviations; many of them are visited at a stride,
        # which loses nothing: their probabilities are smooth then.
        half = 9.0 * np.sqrt(rate) + 20.0
        first = np.maximum(np.floor(rate - half), 1.0)
        stride = np.maximum(np.ceil((rate + half - first) / _WINDOW), 1.0)
        steps = int(np.max(np.ceil((rate + half - first) / stride), initial=1.0)) + 1
        for j in range(steps):
            n = first + stride * j
            mass = stride * np.exp(_log_poisson(n, rate))
            total = total + mass * gammainc(n * shape, t)
        return np.where(y < 0, 0.0, np.minimum(total, 1.0))

    @quiet
    def ppf(self, q: ArrayLike, theta: ArrayLike) -> np.ndarray:
        mu, phi = columns(theta)
        q, mu, phi = np.broadcast_arrays(np.asarray(q, dtype=np.float64), mu, phi)
        flat = np.stack([mu.ravel(), phi.ravel()], axis=1)
        found = invert_positive(lambda x, i: self.cdf(x, flat[i]), q.ravel(), flat[:, 0])
        return found.reshape(q.shape)

    @quiet
    def mean(self, theta: ArrayLike) -> np.ndarray:
        return columns(theta)[0].copy()

    @quiet
    def var(self, theta: ArrayLike) -> np.ndarray:
        mu, phi = columns(theta)
        return phi * mu**self.power

    def sample(self, theta: ArrayLike, size: int, rng: np.random.Generator) -> np.ndarray:
        rate, shape, scale = self._jumps(theta)
        jumps = rng.poisson(np.minimum(rate, 1e15)[..., None], (*rate.shape, size))
        return scale[..., None] * rng.standard_gamma(shape * jumps)


def _log_poisson(n: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Log probability of n > 0 events, without the cancellation of large rates near n."""
    x = np.where(rate > _MANY, (n - rate) / rate, 0.0)
    # (1 + x) log(1 + x) - x and Stirling's series; n lies within nine deviations of the rate.
    deviance = rate * x * x * (0.5 - x * (1 / 6 - x * (1 / 12 - x / 20)))
    large = -deviance - 0.5 * np.log(2.0 * np.pi * n) - 1.0 / (12.0 * n)
    return np.where(rate > _MANY, large, xlogy(n, rate) - rate - gammaln(n + 1.0))


@njit
def _series(y, phi, p):  # type: ignore[no-untyped-def]
    """Log of the sum over numbers of jumps j, and the mean of j under its terms."""
    a = (2.0 - p) / (p - 1.0)
    log_z = a * math.log(y / (p - 1.0)) - (1.0 + a) * math.log(phi) - math.log(2.0 - p)
    top = max(1.0, np.floor(y ** (2.0 - p) / (phi * (2.0 - p)) + 0.5))
    peak = top * log_z - math.lgamma(1.0 + top) - math.lgamma(a * top)
    total, moment = 1.0, 0.0
    j = top
    while True:
        j += 1.0
        term = j * log_z - math.lgamma(1.0 + j) - math.lgamma(a * j) - peak
        total += math.exp(term)
        moment += (j - top) * math.exp(term)
        if term < _TERM:
            break
    j = top
    while j > 1.0:
        j -= 1.0
        term = j * log_z - math.lgamma(1.0 + j) - math.lgamma(a * j) - peak
        total += math.exp(term)
        moment += (j - top) * math.exp(term)
        if term < _TERM:
            break
    return peak + math.log(total), top + moment / total


@njit
def _deviance(y, mu, p):  # type: ignore[no-untyped-def]
    """Unit deviance for y > 0, by y / mu to spare digits."""
    r = y / mu
    if r > 1e8:  # nothing cancels, and powers of r may overflow
        value = y * mu ** (1.0 - p) / (p - 1.0) - y ** (2.0 - p) / ((p - 1.0) * (2.0 - p))
        return 2.0 * (value + mu ** (2.0 - p) / (2.0 - p))
    value = 2.0 * mu ** (2.0 - p) * ((r ** (2.0 - p) - 1.0) / ((1.0 - p) * (2.0 - p)) - (r - 1.0) / (1.0 - p))
    return max(value, 0.0)


@njit
def _one(y, mu, phi, p):  # type: ignore[no-untyped-def]
    """Log density and its derivative in log phi."""
    if y == 0.0:
        rate = mu ** (2.0 - p) / (phi * (2.0 - p))
        return -rate, rate
    if y ** (2.0 - p) / (phi * (2.0 - p)) > _MOST_JUMPS:
        half = 0.5 * _deviance(y, mu, p) / phi
        return -0.5 * (math.log(2.0 * math.pi * phi) + p * math.log(y)) - half, half - 0.5
    log_sum, jumps = _series(y, phi, p)
    tilt = y / phi * mu ** (1.0 - p) / (1.0 - p) - mu ** (2.0 - p) / (2.0 - p) / phi
    return log_sum - math.log(y) + tilt, -jumps / (p - 1.0) - tilt


@njit
def _log_density(y, mu, phi, p, out):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        out[i] = _one(y[i], mu[i], phi[i], p)[0]


@njit
def _at_mean_one(y, phi, p, out):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        out[i, 0], out[i, 1] = _one(y[i], 1.0, phi, p)


@njit
def _kernel(y, raw, score, fisher, p, table, first, step):  # type: ignore[no-untyped-def]
    for i in range(len(y)):
        mu, phi = math.exp(raw[i, 0]), math.exp(raw[i, 1])
        score[i, 0] = (y[i] - mu) / (phi * mu ** (p - 1.0))
        score[i, 1] = _one(y[i], mu, phi, p)[1]
        fisher[i, 0] = mu ** (2.0 - p) / phi
        fisher[i, 1] = math.exp(interpolate_line(table, first, step, raw[i, 1] + (p - 2.0) * raw[i, 0]))
