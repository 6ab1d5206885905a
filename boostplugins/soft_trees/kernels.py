"""Compiled passes over a soft tree: node values up, derivatives down."""

from __future__ import annotations

import math

import numpy as np

from boostplugins._jit import njit


@njit
def evaluate(gates, node, beta, eta):  # type: ignore[no-untyped-def]
    """Turn logits into gates, in place, and add up the tree's value in each row.

    Split s of node ``node[s]`` makes nodes 2s + 1 (left) and 2s + 2 (right), so that walking the
    splits backwards meets children before parents: v[node] = beta[node] + p v[left] + (1 - p) v[right].
    """
    n, splits = gates.shape
    value = np.empty(2 * splits + 1)
    for i in range(n):
        value[:] = beta
        for s in range(splits - 1, -1, -1):
            z = gates[i, s]
            if z >= 0:
                p = 1.0 / (1.0 + math.exp(-z))
            else:
                p = math.exp(z)
                p = p / (1.0 + p)
            gates[i, s] = p
            value[node[s]] += p * value[2 * s + 1] + (1.0 - p) * value[2 * s + 2]
        eta[i] = value[0]


@njit
def differentiate(gates, node, beta, score, slope, grad):  # type: ignore[no-untyped-def]
    """Carry d objective / d eta down to the logits (`slope`) and to the coefficients (`grad`).

    With P the path weight of the node split, d eta / d logit = P (v[left] - v[right]) p (1 - p) and
    d eta / d beta[j] = P[j]. `grad` is added to.
    """
    n, splits = gates.shape
    value = np.empty(2 * splits + 1)
    weight = np.empty(2 * splits + 1)
    for i in range(n):
        value[:] = beta
        for s in range(splits - 1, -1, -1):
            p = gates[i, s]
            value[node[s]] += p * value[2 * s + 1] + (1.0 - p) * value[2 * s + 2]
        weight[0] = score[i]
        grad[0] += score[i]
        for s in range(splits):
            p = gates[i, s]
            above = weight[node[s]]
            weight[2 * s + 1] = above * p
            weight[2 * s + 2] = above * (1.0 - p)
            grad[2 * s + 1] += above * p
            grad[2 * s + 2] += above * (1.0 - p)
            slope[i, s] = above * (value[2 * s + 1] - value[2 * s + 2]) * p * (1.0 - p)


@njit
def best_step(t, r, h, cuts, steeps, ridge):  # type: ignore[no-untyped-def]
    """Find the gate sigmoid(steep (t - cut)) whose two coefficients fit the working residual best.

    r = P u and h = P^2 W hold the leaf's score and curvature. The gain of coefficients (a, b) with
    ridge is half of c' A^-1 c for the 2 x 2 normal equations. Returns gain, cut number, steep number.
    """
    best, best_cut, best_steep = -1.0, 0, 0
    for k in range(len(steeps)):
        for j in range(len(cuts)):
            cl = cr = ll = lr = rr = 0.0
            for i in range(len(t)):
                z = steeps[k] * (t[i] - cuts[j])
                if z >= 0:
                    p = 1.0 / (1.0 + math.exp(-z))
                else:
                    p = math.exp(z)
                    p = p / (1.0 + p)
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
