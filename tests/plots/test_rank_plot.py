"""Rank plots of chains that agree and of chains that do not."""

from __future__ import annotations

import numpy as np
import pytest

from boostplugins import plots

pytest.importorskip("matplotlib")


def heights(ax):
    return np.array([patch.get_data().values for patch in ax.patches[1:]])


def test_chains_alike_are_level_and_chains_apart_are_not():
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((4, 500))
    level = heights(plots.rank_plot({"sigma": draws}))
    assert level.shape == (4, 20)
    assert (level.sum(axis=1) == 500).all()
    # 80 counts of mean 25 and standard error 4.9 at 5 of them: false alarm in 1 of 20 000 seeds.
    assert np.abs(level - 25).max() < 25
    apart = heights(plots.rank_plot({"f": draws + 9 * np.arange(4)[:, None]}, "f"))
    np.testing.assert_array_equal(apart, 100 * np.repeat(np.eye(4), 5, axis=1))


def test_one_entry_of_several():
    draws = {"gamma": np.random.default_rng(0).standard_normal((2, 40, 3))}
    assert plots.rank_plot(draws, "gamma", index=2, n_bins=4).get_xlabel() == "rank of gamma[2]"
    with pytest.raises(ValueError, match="index must be in"):
        plots.rank_plot(draws, "gamma", index=3)
    with pytest.raises(ValueError, match="n_bins must be"):
        plots.rank_plot(draws, "gamma", n_bins=1)
