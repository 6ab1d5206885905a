"""Cheap estimators on random tables: finite answers or one clear error; rows apart, copies alike."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases.catalogue import CLASSIFIERS, answers, build, check_answers
from tests.properties.strategies import bounded, tables, weights

CHEAP = ["Distributional-lightgbm", "Distributional-catboost", "HNN", "MCDropout", "USNRT"]
CHEAP += ["BART", "HBART", "HBART-forest", "BART-classes", "SoftTree", "SoftTree-classes"]
DEAR = ["SGLB-lightgbm", "SGLB-catboost", "SGLB-classes-lightgbm", "SoftBoosting", "SoftForest"]
# One model of all rows: nothing is held out, which would go by rows.
PLAIN = dict.fromkeys(["n_folds", "validation_fraction", "early_stopping_rounds", "calibration"])
PLAIN["min_samples_leaf"] = 1
pytestmark = pytest.mark.filterwarnings("ignore::boostplugins.MixingWarning")


def check(name, data):
    X, y = data.draw(tables())
    n = len(X)
    if name in CLASSIFIERS:
        y = np.where(y > np.median(y), "more", "less")
    weight = data.draw(weights(n)) if name != "BART-classes" and data.draw(st.booleans()) else None
    settings = {} if weight is None else {"sample_weight": weight}
    before = X.copy()
    model = build(name)
    if name in CLASSIFIERS and len(np.unique(y if weight is None else y[weight > 0])) < 2:
        with pytest.raises(ValueError, match="class"):
            model.fit(X, y, **settings)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # constants and the like are said
        model.fit(X, y, **settings)
    np.testing.assert_array_equal(X, before)
    found = check_answers(model, X)
    order = np.array(data.draw(st.permutations(range(n))))
    np.testing.assert_array_equal(answers(model, X[order]), found[order])
    np.testing.assert_array_equal(answers(model, X[[0, 0]])[0], answers(model, X[[0, 0]])[1])
    one = data.draw(st.integers(0, n - 1))
    np.testing.assert_allclose(answers(model, X[one : one + 1])[0], found[one], rtol=1e-9, atol=1e-12)
    check_answers(model, np.full((1, X.shape[1]), np.nan))
    check_answers(model, np.full((1, X.shape[1]), 1e12, dtype=X.dtype))


@pytest.mark.parametrize("name", CHEAP)
@bounded(12)
@given(data=st.data())
def test_any_table(name, data):
    check(name, data)


@pytest.mark.slow
@pytest.mark.parametrize("name", DEAR)
@bounded(12)
@given(data=st.data())
def test_any_table_for_dearer_models(name, data):
    check(name, data)


@pytest.mark.parametrize("name", ["Distributional-lightgbm", "SoftTree", "SoftTree-classes"])
@bounded(10)
@given(data=st.data())
def test_whole_weights_are_repeated_rows(name, data):
    """Where nothing is drawn by rows and nothing is binned by their count, weights are copies."""
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    n = 40
    X = rng.integers(0, 4, size=(n, 2)).astype(float)
    y = np.round(X[:, 0] + rng.normal(size=n), 1)
    if name in CLASSIFIERS:
        y = y > 1
    weight = rng.integers(0, 3, n)
    rows = np.repeat(np.arange(n), weight)
    settings = PLAIN if name.startswith("Distributional") else {}
    weighted = build(name, **settings).fit(X, y, sample_weight=weight)
    repeated = build(name, **settings).fit(X[rows], y[rows])
    np.testing.assert_allclose(answers(weighted, X), answers(repeated, X), rtol=1e-3, atol=1e-3)
