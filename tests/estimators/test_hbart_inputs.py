"""Tables, responses, labels, weights and searches with Bayesian trees (I)."""

from __future__ import annotations

import copy
import os
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from boostplugins import (
    BARTClassifier,
    BARTRegressor,
    HBARTRegressor,
    HBARTRegressorCV,
    OrthogonalPolynomials,
)
from tests.estimators.bart_cases import FEW, SHORT, build, data, each, quiet

pytestmark = quiet


def test_i01_nested_arguments_are_searched():
    X, y = data(60)
    given = OrthogonalPolynomials(1)
    model = HBARTRegressor(variance_features=given, moves=(0.25, 0.25, 0.25, 0.25), **SHORT)
    copied = clone(model)
    assert copied.get_params()["variance_features__degree"] == 1
    assert copied.moves == model.moves
    grid = {"variance_features__degree": [1, 2], "k": [2.0, 3.0]}
    found = GridSearchCV(model, grid, cv=2).fit(X, y)
    assert set(found.best_params_) == set(grid)
    best = found.best_estimator_
    assert best.posterior_draws()["gamma"].shape[2] == 3 * best.variance_features.degree
    model.fit(X, y)
    assert not hasattr(given, "recurrences_")


def test_i02_no_rows_need_to_be_set_aside_in_a_pipeline():
    frame = pd.DataFrame({"s": list("abc") * 20})
    y = np.arange(60) % 3 + 0.1 * np.random.default_rng(0).standard_normal(60)
    search = HBARTRegressorCV(HBARTRegressor(**SHORT), {"k": [2.0, 5.0]}, cv=2)
    encoder = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    model = make_pipeline(encoder, search).fit(frame, y)
    assert len(model[-1].cv_results_) == 2
    np.testing.assert_allclose(model.predict(frame[:3]), [0, 1, 2], atol=0.5)
    assert np.isfinite(model.predict(pd.DataFrame({"s": ["unseen"]}))).all()


@each
def test_i04_what_the_chains_told_survives_copies_and_files(kind, tmp_path):
    X, y = data(40)
    model = build(kind, **SHORT).fit(X, y)
    model.save(tmp_path / "model.npz")
    routes = copy.deepcopy(model), pickle.loads(pickle.dumps(model)), type(model).load(tmp_path / "model.npz")
    for other in routes:
        for name in ("acceptance_", "rhat_", "rhat_of_", "interrupted_", "n_draws_", "n_features_in_"):
            assert getattr(other, name) == getattr(model, name)
        assert other.get_params() == model.get_params()
        np.testing.assert_array_equal(other.posterior_draws()["sigma"], model.posterior_draws()["sigma"])


def test_i05_table_types():
    X, y = data(60)
    plain = pd.DataFrame({"a": np.arange(60.0), "b": X[:, 1], "c": np.arange(60) % 5})
    plain.loc[3, "a"] = np.nan
    expected = HBARTRegressor(**SHORT).fit(plain, y).predict(plain)
    nullable = plain.assign(a=plain["a"].astype("Int64"), b=plain["b"].astype("Float64"))
    nullable["c"] = nullable["c"].astype("Int8")
    nullable.index = np.random.default_rng(0).permutation(60)
    found = HBARTRegressor(**SHORT).fit(nullable, pd.Series(y, index=range(100, 160))).predict(nullable)
    np.testing.assert_array_equal(found, expected)
    model = HBARTRegressor(**SHORT).fit(plain, y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(plain[["b", "a", "c"]])
    text = pd.DataFrame({"s": pd.array(list("abc") * 20, dtype="string")})
    category = text.assign(s=text["s"].astype("category"))
    np.testing.assert_array_equal(
        HBARTRegressor(**SHORT).fit(text, y).predict(text),
        HBARTRegressor(**SHORT).fit(category, y).predict(category),
    )


@pytest.mark.filterwarnings("ignore:A column-vector:sklearn.exceptions.DataConversionWarning")
def test_i06_forms_of_the_response():
    X, y = data(30)
    y = y > 1
    expected = BARTRegressor(**SHORT).fit(X, y.astype(float)).predict(X)
    for form in (
        y,
        y.tolist(),
        y[:, None],
        pd.Series(y),
        pd.DataFrame({"y": y}),
        y.astype(int),
        y.astype(np.float32),
    ):
        found = BARTRegressor(**SHORT).fit(X, form).predict(X)
        assert found.shape == (30,)
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="numeric"):
        BARTRegressor(**SHORT).fit(X, np.array(["a", "b"])[y.astype(int)])


def test_i08_labels():
    X, y = data(60)
    for labels in ([-1, 1], ["b", "a"], [2, 5]):
        given = np.array(labels)[(y > 1).astype(int)]
        model = BARTClassifier(**SHORT).fit(X, given)
        assert model.classes_.tolist() == sorted(labels)
        assert set(model.predict(X)) <= set(labels)
    with pytest.raises(ValueError, match="3 classes; wrap the estimator in OneVsRestClassifier"):
        BARTClassifier(**SHORT).fit(X, np.arange(60) % 3)
    with pytest.raises(ValueError, match="one class"):
        BARTClassifier(**SHORT).fit(X, np.ones(60))


@each
@pytest.mark.parametrize("n", [1, 2, 3, 5, 11])
def test_i09_fewer_rows_than_two_leaves_need(kind, n):
    X, y = data(n)
    y = y + (n == 1)
    for least in (1, 5):
        model = build(kind, **{**SHORT, "min_samples_leaf": least})
        if n == 1:
            with pytest.warns(UserWarning, match="y is constant"):
                model.fit(X, y)
        else:
            model.fit(X, y)
        assert np.isfinite(model.predict_interval(X)).all()
        assert model.posterior_.mean.n_leaves.max() <= max(n // least, 1)


# Linux alone lists the threads of compiled code; what fits give is tested everywhere.
@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads in /proc")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_i10_no_more_threads_than_asked_for(n_jobs, monkeypatch):
    X, y = data()
    build("HBART", **SHORT).fit(X, y)
    before = len(os.listdir("/proc/self/task"))
    seen = []

    def count(name, start, total):
        return lambda done: seen.append(len(os.listdir("/proc/self/task")))

    monkeypatch.setattr("boostplugins.estimators._bart_base.show_progress", count)
    build("HBART", **{**SHORT, "n_chains": 4, "n_jobs": n_jobs, "verbose": True}).fit(X, y)
    assert max(seen) <= before + (n_jobs if n_jobs > 1 else 0)


class Pruned(Exception):
    """What a stub of a tuner's trial raises."""


class Trial:
    def __init__(self, stop):
        self.stop, self.values = stop, []

    def report(self, value, step):
        self.values.append(value)
        if step == self.stop:
            raise Pruned


def test_i12_a_tuner_watches_draws_and_prunes():
    X, y = data(60)

    def objective(trial, n_rounds=6):
        model = HBARTRegressor(**{**SHORT, "n_draws": 5}).fit(X[:40], y[:40])
        for step in range(n_rounds):
            trial.report(model.log_score(X[40:], y[40:]), step)
            model.sample_more(5)
        return model

    with pytest.raises(Pruned):
        objective(trial := Trial(stop=3))
    assert len(trial.values) == 4
    model = objective(full := Trial(stop=None))
    assert full.values[:4] == trial.values
    again = HBARTRegressor(**{**SHORT, "n_draws": 35}).fit(X[:40], y[:40])
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@each
def test_i11_weights_are_checked(kind):
    X, y = data(30)
    for weight, error in ((np.r_[-1, np.ones(29)], "must be >= 0"), (np.zeros(30), "positive sum")):
        with pytest.raises(ValueError, match=error):
            build(kind, **SHORT).fit(X, y, sample_weight=weight)
    some = np.where(np.arange(30) < 10, 0.0, 1.0)
    np.testing.assert_array_equal(
        build(kind, **SHORT).fit(X, y, sample_weight=some).predict(X),
        build(kind, **SHORT).fit(X[10:], y[10:]).predict(X),
    )
    with pytest.warns(UserWarning, match="y is constant"):
        model = build(kind, **SHORT).fit(X, y, sample_weight=np.eye(30)[4])
    np.testing.assert_allclose(model.predict(X), y[4], rtol=1e-6)


@each
@pytest.mark.parametrize("shape", ["p > n", "p >> n", "huge values", "duplicates", "huge features"])
def test_extreme_data_stay_finite(kind, shape):
    rng = np.random.default_rng(0)
    p = {"p > n": 60, "p >> n": 300}.get(shape, 3)
    X, y = rng.standard_normal((30, p)), rng.standard_normal(30)
    if shape == "huge values":
        y *= 1e300
    elif shape == "duplicates":
        X = np.repeat(X[:3], 10, axis=0)
    elif shape == "huge features":
        X = X * 1e9 + 1e15
    model = build(kind, **FEW).fit(X, y)
    low, high = model.predict_interval(2 * X).T
    assert np.isfinite([low, high]).all()
    assert (low < high).all()
