"""Masks: rate, purity, never empty."""

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from boostplugins.masks import BernoulliMask, NoMask


def test_rate_and_independence_over_cycles():
    mask = BernoulliMask(keep=0.3, random_state=4)
    first, second = mask.rows(0, 200_000), mask.rows(1, 200_000)
    # Binomial sd 0.001: a band of 5 sd fails by chance less than once in a million runs.
    assert abs(first.mean() - 0.3) < 0.005
    assert abs((first & second).mean() - 0.09) < 0.005
    assert not np.array_equal(first, BernoulliMask(keep=0.3, random_state=5).rows(0, 200_000))


def test_pure_in_cycle_and_row():
    mask = BernoulliMask(keep=0.5, random_state=1)
    whole = mask.rows(7, 5000)
    mask.rows(3, 10)
    assert np.array_equal(whole, mask.rows(7, 5000))
    assert np.array_equal(whole[:1234], mask.rows(7, 1234))
    assert np.array_equal(whole[777:900], mask.rows(7, 123, first_row=777))
    assert np.array_equal(whole, pickle.loads(pickle.dumps(mask)).rows(7, 5000))


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_i09_never_empty(n):
    mask = BernoulliMask(keep=0.01, random_state=0)
    assert all(mask.rows(cycle, n).sum() >= 1 for cycle in range(50))


def test_i09_full_rate_is_no_mask():
    assert BernoulliMask(keep=1.0).rows(0, 5) is None
    assert NoMask().rows(0, 5) is None


@pytest.mark.parametrize("keep", [0.0, -0.1, 1.1, float("nan")])
def test_i09_bad_rates(keep):
    with pytest.raises(ValueError, match=r"keep must be a finite number in \(0, 1\].*NoMask"):
        BernoulliMask(keep=keep)


def test_bad_seed():
    with pytest.raises(ValueError, match="random_state must be an integer >= 0"):
        BernoulliMask(random_state=-1)
    with pytest.raises(TypeError, match="random_state"):
        BernoulliMask(random_state=0.5)


def test_masks_are_frozen_values():
    for mask in (NoMask(), BernoulliMask(0.25, 3)):
        assert hash(pickle.loads(pickle.dumps(mask))) == hash(mask)
        with pytest.raises(FrozenInstanceError):
            mask.keep = 0.5


def test_descriptions():
    assert NoMask().to_dict() == {"kind": "none"}
    assert BernoulliMask(0.25, 3).to_dict() == {"kind": "bernoulli", "keep": 0.25, "random_state": 3}
    assert BernoulliMask().to_dict() == {"kind": "bernoulli", "keep": 0.66, "random_state": 0}
    assert BernoulliMask(0.5).rows(0, 0) is None
