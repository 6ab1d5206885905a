"""Networks and soft trees: fits that break off, settings changed after a fit, extreme sizes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from boostplugins import (
    HNNRegressor,
    MCDropoutRegressor,
    SoftBoostingRegressor,
    SoftForestRegressor,
    SoftTreeClassifier,
    SoftTreeRegressor,
    USNRTRegressor,
)

NETWORKS = {
    "USNRT": USNRTRegressor(min_samples_leaf=15, max_epochs=4),
    "HNN": HNNRegressor(n_members=2, max_epochs=4),
    "MC": MCDropoutRegressor(n_draws=4, max_epochs=4),
}
SOFT = {
    "tree": SoftTreeRegressor(ridge=1.0, max_leaves=2),
    "forest": SoftForestRegressor(n_estimators=2, ridge=1.0, max_leaves=2),
    "boosting": SoftBoostingRegressor(n_estimators=2),
    "classifier": SoftTreeClassifier(ridge=1.0, max_leaves=2),
}


def rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.random(40), "c": rng.choice(list("ab"), 40)})
    return X, (X["x"] > 0.5).astype(int)


class Pruned(Exception):
    """What a tuner's callback raises."""


@pytest.mark.parametrize("name", NETWORKS | SOFT)
def test_a_fit_that_breaks_off_leaves_no_mixture_of_two_models(name):
    """The old networks with the new rows' scales would predict, and wrongly."""
    X, y = rows()
    model = clone((NETWORKS | SOFT)[name]).fit(X, y)
    before = model.predict(X)
    if name in NETWORKS:

        def prune(progress):
            raise Pruned

        with pytest.raises(Pruned):
            model.fit(X.assign(x=100 * X["x"]), 10 * y, callback=prune)
    else:
        wrong = np.zeros(40) if name == "classifier" else np.full(40, np.nan)
        with pytest.raises(ValueError, match="y must (be finite|hold at least 2 classes)"):
            model.fit(X.assign(c=X["x"]), wrong)
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize(
    ("name", "change"),
    [("USNRT", {"variance_floor": 0.9}), ("HNN", {"variance_floor": 0.9}), ("MC", {"noise": None})],
)
def test_settings_changed_after_a_fit_change_neither_it_nor_its_file(name, change, tmp_path):
    X, y = rows()
    model = clone(NETWORKS[name]).fit(X, y)
    before = model.predict_dist(X).std()
    model.set_params(**change)
    np.testing.assert_array_equal(model.predict_dist(X).std(), before)
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(type(model).load(tmp_path / "model.npz").predict_dist(X).std(), before)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_batch_larger_than_the_rows_is_all_rows(name):
    X, y = rows()
    whole, more = (clone(NETWORKS[name]).set_params(batch_size=size).fit(X, y) for size in (40, 10**30))
    np.testing.assert_array_equal(more.predict(X), whole.predict(X))


@pytest.mark.parametrize("name", [*NETWORKS, "tree", "forest", "boosting"])
def test_weights_and_quantiles_that_mean_nothing_are_refused(name):
    X, y = rows()
    model = clone((NETWORKS | SOFT)[name])
    with pytest.raises(ValueError, match="sample_weight must have a finite sum, got infinity"):
        model.fit(X, y, np.full(40, 1e307))
    model.fit(X, y)
    for q in ([], [[0.1, 0.9]]):
        with pytest.raises(ValueError, match="q must be a number or have shape"):
            model.predict_quantiles(X, q)


@pytest.mark.parametrize("labels", [["a", None] * 20, ["a", 1] * 20])
def test_labels_that_are_none_are_refused(labels):
    X, _ = rows()
    with pytest.raises(ValueError, match="y must (have a label in every row|hold labels of one type)"):
        clone(SOFT["classifier"]).fit(X, np.array(labels, dtype=object))
