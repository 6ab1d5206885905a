"""Where a gate could start: directions read off the working residuals of one leaf."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, eigh, solve
from scipy.optimize import minimize

from boostplugins.soft_trees.kernels import best_step

# Rows that look for a start; the likelihood of all rows decides afterwards.
SCREEN_ROWS = 4096
# Quantiles of a direction at which its gate may sit, and slopes in units of its deviation.
_CUTS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
_STEEPS = np.array([1.0, 4.0])
_GENTLE = np.array([0.4, 1.0])
# Keeps the normal equations solvable when a leaf holds few rows or a feature is constant.
_JITTER = 1e-6


@dataclass(frozen=True)
class Gate:
    """A gate that might divide a leaf.

    Parameters
    ----------
    gain : float
        Expected rise of the penalised log likelihood, by its quadratic model.
    intercept : float
        Gate intercept.
    omega : ndarray of shape (n_features,)
        Gate weights.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.soft_trees.screening import Gate
    >>> Gate(2.5, 0.0, np.ones(1)).gain
    2.5
    """

    gain: float
    intercept: float
    omega: np.ndarray


def propose(
    x: np.ndarray, weight: np.ndarray, score: np.ndarray, fisher: np.ndarray, ridge: float, nodes: float
) -> list[Gate]:
    """Find starts for the gate of one leaf, the best first.

    Directions: the weighted least squares fit of the working residual (where it rises), the two
    leading principal Hessian directions (where it bends or interacts), and the features
    whose best single step explains most. Along each, a few places and slopes are tried.

    Parameters
    ----------
    x : ndarray of shape (n_samples, n_features)
        Standardised features.
    weight : ndarray of shape (n_samples,)
        Path weights of the leaf.
    score, fisher : ndarray of shape (n_samples,)
        Derivative and curvature of the log likelihood in the predictor.
    ridge, nodes : float
        Penalties of gate weights and node coefficients.

    Returns
    -------
    list of Gate
        Candidates by falling gain; empty where no feature varies.
    """
    r, h = weight * score, weight * weight * fisher
    total = h.sum()
    if not total > 0 or not np.isfinite(total):
        return []
    gates = []
    for direction in _directions(x, r, h):
        gate = _along(x, direction, r, h, ridge, nodes)
        if gate is not None:
            gates.append(gate)
    return sorted(gates, key=lambda gate: -gate.gain)


def propose_pairs(
    x: np.ndarray, weight: np.ndarray, score: np.ndarray, fisher: np.ndarray, ridge: float, nodes: float
) -> list[tuple[Gate, np.ndarray]]:
    """Find gates that help a leaf only when they divide it and both its children.

    A bend or an interaction needs the products p^2, p (1 - p), (1 - p)^2 of one gentle gate; a single
    gate would have to be steep, and steep gates are dear under the ridge.

    Parameters
    ----------
    x, weight, score, fisher : ndarray
        As in `propose`.
    ridge, nodes : float
        As in `propose`.

    Returns
    -------
    list of (Gate, ndarray of shape (3,))
        By falling gain: the gate, and coefficients of the grandchildren left-left, the two mixed
        ones, right-right.
    """
    r, h = weight * score, weight * weight * fisher
    if not h.sum() > 0 or not np.isfinite(h.sum()):
        return []
    found = []
    share = h / h.sum()
    for direction in _directions(x, r, h):
        t = x @ direction
        centre = float(share @ t)
        spread = float(np.sqrt(share @ (t - centre) ** 2))
        if not spread > 0 or not np.isfinite(spread):
            continue
        for steep in _GENTLE / spread:
            p = _sigmoid(steep * (t - centre))
            columns = np.stack([p * p, 2.0 * p * (1.0 - p), (1.0 - p) ** 2], axis=1)
            matrix = (columns * h[:, None]).T @ columns
            matrix[np.diag_indices(3)] += 2.0 * nodes + 1e-9 * np.trace(matrix)
            slope = columns.T @ r
            coef = np.linalg.solve(matrix, slope)
            omega = steep * direction
            gain = 0.5 * float(slope @ coef) - 3.0 * ridge * float(omega @ omega)
            found.append((Gate(gain, -steep * centre, omega), coef))
    return sorted(found, key=lambda pair: -pair[0].gain)


def _directions(x: np.ndarray, r: np.ndarray, h: np.ndarray) -> list[np.ndarray]:
    q = x.shape[1]
    share = h / h.sum()
    centred = x - share @ x
    weighted = centred * share[:, None]
    cov = weighted.T @ centred
    cov[np.diag_indices(q)] += _JITTER * max(float(np.trace(cov)) / q, _JITTER)
    residual = r / h.sum() - share * (r.sum() / h.sum())
    slope = centred.T @ residual
    found = []
    try:
        linear = solve(cov, slope, assume_a="pos")
        found.append(linear)
        bend = residual - share * (centred @ linear)
        values, vectors = eigh((centred * bend[:, None]).T @ centred, cov)
        order = np.argsort(-np.abs(values))
        found.extend(vectors[:, j] for j in order[:2] if q > 1)
    except LinAlgError:
        pass
    singles = _single_features(centred, residual, share)
    return found + singles


def _single_features(centred: np.ndarray, residual: np.ndarray, share: np.ndarray) -> list[np.ndarray]:
    """The two features with the largest gain of one hard step at their quartiles."""
    spread = np.sqrt(share @ centred**2)
    gains = np.zeros(centred.shape[1])
    for cut in (-0.8, 0.0, 0.8):
        left = centred <= cut * spread
        sums, mass = residual @ left, share @ left
        gains = np.maximum(gains, sums**2 / np.maximum(mass * (1.0 - mass), 0.02))
    best = np.argsort(-gains, kind="stable")[:2]
    return [np.eye(len(gains))[j] for j in best if spread[j] > 0]


def _along(
    x: np.ndarray, direction: np.ndarray, r: np.ndarray, h: np.ndarray, ridge: float, nodes: float
) -> Gate | None:
    t = x @ direction
    share = h / h.sum()
    spread = float(np.sqrt(share @ (t - share @ t) ** 2))
    if not spread > 0 or not np.isfinite(spread):
        return None
    order = np.argsort(t)  # which of equal rows comes first changes no cut
    places = np.searchsorted(np.cumsum(share[order]), _CUTS)
    cuts = t[order][np.minimum(places, len(t) - 1)]
    steeps = _STEEPS / spread
    gain, cut, steep = best_step(t, r, h, cuts, steeps, 2.0 * nodes)
    omega = steeps[steep] * direction
    return Gate(gain - ridge * float(omega @ omega), float(-steeps[steep] * cuts[cut]), omega)


def polish(
    gate: Gate,
    x: np.ndarray,
    weight: np.ndarray,
    score: np.ndarray,
    fisher: np.ndarray,
    ridge: float,
    nodes: float,
    max_iter: int = 20,
) -> tuple[Gate, np.ndarray]:
    """Move a gate to the top of the quadratic model, its two coefficients being profiled out.

    Parameters
    ----------
    gate : Gate
        Where to start.
    x, weight, score, fisher : ndarray
        As in `propose`.
    ridge, nodes : float
        As in `propose`.
    max_iter : int, default=20
        L-BFGS iterations.

    Returns
    -------
    Gate, ndarray of shape (2,)
        The better gate and the coefficients of its children.
    """
    r, h = weight * score, weight * weight * fisher

    def profiled(vector: np.ndarray) -> tuple[float, np.ndarray]:
        z = x @ vector[1:] + vector[0]
        p = _sigmoid(z)
        pair, gain = _pair(p, r, h, nodes)
        jump = pair[0] - pair[1]
        left = r - h * (pair[1] + p * jump)
        slope = left * jump * p * (1.0 - p)
        value = gain - ridge * float(vector[1:] @ vector[1:])
        grad = np.concatenate([[slope.sum()], slope @ x - 2.0 * ridge * vector[1:]])
        return -value, -grad

    start = np.concatenate([[gate.intercept], gate.omega])
    result = minimize(
        profiled, start, jac=True, method="L-BFGS-B", options={"maxiter": max_iter, "maxcor": 8}
    )
    vector = result.x if np.isfinite(result.fun) else start
    pair, _ = _pair(_sigmoid(x @ vector[1:] + vector[0]), r, h, nodes)
    return Gate(float(-result.fun), float(vector[0]), vector[1:]), pair


def _pair(p: np.ndarray, r: np.ndarray, h: np.ndarray, nodes: float) -> tuple[np.ndarray, float]:
    """Coefficients of the two children and half the squared score they explain."""
    q = 1.0 - p
    hp = h * p
    ll, lr, rr = float(hp @ p), float(hp @ q), float((h * q) @ q)
    matrix = np.array([[ll, lr], [lr, rr]])
    matrix[[0, 1], [0, 1]] += 2.0 * nodes + 1e-9 * (ll + rr) + 1e-300
    slope = np.array([float(p @ r), float(q @ r)])
    pair = np.linalg.solve(matrix, slope)
    return pair, 0.5 * float(slope @ pair)


def _sigmoid(z: np.ndarray) -> np.ndarray:
    small = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, small) / (1.0 + small)
