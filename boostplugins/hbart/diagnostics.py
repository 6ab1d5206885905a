"""Do the chains agree, and what do the trees use: R-hat, effective sample size, ranks, inclusion."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from scipy.stats import rankdata

from boostplugins.hbart.posterior import ForestDraws, Posterior


def split_rhat(draws: ArrayLike) -> np.ndarray:
    """Split R-hat: how much wider the halves of the chains are together than alone; 1 is perfect.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws, ...)
        Draws of one or more quantities.

    Returns
    -------
    ndarray of shape (...)
        R-hat of each [1]_; 1 for a constant, NaN for fewer than 4 draws a chain or draws that are not
        finite.

    References
    ----------
    .. [1] Vehtari, Gelman, Simpson, Carpenter, Buerkner (2021), Rank-normalization, folding, and
       localization: an improved R-hat. Bayesian Analysis 16. This is its unranked form.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.hbart.diagnostics import split_rhat
    >>> apart = np.array([[0.0, 0.1, 0.0, 0.1], [5.0, 5.1, 5.0, 5.1]])
    >>> bool(split_rhat(apart) > 10)
    True
    """
    halves = _halves(draws)
    n = halves.shape[1]
    if n < 2:
        return np.full(halves.shape[2:], np.nan)
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt((n - 1) / n + between / within)
    return np.where(within == 0, np.where(between > 0, np.inf, 1.0), ratio)


def _halves(draws: ArrayLike) -> np.ndarray:
    """Cut every chain in two, (2 n_chains, n_draws // 2, ...); an odd draw in the middle is dropped.

    Each quantity starts at 0 and reaches up to 1 or down to -1: then a constant has no rounding error for
    a variance, and no square overflows.
    """
    draws = np.asarray(draws, dtype=np.float64)
    if draws.ndim < 2:
        raise ValueError(f"draws must have shape (n_chains, n_draws, ...), got {draws.shape}")
    half = draws.shape[1] // 2
    halves = np.concatenate([draws[:, :half], draws[:, draws.shape[1] - half :]])
    if not halves.size:
        return halves
    with np.errstate(invalid="ignore"):  # infinities become NaN
        shifted = 0.5 * halves - 0.5 * halves[:1, :1]
        size = np.abs(shifted).max(axis=(0, 1))
        return shifted / np.where(size > 0, size, 1.0)


def effective_sample_size(draws: ArrayLike) -> np.ndarray:
    """Independent draws that would pin the mean down as well as these do.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws, ...)
        Draws of one or more quantities.

    Returns
    -------
    ndarray of shape (...)
        Effective sample sizes: draws / (1 + 2 sum of autocorrelations), summed by Geyer's initial
        monotone sequence over the split chains; NaN for a constant or fewer than 4 draws a chain.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.hbart.diagnostics import effective_sample_size
    >>> noise = np.random.default_rng(0).standard_normal((4, 500))
    >>> bool(1500 < effective_sample_size(noise) < 2600)
    True
    """
    halves = _halves(draws)
    m, n = halves.shape[:2]
    flat = halves.reshape(m, n, math.prod(halves.shape[2:]))
    sizes = np.full(flat.shape[2], np.nan)
    if n >= 2:
        for i in range(flat.shape[2]):
            sizes[i] = _one_size(flat[:, :, i])
    return sizes.reshape(halves.shape[2:])


def _one_size(chains: np.ndarray) -> float:
    m, n = chains.shape
    centred = chains - chains.mean(axis=1, keepdims=True)
    spectrum = np.abs(np.fft.rfft(centred, 2 * n, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum, axis=1)[:, :n].mean(axis=0) / n
    within = covariance[0] * n / (n - 1)
    total = covariance[0] + (chains.mean(axis=1).var(ddof=1) if m > 1 else 0.0)
    if not (total > 0 and within > 0):
        return float("nan")
    correlation = 1.0 - (within - covariance * n / (n - 1)) / total
    correlation[0] = 1.0
    pairs = correlation[: n - n % 2].reshape(-1, 2).sum(axis=1)
    stop = int(np.argmax(pairs <= 0)) if (pairs <= 0).any() else len(pairs)
    time = max(2.0 * np.minimum.accumulate(pairs[:stop]).sum() - 1.0, 1.0 / np.log10(m * n))
    return float(m * n / time)


def ranks(draws: ArrayLike) -> np.ndarray:
    """Ranks of the draws among those of all chains, as rank plots show them.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws)
        Draws of one quantity.

    Returns
    -------
    ndarray of shape (n_chains, n_draws)
        Ranks from 1; each chain's are spread evenly where the chains agree.
    """
    draws = np.asarray(draws)
    return rankdata(draws).reshape(draws.shape)


def rank_normalised(draws: ArrayLike) -> np.ndarray:
    """Replace draws by the normal scores of their ranks, which makes R-hat robust to heavy tails.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws)
        Draws of one quantity.

    Returns
    -------
    ndarray of shape (n_chains, n_draws)
        Normal scores.
    """
    found = ranks(draws)
    return ndtri((found - 0.375) / (found.size + 0.25))


def worst_rhat(posterior: Posterior, codes: np.ndarray) -> tuple[float, str]:
    """Find the quantity on which the chains agree least.

    Parameters
    ----------
    posterior : Posterior
        Draws.
    codes : ndarray of shape (p, n)
        Rows at which f is watched; their median R-hat counts, since single points of f mix slowly in
        every sampler of sums of trees.

    Returns
    -------
    tuple of (float, str)
        R-hat and name of the quantity; NaN below 4 draws a chain.

    Notes
    -----
    A k that is drawn is not among them: trees whose values cancel each other leave it hardly identified,
    so that it mixes more slowly (split R-hat of about 1.2 at the default lengths) than the sums it serves.
    """
    f = posterior.by_chain(posterior.mean.predict(codes, slice(None), scale=False))
    found = {"f": float(np.median(split_rhat(f)))}
    if posterior.variance.structure.shape[1]:
        # Only the product of sigma^2 and the forest is identified.
        noise = np.log(posterior.variance.predict(codes, slice(None), scale=True))
        noise += np.log(posterior.sigma2)[:, None]
        found["log noise"] = float(np.median(split_rhat(posterior.by_chain(noise))))
    elif np.ptp(posterior.sigma2) > 0:
        found["sigma"] = float(split_rhat(posterior.by_chain(np.log(posterior.sigma2))))
    gamma = posterior.by_chain(posterior.gamma)
    stuck = np.ptp(gamma, axis=(0, 1)) == 0  # not a constant, but a proposal that was never accepted
    for j, value in enumerate(np.where(stuck, np.inf, 1.0) * split_rhat(gamma)):
        found[f"gamma[{j}]"] = float(value)
    name = max(found, key=lambda key: found[key])
    return found[name], name


def split_counts(forest: ForestDraws, n_features: int) -> np.ndarray:
    """Count the rules on each column in every draw.

    Parameters
    ----------
    forest : ForestDraws
        Draws.
    n_features : int
        Columns.

    Returns
    -------
    ndarray of shape (n_draws, n_features)
        Numbers of rules.
    """
    of_node = np.repeat(np.arange(len(forest.start) - 1), np.diff(forest.start))
    inner = forest.var >= 0
    per_structure = np.zeros((len(forest.start) - 1, n_features), dtype=np.int64)
    np.add.at(per_structure, (of_node[inner], forest.var[inner]), 1)
    total = np.zeros((len(forest.structure), n_features), dtype=np.int64)
    for t in range(forest.structure.shape[1]):
        total += per_structure[forest.structure[:, t]]
    return total


def interaction_counts(forest: ForestDraws, n_features: int) -> np.ndarray:
    """Count pairs of columns of which one splits a child of a node that the other splits.

    Parameters
    ----------
    forest : ForestDraws
        Draws.
    n_features : int
        Columns.

    Returns
    -------
    ndarray of shape (n_features, n_features)
        Mean number of such pairs a draw, symmetric; the diagonal counts a column below itself.
    """
    used = np.bincount(forest.structure.ravel(), minlength=len(forest.start) - 1)
    weight = np.repeat(used, np.diff(forest.start)).astype(np.float64)
    above = np.flatnonzero(forest.var >= 0)
    counts = np.zeros((n_features, n_features))
    for child in (above + 1, above + forest.right[above]):
        both = forest.var[child] >= 0
        np.add.at(counts, (forest.var[above[both]], forest.var[child[both]]), weight[above[both]])
    counts = counts + counts.T - np.diag(np.diag(counts))
    return counts / max(len(forest.structure), 1)
