"""How the CRPS of every family changes as the response moves."""

from __future__ import annotations

import numpy as np
import pytest

from boostplugins.families import _crps
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


@pytest.mark.parametrize("cuts", [_crps._ABOVE, _crps._BELOW], ids=["above", "below"])
@pytest.mark.parametrize("power", [0, 1, 2, 3])
def test_sums_over_whole_numbers_are_exact_for_cubics(cuts, power):
    """Ranges of up to 192 numbers one by one, longer ones by blocks; an empty and an endless one."""
    begin = np.array([0.0, 5.0, -3.0, 0.0, 7.0, 100.0, 4.0, 0.0])
    end = np.array([1.0, 9.0, 189.0, 193.0, 1007.0, 50_001.0, 4.0, np.inf])
    found = _crps.sum_numbers(lambda k, rows: (k - begin[rows, None]) ** power, begin, end, cuts)
    expected = [(np.arange(e - b) ** power).sum() for b, e in zip(begin[:-1], end[:-1])]
    np.testing.assert_allclose(found, [*expected, np.inf], rtol=1e-12)
