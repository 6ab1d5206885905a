"""Families of classes: probabilities, starts where a class has no case, settings read off the data."""

from __future__ import annotations

import numpy as np
import pytest

from boostplugins.families import get_family
from boostplugins.families.categorical import Categorical

BERNOULLI = get_family("bernoulli")


def test_probabilities_of_classes():
    np.testing.assert_allclose(BERNOULLI.probabilities([[0.25], [0.9]]), [[0.75, 0.25], [0.1, 0.9]])
    theta = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0]])
    np.testing.assert_allclose(Categorical(3).probabilities(theta), theta)


@pytest.mark.parametrize("offset", [None, np.array([0.3, -2.0, 1.0])])
def test_a_class_without_a_case_gets_half_of_the_heaviest(offset):
    weight = np.array([2.0, 1.0, 1.0])
    for value, odds in ((0.0, 1 / 3), (1.0, 3.0)):
        start = BERNOULLI.init(np.full(3, value), weight, offset)
        np.testing.assert_allclose(start, [np.log(odds)])
    start = Categorical(3).init(np.array([0.0, 1.0, 0.0]), 6 * weight, offset)
    np.testing.assert_allclose(Categorical(3).theta(start), np.array([18, 6, 6]) / 30)
    np.testing.assert_allclose(BERNOULLI.init(np.ones(1), None, np.ones(1)), 0.0)


def test_bernoulli_at_the_step_and_beyond_its_classes():
    assert BERNOULLI.ppf([0.75, 0.75 + 1e-12], [0.25]).tolist() == [0.0, 1.0]
    at = BERNOULLI.crps([-2.0, 0.0, 1.0, 4.0], [0.25])
    np.testing.assert_allclose(at, [2 + 0.25**2, 0.25**2, 0.75**2, 3 + 0.75**2])


def test_number_of_classes_is_read_off_the_data():
    assert Categorical().ready(np.array([0.0, 3.0, 1.0])) == Categorical(4)
    assert Categorical().ready(np.zeros(3)) == Categorical(2)
    assert Categorical(5).ready(np.zeros(3)) == Categorical(5)


def test_probabilities_are_checked():
    Categorical(3).check_theta(np.array([[0.0, 1.0, 0.0]]))
    for bad in ([[-0.1, 1.1, 0.0]], [[0.2, 0.2, 0.2]], [[-0.1, 0.6, 0.5]]):
        with pytest.raises(ValueError, match="sum to 1"):
            Categorical(3).check_theta(np.array(bad))
