"""Draws that are no tree's: sigma^2, the variance of the leaf values, a probit's latent responses."""

from __future__ import annotations

import math

import numpy as np

from boostplugins.hbart.compiling import inner


@inner
def draw_sigma2(rng, squares, count, nu, scale):  # type: ignore[no-untyped-def]
    """Draw sigma^2 from its scaled inverse chi-square conditional.

    Inverse gamma with shape (nu + n) / 2 and rate (nu lambda + sum of w e^2) / 2.
    """
    return 0.5 * (nu * scale + squares) / rng.standard_gamma(0.5 * (nu + count))


@inner
def draw_leaf_var(rng, forest):  # type: ignore[no-untyped-def]
    """Draw the variance of a mean forest's leaf values from its scaled inverse chi-square conditional."""
    trees, prior = forest.trees, forest.prior
    number, squares = 0, 0.0
    for t in range(len(trees.top)):
        for node in range(trees.top[t]):
            if trees.var[t, node] == -1:
                number += 1
                squares += trees.value[t, node] * trees.value[t, node]
    prior.leaf_var[0] = draw_sigma2(rng, squares, number, prior.leaf_nu, prior.leaf_lam)


@inner
def normal_above(rng, bound):  # type: ignore[no-untyped-def]
    """Draw a standard normal given that it exceeds a bound (Robert, 1995)."""
    if bound < 0.5:
        while True:
            z = rng.standard_normal()
            if z > bound:
                return z
    rate = 0.5 * (bound + math.sqrt(bound * bound + 4.0))
    while True:
        z = bound - math.log(1.0 - rng.random()) / rate
        if math.log(1.0 - rng.random()) <= -0.5 * (z - rate) ** 2:
            return z


@inner
def draw_latent(rng, target, residual, sign, offset):  # type: ignore[no-untyped-def]
    """Draw z ~ N(f + offset, 1) on the observed side of 0 (Albert and Chib, 1993); targets are z - offset.

    `sign` is +1 for the positive class and -1 for the other; the residual z - f moves along.
    """
    for i in range(len(target)):
        f = target[i] - np.float64(residual[i])
        z = normal_above(rng, -sign[i] * (f + offset))
        target[i] = f + sign[i] * z
        residual[i] = sign[i] * z
