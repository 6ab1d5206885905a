"""How the CRPS of every family changes as the response moves."""

from __future__ import annotations

import numpy as np
import pytest

from tests.families.cases import FAMILIES, IDS, raws

each = pytest.mark.parametrize("family", FAMILIES, ids=IDS)


@each
def test_slope_of_the_crps(family):
    """d CRPS / dy = 2 F(y) - 1; between whole numbers y and y + 1 it is the difference."""
    theta = family.theta(raws(family, 5, seed=15))
    for level in (0.2, 0.5, 0.8, 0.999):
        y = family.ppf(level, theta)
        if family.discrete:
            y = np.where(level == 0.2, -1.0, y)  # the first whole number that is no response
            slope = family.crps(y + 1, theta) - family.crps(y, theta)
        else:
            step = 3e-4 * np.sqrt(family.var(theta))
            slope = (family.crps(y + step, theta) - family.crps(y - step, theta)) / (2 * step)
        smooth = ~np.isin(y, family.atoms)
        expected = 2 * family.cdf(y, theta) - 1
        np.testing.assert_allclose(slope[smooth], expected[smooth], atol=1e-4)


@each
def test_crps_far_away_grows_with_the_distance(family):
    """Far from all mass the score is the distance from the mean less a constant."""
    theta = family.theta(raws(family, 5, seed=15))
    for sign in (1.0, -1.0):
        if family.discrete and sign < 0:  # whole numbers below 0 are no responses
            continue
        far = np.floor(family.mean(theta) + sign * 1e4 * np.sqrt(family.var(theta)))
        gain = family.crps(2 * far, theta) - family.crps(far, theta)
        # Sums over so many whole numbers go by blocks.
        np.testing.assert_allclose(gain, np.abs(far), rtol=1e-3 if family.discrete else 1e-9)
