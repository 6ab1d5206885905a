"""Small problems that the tests of the LightGBM chain share."""

from __future__ import annotations

import math

import lightgbm as lgb
import numpy as np

from boostplugins.lightgbm import CyclicalSGLB

QUIET = {"verbosity": -1, "num_threads": 1}


def plain(loss, **options):
    """A chain that is ordinary boosting."""
    return CyclicalSGLB(loss, temperature=math.inf, **options)


def train(chain, X, y, n_steps=10, weight=None, **options):
    params = {"objective": chain.objective} | QUIET | chain.lightgbm_params() | options
    return lgb.train(params, lgb.Dataset(X, y, weight=weight), n_steps, callbacks=[chain.callback()])


def regression(n=300, p=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=n)
