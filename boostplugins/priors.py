r"""Prior functions: random functions that are silent on the training rows and speak where there are none.

A leaf of a boosted tree always holds data, so far from the data a tree ensemble repeats the
certainty of its nearest leaf. A prior function f_c, drawn anew for each cycle of a chain and added
to its raw scores, keeps the members apart there. To cost nothing where there are data, it is drawn
from a Gaussian process *conditioned* to be zero at anchor rows Z of the training set, by Matheron's
rule [1]_:

.. math:: f_c(x) = s \left[g_c(x) - k(x, Z) (K_{ZZ} + \nu I)^{-1} (g_c(Z) + \sqrt\nu\,\epsilon_c)\right]

with g_c a random function of unit variance and covariance k (random Fourier features [2]_ of a
Gaussian kernel) and standard normal :math:`\epsilon_c`. Over cycles the variance of f_c(x) is
:math:`s^2 [1 - k(x, Z) (K_{ZZ} + \nu I)^{-1} k(Z, x)]` exactly: nearly zero among the anchors, s^2
far from them.

References
----------
.. [1] Wilson, Borovitskiy, Terenin, Mostowsky, Deisenroth (2021), Pathwise conditioning of Gaussian
   processes. JMLR 22.
.. [2] Rahimi, Recht (2007), Random features for large-scale kernel machines. NeurIPS 20.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from boostplugins._prior_arrays import (
    combine,
    decode,
    encode,
    kernel_of,
    matrix_of,
    median_distance,
    project,
    waves,
    whitening,
)
from boostplugins._validation import check_integer, check_real
from boostplugins.noise import Stream, normals

_BLOCK = 256  # rows worked on at a time, always a full block: bits do not depend on how rows are cut
_SAMPLE = 1000  # rows whose distances set the lengthscale


@dataclass(frozen=True)
class RandomPrior:
    """Conditioned random functions for the cycles of a chain.

    Features are standardised with the training rows' means and standard deviations and decorrelated
    (eigenvalues of the correlation matrix below `floor` times the largest count as that), so that
    duplicated or collinear columns count once and a broken correlation is as visible as a shifted
    mean. A missing value counts as its column's mean; a constant column keeps its own units.

    Parameters
    ----------
    scale : float, optional
        Standard deviation far from the data, in units of the raw score's noise (1 for class scores,
        the noise standard deviation for a squared error), > 0. By default as large as
        `in_domain` allows.
    in_domain : float, default=0.4
        Root mean square of the functions left at an anchor that was not conditioned on, in the same
        units, > 0: what the prior may cost on new rows of the training domain. Sets the default scale.
    lengthscale : float, default=0.5
        Lengthscale of the Gaussian kernel over the median distance of two training rows, > 0.
    n_anchors : int, default=2000
        Training rows, drawn at random, where the functions are held at zero, >= 1.
    n_frequencies : int, default=128
        Random Fourier frequencies a function, >= 1.
    noise : float, default=0.01
        Variance nu, relative to the kernel's, with which anchors are held at zero, > 0.
    floor : float, default=0.01
        Least eigenvalue of the correlation matrix, relative to the largest, in (0, 1].
    max_scale : float, default=30.0
        Limit of the default scale, > 0.
    random_state : int, default=0
        Seed of anchors and functions, >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins import RandomPrior
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> prior = RandomPrior(scale=2.0).fit(X)
    >>> near = prior.values(0, X, n_outputs=3)
    >>> far = prior.values(0, X + 50.0, n_outputs=3)
    >>> near.shape, bool(near.std() < 0.2), bool(far.std() > 1.0)
    ((500, 3), True, True)
    """

    scale: float | None = None
    in_domain: float = 0.4
    lengthscale: float = 0.5
    n_anchors: int = 2000
    n_frequencies: int = 128
    noise: float = 0.01
    floor: float = 0.01
    max_scale: float = 30.0
    random_state: int = 0

    def __post_init__(self) -> None:
        if self.scale is not None:
            check_real("scale", self.scale, 0.0, closed="neither")
        check_real("in_domain", self.in_domain, 0.0, closed="neither")
        check_real("lengthscale", self.lengthscale, 0.0, closed="neither")
        check_integer("n_anchors", self.n_anchors, 1)
        check_integer("n_frequencies", self.n_frequencies, 1)
        check_real("noise", self.noise, 0.0, closed="neither")
        check_real("floor", self.floor, 0.0, 1.0, closed="right")
        check_real("max_scale", self.max_scale, 0.0, closed="neither")
        check_integer("random_state", self.random_state, 0)

    def fit(self, X: Any, columns: Sequence[int] | None = None) -> FittedPrior:
        """Learn where the training rows lie.

        Parameters
        ----------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Training rows as floats; NaN is missing.
        columns : sequence of int, optional
            Numbers of the columns to look at, such as those that are no categories; all by default.

        Returns
        -------
        FittedPrior
            The functions.

        Raises
        ------
        ValueError
            If X is not a non-empty matrix.
        """
        kept = None if columns is None else tuple(int(column) for column in columns)
        X = matrix_of(X, kept)
        if not X.size:
            raise ValueError(f"X must have at least one row and one column, got shape {X.shape}")
        mean, projection = whitening(X, self.floor)
        order = np.random.Generator(np.random.Philox(key=self.random_state)).permutation(len(X))
        distance = median_distance(project(X[order[:_SAMPLE]], mean, projection))
        projection = projection / (self.lengthscale * distance)
        anchors = project(X[order[: self.n_anchors]], mean, projection)
        # Single precision halves what travels with a model; the functions are exact for what is kept.
        anchors = anchors.astype(np.float32).astype(np.float64)
        settings = (self.noise, self.n_frequencies, self.random_state)
        fitted = FittedPrior(mean, projection, anchors, 1.0, *settings, columns=kept)
        return replace(fitted, scale=self._affordable(fitted) if self.scale is None else float(self.scale))

    def to_dict(self) -> dict[str, Any]:
        """Describe the prior.

        Returns
        -------
        dict
            JSON-ready keyword arguments.
        """
        return asdict(self)

    def _affordable(self, fitted: FittedPrior) -> float:
        """Scale at which the functions left at an anchor held out have root mean square `in_domain`."""
        left = float(np.mean(fitted._held_out_variance()))
        return min(self.in_domain / math.sqrt(max(left, 1e-300)), self.max_scale)


@dataclass(frozen=True, eq=False)
class FittedPrior:
    """Prior functions of a training set: pure functions of (seed, cycle, output, row).

    Values have the same bits for any order of calls and any cut of the rows.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
        Means of the training rows, which missing values are set to.
    projection : ndarray of shape (n_features, n_features)
        Map from centred features to units of the lengthscale.
    anchors : ndarray of shape (n_anchors, n_features)
        Anchor rows after the projection.
    scale : float
        Standard deviation far from the anchors.
    noise : float
        Relative variance with which anchors are held at zero.
    n_frequencies : int
        Random Fourier frequencies a function.
    random_state : int
        Seed of the functions.
    units : tuple of float, optional
        Factor of each raw score's functions; 1 by default.
    columns : tuple of int, optional
        Columns of the rows that the functions look at; all by default.

    Examples
    --------
    >>> import json
    >>> import numpy as np
    >>> from boostplugins import RandomPrior
    >>> from boostplugins.priors import FittedPrior
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> prior = RandomPrior().fit(X)
    >>> again = FittedPrior.from_dict(json.loads(json.dumps(prior.to_dict())))
    >>> bool((again.values(3, X, 2) == prior.values(3, X, 2)).all())
    True
    """

    mean: np.ndarray
    projection: np.ndarray
    anchors: np.ndarray
    scale: float
    noise: float
    n_frequencies: int
    random_state: int
    units: tuple[float, ...] | None = None
    columns: tuple[int, ...] | None = None

    def in_units(self, units: Sequence[float]) -> FittedPrior:
        """Express the functions in the units of a loss's raw scores.

        Parameters
        ----------
        units : sequence of float
            Factor of each raw score, such as `Loss.prior_units`.

        Returns
        -------
        FittedPrior
            The same functions, times these factors.
        """
        return replace(self, units=tuple(float(unit) for unit in units))

    def values(self, cycle: int, X: Any, n_outputs: int = 1) -> np.ndarray:
        """Evaluate the functions of one cycle.

        Parameters
        ----------
        cycle : int
            Number of the cycle, >= 0.
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Rows as floats; NaN is missing.
        n_outputs : int, default=1
            Raw scores K, one independent function each.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            Values, in units of the raw score's noise.
        """
        return self.values_of([cycle], X, n_outputs)[0]

    def values_of(self, cycles: Sequence[int], X: Any, n_outputs: int = 1) -> np.ndarray:
        """Evaluate the functions of several cycles in one pass over the rows.

        The distances to the anchors, most of the work, are shared by the cycles.

        Parameters
        ----------
        cycles : sequence of int
            Numbers of the cycles.
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Rows as floats; NaN is missing.
        n_outputs : int, default=1
            Raw scores K.

        Returns
        -------
        ndarray of shape (n_cycles, n_samples, n_outputs)
            Values, in units of the raw score's noise.

        Raises
        ------
        ValueError
            If X has not the features of the training rows.
        """
        X = matrix_of(X, self.columns)
        if X.shape[1] != len(self.mean):
            raise ValueError(f"X must have {len(self.mean)} features as in fit, got {X.shape[1]}")
        draws = [self._draw(cycle, n_outputs) for cycle in cycles]
        out = np.zeros((len(draws), len(X), n_outputs))
        block = np.zeros((_BLOCK, X.shape[1]))
        for start in range(0, len(X), _BLOCK):
            rows = X[start : start + _BLOCK]
            block[: len(rows)] = rows
            coordinates = project(block, self.mean, self.projection)
            kernel = kernel_of(coordinates, self.anchors)
            for values, draw in zip(out, draws):
                values[start : start + len(rows)] = self._function(coordinates, kernel, draw)[: len(rows)]
        return out if self.units is None else out * np.array(self.units)

    def variance(self, X: Any) -> np.ndarray:
        """Variance of the functions over cycles.

        Parameters
        ----------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Rows as floats; NaN is missing.

        Returns
        -------
        ndarray of shape (n_samples,)
            Variance, in [0, scale**2].
        """
        kernel = kernel_of(project(matrix_of(X, self.columns), self.mean, self.projection), self.anchors)
        explained = np.einsum("nm,mn->n", kernel, cho_solve(self._factor, kernel.T))
        return self.scale**2 * np.clip(1.0 - explained, 0.0, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Describe the functions.

        Returns
        -------
        dict
            JSON-ready; `from_dict` reads it. Arrays are base64 of little-endian floats.
        """
        arrays = {"mean": self.mean, "projection": self.projection}
        return {
            **{name: encode(value, "<f8") for name, value in arrays.items()},
            "anchors": encode(self.anchors, "<f4"),
            "scale": float(self.scale),
            "noise": float(self.noise),
            "n_frequencies": int(self.n_frequencies),
            "random_state": int(self.random_state),
            "units": None if self.units is None else list(self.units),
            "columns": None if self.columns is None else list(self.columns),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> FittedPrior:
        """Read what `to_dict` wrote.

        Parameters
        ----------
        state : mapping
            Description.

        Returns
        -------
        FittedPrior
            The same functions, bit for bit.
        """
        mean = decode(state["mean"], "<f8")
        width = len(mean)
        return cls(
            mean,
            decode(state["projection"], "<f8").reshape(width, width),
            decode(state["anchors"], "<f4").reshape(-1, width),
            float(state["scale"]),
            float(state["noise"]),
            int(state["n_frequencies"]),
            int(state["random_state"]),
            None if state.get("units") is None else tuple(state["units"]),
            None if state.get("columns") is None else tuple(state["columns"]),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_factor"}

    @cached_property
    def _factor(self) -> tuple[np.ndarray, bool]:
        """Cholesky factor of K_ZZ + nu I, made again where a copy needs it."""
        covariance = kernel_of(self.anchors, self.anchors)
        covariance[np.diag_indices_from(covariance)] += self.noise
        return cho_factor(covariance, lower=True)

    def _held_out_variance(self) -> np.ndarray:
        """Relative variance left at each anchor by the others (leave-one-out identity)."""
        precision = np.diag(cho_solve(self._factor, np.eye(len(self.anchors))))
        return np.clip(1.0 / precision - self.noise, 0.0, 1.0)

    def _draw(self, cycle: int, n_outputs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Frequencies (d, R), weights of cosines and sines (2 R, K), anchor weights (m, K)."""
        seed, stream, n_features = self.random_state, Stream.PRIOR, len(self.mean)
        frequencies = normals(seed, cycle, stream, n_features * self.n_frequencies)
        frequencies = frequencies.reshape(n_features, self.n_frequencies)
        weights = np.empty((2 * self.n_frequencies, n_outputs))
        targets = np.empty((len(self.anchors), n_outputs))
        for k in range(n_outputs):
            weights[:, k] = normals(seed, cycle, stream, len(weights), output=2 * k + 1)
            targets[:, k] = normals(seed, cycle, stream, len(targets), output=2 * k + 2)
        weights /= math.sqrt(self.n_frequencies)
        targets = math.sqrt(self.noise) * targets + combine(waves(self.anchors, frequencies), weights)
        return frequencies, weights, cho_solve(self._factor, targets)

    def _function(
        self, coordinates: np.ndarray, kernel: np.ndarray, draw: tuple[np.ndarray, np.ndarray, np.ndarray]
    ) -> np.ndarray:
        frequencies, weights, correction = draw
        prior = combine(waves(coordinates, frequencies), weights)
        return self.scale * (prior - combine(kernel, correction))
