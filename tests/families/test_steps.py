"""What a booster is given for one round."""

from __future__ import annotations

import numpy as np
import pytest

from boostplugins.families import get_family
from boostplugins.families._steps import Steps


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("name", "rate"), [("poisson", 0.02), ("poisson", 1e-3), ("bernoulli", 1e-3)])
def test_limits_of_scores_leave_the_rate_of_rare_events_alone(name, rate, exponent):
    """At the true rate the gradients of all rows add up to nothing."""
    n = 10_000
    y = (np.arange(n) < rate * n).astype(float)
    steps = Steps(get_family(name), y, None, None, exponent)
    out = np.empty((n, 1)), np.empty((n, 1))
    steps.terms(np.tile(steps.start, (n, 1)), -1.0, out)
    assert abs(out[0].sum()) <= 1e-6 * np.abs(out[0]).sum()


def test_one_outlier_has_a_limited_say():
    y = np.append(np.ones(99), 1e6)
    for name, largest in (("normal", 20.0), ("poisson", 20.0), ("gamma", 20.0)):
        steps = Steps(get_family(name), y, None, None, 1.0)
        raw = np.tile(get_family(name).init(y[:50] + np.linspace(0.0, 1.0, 50)), (100, 1))
        out = np.empty(raw.shape), np.empty(raw.shape)
        steps.terms(raw, -1.0, out)
        fisher = get_family(name).score_and_fisher(y, raw)[1]
        free = steps.unit_free
        assert (np.abs(out[0][:, free]) <= largest * np.sqrt(np.maximum(fisher, 1.0))[:, free] * 1.001).all()
