"""What metrics refuse, and what they answer where nothing is to be ranked."""

from __future__ import annotations

import numpy as np
import pytest

from boostplugins import Predictive
from boostplugins.metrics import interval_score, nll, prr, reliability
from boostplugins.metrics._checks import mean

DIST = Predictive("normal", [[0.0, 1.0], [1.0, 2.0]])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nll([0.0, 1.0], [0.0, 1.0]), TypeError, "dist must be a Predictive, got list"),
        (lambda: nll([0.0], DIST), ValueError, "as many rows, got 1 and 2"),
        (lambda: prr([1.0], [1.0, 2.0]), ValueError, "as many rows, got 1 and 2"),
        (lambda: prr([-1.0, 0.0], [1.0, 2.0]), ValueError, "error must be >= 0, got -1"),
        (lambda: reliability([0.0], [0.5, 0.5]), ValueError, "as many rows, got 1 and 2"),
        (lambda: reliability([0.0, 2.0], [0.5, 0.5]), ValueError, "y must hold 0 and 1, got 2"),
        (lambda: reliability([0.0, 1.0], [0.5, 1.5]), ValueError, r"proba must be in \[0, 1\]"),
        (lambda: interval_score([0.0, 1.0], [[0.0, 1.0]]), ValueError, "interval"),
        (lambda: mean(np.array([1.0, np.nan]), None), ValueError, "a score is NaN in 1 rows"),
    ],
)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_equal_errors_rank_nothing():
    assert prr([1.0, 1.0, 1.0], [0.1, 0.2, 0.3]) == 0.0
    assert prr([0.0, 0.0], [0.1, 0.2]) == 0.0
    assert mean(np.array([1.0, np.inf]), np.array([1.0, 0.0])) == 1.0
