"""What a LightGBM model carries of its chain."""

from __future__ import annotations

import copy

import lightgbm as lgb
import numpy as np
import pytest

from boostplugins.lightgbm.description import read_description
from boostplugins.losses import SquaredError
from tests.lightgbm.common import QUIET, plain, regression, train


def test_it_is_found_in_parameters_and_in_the_text():
    """A copy by LightGBM 4.5 has no parameters; its text still holds them."""
    booster = train(plain(SquaredError(1.0), shrink=0.1), *regression(60), 3)
    expected = read_description(booster)
    assert expected is not None
    for params in ({}, None, {"data": []}):
        again = copy.deepcopy(booster)
        again.params = params
        assert read_description(again) == expected


def test_a_foreign_model_has_none():
    X, y = regression(60)
    booster = lgb.train(QUIET, lgb.Dataset(X, y), 2)
    assert read_description(booster) is None
    booster.params["data"] = ["train.csv"]
    assert read_description(booster) is None


@pytest.mark.parametrize("text", ["A", "AAAA", "eNo"])
def test_a_damaged_one_is_an_error(text):
    X = np.arange(40.0)[:, None]
    booster = lgb.train(QUIET, lgb.Dataset(X, X[:, 0]), 1)
    booster.params["data"] = f"boostplugins-{text}"
    with pytest.raises(ValueError, match="description of the chain in the model is damaged"):
        read_description(booster)
