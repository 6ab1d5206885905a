"""Arithmetic of the prior functions, with the same bits however the rows are cut."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

from boostplugins._jit import njit

_EDGE = 1e6  # standardised coordinates beyond it are cut, so that infinite values stay comparable
_FLAT = 1e-10  # relative standard deviation below which a column counts as constant


def matrix_of(X: Any, columns: tuple[int, ...] | None = None) -> np.ndarray:
    """Some columns, or all, of an array, a sparse matrix or a DataFrame as a matrix of floats."""
    if hasattr(X, "toarray"):
        X = X.toarray()
    if columns is not None and not hasattr(X, "iloc"):
        X = np.asarray(X)
    if len(np.shape(X)) != 2:
        raise ValueError(f"X must have shape (n_samples, n_features), got {np.shape(X)}")
    if columns is not None:
        if max(columns, default=-1) >= X.shape[1]:
            raise ValueError(f"X must have the columns {list(columns)}, got {X.shape[1]} columns")
        # Columns beside them may hold text, so that they are left out before all is turned to floats.
        X = X.iloc[:, list(columns)] if hasattr(X, "iloc") else X[:, list(columns)]
    return np.ascontiguousarray(X, dtype=np.float64)  # sums in one order


def whitening(X: np.ndarray, floor: float) -> tuple[np.ndarray, np.ndarray]:
    """Means, and the symmetric map that decorrelates standardised columns."""
    seen = np.isfinite(X)
    count = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, X, 0.0).sum(axis=0) / count
    centred = np.where(seen, X - mean, 0.0)
    spread = np.sqrt((centred**2).sum(axis=0) / count)
    spread = np.where(spread > _FLAT * np.abs(mean), spread, 1.0)
    standard = centred / spread
    eigenvalues, vectors = np.linalg.eigh(standard.T @ standard / len(X))
    eigenvalues = np.maximum(eigenvalues, max(floor * eigenvalues[-1], _FLAT))
    return mean, (vectors / np.sqrt(eigenvalues)) @ vectors.T / spread[:, None]


def project(X: np.ndarray, mean: np.ndarray, projection: np.ndarray) -> np.ndarray:
    """Coordinates in units of the lengthscale; a missing value lies at the mean."""
    with np.errstate(invalid="ignore"):
        centred = X - mean
    centred = np.where(np.isnan(centred), 0.0, centred)
    reach = np.sqrt((projection**2).sum(axis=1))
    limit = np.divide(_EDGE, reach, out=np.full_like(reach, _EDGE), where=reach > 0)
    return _product(np.clip(centred, -limit, limit), np.ascontiguousarray(projection))


def median_distance(points: np.ndarray) -> float:
    """Median distance of two points, 1 where there is none."""
    if len(points) < 2:
        return 1.0
    upper = np.triu_indices(len(points), 1)
    median = math.sqrt(float(np.median(_squared_distances(points, points)[upper])))
    return median if median > 0 else 1.0


def kernel_of(points: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """Gaussian kernel of points in units of its lengthscale."""
    return np.exp(-0.5 * _squared_distances(points, anchors))


def waves(points: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """Cosines and sines, (n, 2 R): their squares sum to one, so g has unit variance everywhere."""
    angles = _product(points, frequencies)
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)


def combine(features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Values of functions: features times weights, summed in one order."""
    return _product(features, weights)


@njit(error_model="numpy")
def _product(left, right):  # type: ignore[no-untyped-def]
    """Matrix product summed in one order for each row: a BLAS may order by the number of rows."""
    out = np.zeros((left.shape[0], right.shape[1]))
    for i in range(left.shape[0]):
        for j in range(left.shape[1]):
            value = left[i, j]
            for k in range(right.shape[1]):
                out[i, k] += value * right[j, k]
    return out


@njit(error_model="numpy")
def _squared_distances(left, right):  # type: ignore[no-untyped-def]
    """Squared Euclidean distances; differences first, so that near points lose no digits."""
    turned = np.ascontiguousarray(right.T)
    out = np.zeros((left.shape[0], right.shape[0]))
    for i in range(left.shape[0]):
        for j in range(turned.shape[0]):
            value = left[i, j]
            for k in range(turned.shape[1]):
                out[i, k] += (value - turned[j, k]) ** 2
    return out


def encode(values: np.ndarray, dtype: str) -> str:
    """Text of an array."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode("ascii")


def decode(text: str, dtype: str) -> np.ndarray:
    """Flat float64 array of a text."""
    return np.frombuffer(base64.b64decode(text), dtype=dtype).astype(np.float64)
