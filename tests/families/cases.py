"""Families under test: whatever discovery finds, at a few moderate sets of parameters."""

from __future__ import annotations

import numpy as np

from boostplugins.families import Gamma, NegativeBinomial, Poisson, families

# Settings of families that need some; every other family is tested as it comes.
SETTINGS = {
    "categorical": [{"n_classes": 3}],
    "tweedie": [{"power": 1.5}, {"power": 1.2}],
    "censored": [{"low": -0.5, "high": 1.0}, {"base": Gamma(), "low": 0.4}],
    "truncated": [{"low": -0.5, "high": 2.0}, {"base": Gamma(), "low": 0.4}, {"low": 0.0}],
    "interval_censored": [{}, {"base": Gamma()}],
    "zero_inflated": [{}, {"base": NegativeBinomial()}],
    "hurdle": [{}, {"base": Poisson()}],
}
# Raw scores about which the tests draw, where zero is not typical.
CENTRES = {
    "student_t": [0.3, 0.2, np.log(6.0)],
    "beta": [0.3, np.log(6.0)],
    "jsu": [0.2, 0.1, 0.3, np.log(1.6)],
    "poisson": [1.0],
    "negative_binomial": [1.0, 0.5],
    "normal_mixture": [0.0, 0.2, -1.0, 1.5, -0.3, 0.2],
}


def instances():
    return [kind(**setting) for name, kind in families().items() for setting in SETTINGS.get(name, [{}])]


FAMILIES = instances()
IDS = [repr(family) for family in FAMILIES]


def raws(family, n, spread=0.3, seed=0):
    """Raw scores about the family's centre."""
    centre = np.asarray(CENTRES.get(family.name, np.zeros(family.n_params)), dtype=float)
    return centre + spread * np.random.default_rng(seed).normal(size=(n, family.n_params))


def draws(family, theta, seed=1):
    """One response for each row of parameters."""
    return family.sample(theta, 1, np.random.default_rng(seed))[:, 0]
