"""Predictions go through rows in blocks: what they hold does not grow with rows times members."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest

from boostplugins import Predictive, Uncertainty, _blocks, _mixture
from boostplugins._blocks import in_blocks

from .small_models import MAKERS, fitted, make, rows, target

MANY = {
    "sglb_classifier_catboost": {"n_chains": 10},
    "sglb_classifier_lightgbm": {"n_chains": 10},
    "sglb_regressor_catboost": {"n_chains": 10},
    "sglb_regressor_lightgbm": {"n_chains": 10},
    "distributional_lightgbm": {"n_folds": 10},
    "soft_forest": {"n_estimators": 10},
    "usnrt": {"n_members": 10},
    "mc_dropout": {"n_draws": 20},
    "bart_regressor": {"n_draws": 20},
    "bart_classifier": {"n_draws": 20},
    "hbart": {"n_draws": 20},
}


def calls(model):
    if hasattr(model, "predict_proba"):
        return [model.predict_proba, model.predict_uncertainty]
    return [model.predict, model.predict_interval, model.predict_uncertainty]


def peak(call, X):
    tracemalloc.start()
    call(X)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return held


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY)
def test_g09_predictions_hold_less_than_rows_times_members(name):
    """Four blocks of rows take what one takes, and a few columns for the rows themselves."""
    model = fitted(name, **MANY[name])
    n = _blocks._ROWS
    X = np.tile(rows(), (4 * n // len(rows()) + 1, 1))[: 4 * n]
    for call in calls(model):
        call(X[:100])
        assert peak(call, X) < 1.5 * peak(call, X[:n]) + 200.0 * len(X), call.__name__


@pytest.mark.parametrize("name", MAKERS)
def test_g09_blocks_change_no_bit(name, monkeypatch):
    model = fitted(name)
    X, y = rows(), target(name)
    tables = [X] if name.startswith("sglb") else [X, pd.DataFrame(X), X.tolist()]

    def everything(table):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # names that were not there in fit
            found = [call(table) for call in calls(model)]
            if hasattr(model, "predict_quantiles"):
                found += [model.predict_quantiles(table, [0.1, 0.9]), model.log_score(table, y)]
        return [part.total if isinstance(part, Uncertainty) else part for part in found]

    whole = everything(X)
    monkeypatch.setattr(_blocks, "_ROWS", 7)
    for table in tables:
        for part, expected in zip(everything(table), whole, strict=True):
            np.testing.assert_allclose(part, expected, rtol=1e-13)


def test_quantiles_of_mixtures_hold_a_block_of_rows(monkeypatch):
    rng = np.random.default_rng(0)
    theta = np.stack([rng.normal(size=(1000, 500)), rng.uniform(0.5, 2.0, (1000, 500))], axis=2)
    mixture = Predictive("normal", theta)

    def median(dist):
        return dist.ppf(0.5)

    whole = median(mixture)
    held = peak(median, mixture)
    assert held < 0.5 * theta.nbytes
    monkeypatch.setattr(_mixture, "_PPF_BLOCK", 10**9)
    np.testing.assert_array_equal(median(mixture), whole)
    assert peak(median, mixture) > 5 * held


def test_blocks_leave_to_the_function_what_does_not_fit(monkeypatch):
    monkeypatch.setattr(_blocks, "_ROWS", 2)
    seen = []

    def function(X, y):
        seen.append(len(X))
        return np.zeros(len(X))

    X = np.zeros((5, 1))
    assert len(in_blocks(function, X, np.zeros(5))) == 5
    assert len(in_blocks(function, X, None)) == 5
    assert len(in_blocks(function, X, np.zeros(4))) == 5
    assert len(in_blocks(function, np.zeros(5), None)) == 5  # one dimension: an error of the function's own
    assert seen == [2, 2, 1, 2, 2, 1, 5, 5]


def test_offsets_go_with_their_rows(monkeypatch):
    model = make("distributional_lightgbm", n_folds=None, calibration=None).fit(rows(), target("hnn"))
    offset = np.linspace(-1.0, 1.0, len(rows()))
    whole = model.predict(rows(), offset), model.predict_interval(rows(), 0.8, offset)
    monkeypatch.setattr(_blocks, "_ROWS", 7)
    np.testing.assert_array_equal(model.predict(rows(), offset), whole[0])
    np.testing.assert_array_equal(model.predict_interval(rows(), 0.8, offset), whole[1])
    with pytest.raises(ValueError, match="offset must have 60 rows"):
        model.predict(rows(), offset[:5])
