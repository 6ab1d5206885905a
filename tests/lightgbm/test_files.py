"""Files of LightGBM models: whole ones are read, others refused before LightGBM sees them."""

from __future__ import annotations

import numpy as np
import pytest

from boostplugins import VirtualEnsemble
from boostplugins.losses import SquaredError
from tests.lightgbm.common import plain, regression, train


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "chain.txt"
    booster = train(plain(SquaredError(1.0), shrink=0.1), *regression(60), 30)
    booster.save_model(path)
    return booster, path


@pytest.mark.filterwarnings("ignore:the model was trained without Langevin noise")
def test_a_whole_file_is_the_model(saved):
    booster, path = saved
    X, _ = regression(60)
    np.testing.assert_array_equal(
        VirtualEnsemble.from_lightgbm(path).members(X), VirtualEnsemble.from_lightgbm(booster).members(X)
    )


@pytest.mark.parametrize("share", [0.0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9])
def test_a_file_cut_off_is_refused(saved, tmp_path, share):
    """LightGBM itself ends the process on some of them."""
    content = saved[1].read_bytes()
    (tmp_path / "cut.txt").write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match="cut off, damaged or another format"):
        VirtualEnsemble.from_lightgbm(tmp_path / "cut.txt")


@pytest.mark.parametrize(
    "change", [lambda text: text.replace(b"Tree=1\n", b"Tree=1\n\n"), lambda text: b"x" + text]
)
def test_a_file_of_other_sizes_is_refused(saved, tmp_path, change):
    (tmp_path / "other.txt").write_bytes(change(saved[1].read_bytes()))
    with pytest.raises(ValueError, match="cut off, damaged or another format"):
        VirtualEnsemble.from_lightgbm(tmp_path / "other.txt")
