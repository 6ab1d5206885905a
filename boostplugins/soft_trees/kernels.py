"""Compiled passes over a soft tree: node values up, derivatives down."""

from __future__ import annotations

import math

import numpy as np

from boostplugins._jit import njit

# Rows that are walked together: their node values stay in the fastest cache, and loops over them vectorise.
_TOGETHER = 64
# Beyond this a gate is open or shut; products of two such exponentials stay finite.
_SHUT = 300.0


def evaluate(gates: np.ndarray, node: np.ndarray, beta: np.ndarray, eta: np.ndarray) -> None:
    """Turn logits into gates, in place, and add up the tree's value in each row.

    Split s of node ``node[s]`` makes nodes 2s + 1 (left) and 2s + 2 (right), so that walking the
    splits backwards meets children before parents: v[node] = beta[node] + p v[left] + (1 - p) v[right].

    Parameters
    ----------
    gates : ndarray of shape (n_samples, n_splits)
        Logits, and gates afterwards; in Fortran order, a split's rows side by side.
    node : ndarray of shape (n_splits,)
        Node that each split divides.
    beta : ndarray of shape (2 n_splits + 1,)
        Coefficients of the nodes.
    eta : ndarray of shape (n_samples,)
        Gets the values.
    """
    small = np.abs(gates.T)
    np.negative(small, out=small)
    np.exp(small, out=small)  # numpy's exponential works on several rows at once
    _evaluate(gates.T, small, node, beta, eta)


@njit
def _evaluate(gates, small, node, beta, eta):  # type: ignore[no-untyped-def]
    """With ``small`` = exp(-|logit|), a row a split."""
    splits, n = gates.shape
    value = np.empty((2 * splits + 1, _TOGETHER))
    for first in range(0, n, _TOGETHER):
        many = min(_TOGETHER, n - first)
        for j in range(2 * splits + 1):
            value[j] = beta[j]
        for s in range(splits - 1, -1, -1):
            above, left, right = value[node[s]], value[2 * s + 1], value[2 * s + 2]
            for i in range(many):
                e = small[s, first + i]
                q = 1.0 / (1.0 + e)
                p = q if gates[s, first + i] >= 0 else e * q
                gates[s, first + i] = p
                above[i] += p * left[i] + (1.0 - p) * right[i]
        eta[first : first + many] = value[0, :many]


def differentiate(
    gates: np.ndarray,
    node: np.ndarray,
    beta: np.ndarray,
    score: np.ndarray,
    slope: np.ndarray,
    grad: np.ndarray,
) -> None:
    """Carry d objective / d eta down to the logits and to the coefficients.

    With P the path weight of the node split, d eta / d logit = P (v[left] - v[right]) p (1 - p) and
    d eta / d beta[j] = P[j].

    Parameters
    ----------
    gates : ndarray of shape (n_samples, n_splits)
        What `evaluate` left, in Fortran order.
    node, beta : ndarray
        As in `evaluate`.
    score : ndarray of shape (n_samples,)
        Derivative of the objective in each row's value.
    slope : ndarray of shape (n_samples, n_splits)
        Gets the derivatives in the logits; in Fortran order.
    grad : ndarray of shape (2 n_splits + 1,)
        The derivatives in the coefficients are added to it.
    """
    _differentiate(gates.T, node, beta, score, slope.T, grad)


@njit
def _differentiate(gates, node, beta, score, slope, grad):  # type: ignore[no-untyped-def]
    splits, n = gates.shape
    value = np.empty((2 * splits + 1, _TOGETHER))
    weight = np.empty((2 * splits + 1, _TOGETHER))
    for first in range(0, n, _TOGETHER):
        many = min(_TOGETHER, n - first)
        for j in range(2 * splits + 1):
            value[j] = beta[j]
        for s in range(splits - 1, -1, -1):
            above, left, right = value[node[s]], value[2 * s + 1], value[2 * s + 2]
            for i in range(many):
                p = gates[s, first + i]
                above[i] += p * left[i] + (1.0 - p) * right[i]
        for i in range(many):
            weight[0, i] = score[first + i]
            grad[0] += score[first + i]
        for s in range(splits):
            left, right = value[2 * s + 1], value[2 * s + 2]
            above, below, beside = weight[node[s]], weight[2 * s + 1], weight[2 * s + 2]
            for i in range(many):
                p = gates[s, first + i]
                below[i] = above[i] * p
                beside[i] = above[i] * (1.0 - p)
                slope[s, first + i] = below[i] * (1.0 - p) * (left[i] - right[i])
            for i in range(many):
                grad[2 * s + 1] += below[i]
                grad[2 * s + 2] += beside[i]


@njit(fastmath={"reassoc"})
def best_step(t, r, h, cuts, steeps, ridge):  # type: ignore[no-untyped-def]
    """Find the gate sigmoid(steep (t - cut)) whose two coefficients fit the working residual best.

    r = P u and h = P^2 W hold the leaf's score and curvature. The gain of coefficients (a, b) with
    ridge is half of c' A^-1 c for the 2 x 2 normal equations. Returns gain, cut number, steep number.
    """
    best, best_cut, best_steep = -1.0, 0, 0
    middle = cuts[len(cuts) // 2]
    small = np.empty(len(t))
    for k in range(len(steeps)):
        for i in range(len(t)):
            small[i] = math.exp(min(max(steeps[k] * (middle - t[i]), -_SHUT), _SHUT))
        for j in range(len(cuts)):
            shift = math.exp(min(max(steeps[k] * (cuts[j] - middle), -_SHUT), _SHUT))
            cl = cr = ll = lr = rr = 0.0
            for i in range(len(t)):
                p = 1.0 / (1.0 + small[i] * shift)
                q = 1.0 - p
                cl += p * r[i]
                cr += q * r[i]
                ll += p * p * h[i]
                lr += p * q * h[i]
                rr += q * q * h[i]
            ll += ridge
            rr += ridge
            det = ll * rr - lr * lr
            if det > 1e-12 * ll * rr:
                gain = 0.5 * (cl * cl * rr - 2.0 * cl * cr * lr + cr * cr * ll) / det
                if gain > best:
                    best, best_cut, best_steep = gain, j, k
    return best, best_cut, best_steep
