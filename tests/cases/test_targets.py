"""Responses that troubled users: far, tiny, constant, repeated, few, in any form (C, F12, I06, I07)."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import boostplugins
from tests.cases.catalogue import ALL, CLASSIFIERS, REGRESSORS, build, check_answers, names, problem

each_regressor = pytest.mark.parametrize("name", names(REGRESSORS))
each = pytest.mark.parametrize("name", names(ALL))
each_classifier = pytest.mark.parametrize("name", names(CLASSIFIERS))
pytestmark = [
    pytest.mark.filterwarnings("ignore::boostplugins.MixingWarning"),
    pytest.mark.filterwarnings("ignore:A column-vector y was passed"),
]


def test_the_catalogue_holds_every_public_estimator():
    public = {getattr(boostplugins, name) for name in boostplugins.__all__}
    predicting = {kind for kind in public if hasattr(kind, "fit") and hasattr(kind, "predict")}
    assert predicting == {type(model) for model in ALL.values()}


@each_regressor
def test_c01_b07_one_far_response(name):
    X, y = problem(name)
    y[0] = 1e6
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        check_answers(build(name).fit(X, y), X)


@each_regressor
@pytest.mark.filterwarnings("ignore:Soft.*the spread vanishes there")  # a half is, and this is told
@pytest.mark.parametrize("kind", ["no noise", "half constant", "few values"])
def test_c02_c04_f05_repeated_and_noise_free_responses(name, kind):
    X, _ = problem(name)
    y = {
        "no noise": X[:, 0],
        "half constant": np.where(X[:, 1] > 0, X[:, 0], 0.0),
        "few values": np.tile([0.0, 1.0], 30),
    }[kind]
    model = build(name).fit(X, y)
    found = check_answers(model, X)
    assert (model.predict_dist(X).std() > 0).all()
    assert np.isfinite(model.log_score(X, y))
    assert (found[:, 1] < found[:, 2]).all()


@each_regressor
@pytest.mark.parametrize("scale", [2.0**30, 2.0**-30, 1e9, 1e-9])
def test_c03_f12_any_units_of_the_response(name, scale):
    X, y = problem(name, n=80)
    plain, scaled = (check_answers(build(name).fit(X, factor * y), X) for factor in (1.0, scale))
    # Powers of two round nothing; other factors may turn a split where two are as good.
    exact = scale in (2.0**30, 2.0**-30)
    np.testing.assert_allclose(scaled[:, :3] / scale, plain[:, :3], atol=(1e-6 if exact else 0.05) * y.std())
    deviations = np.sqrt(scaled[:, -1]) / scale, np.sqrt(plain[:, -1])
    np.testing.assert_allclose(*deviations, rtol=1e-4 if exact else 0.05, atol=1e-6 * y.std())


@each_regressor
def test_c03_f12_any_origin_of_the_response(name):
    X, y = problem(name, n=80)
    near, far = (check_answers(build(name).fit(X, y + shift), X) for shift in (0.0, 1000.0))
    assert np.abs(far[:, 0] - 1000.0 - near[:, 0]).max() < 0.05 * y.std()
    np.testing.assert_allclose(np.sqrt(far[:, -1]), np.sqrt(near[:, -1]), rtol=0.05)


@pytest.mark.parametrize("booster", ["catboost", "lightgbm"])
def test_c03_a_spread_lost_in_single_precision_is_refused(booster):
    X, y = problem("SGLB-catboost")
    with pytest.raises(ValueError, match="subtract a constant from y"):
        build("SGLB-catboost", booster=booster).fit(X, y + 1e9)


@pytest.mark.parametrize("booster", ["catboost", "lightgbm"])
def test_c03_a05_b04_origin_without_noise(booster):
    X, y = problem("SGLB-catboost")
    settings = {"booster": booster, "prior": None, "temperature": np.inf}
    near = build("SGLB-catboost", **settings).fit(X, y).members(X)
    far = build("SGLB-catboost", **settings).fit(X, y + 64.0).members(X)
    np.testing.assert_allclose(far - 64.0, near, atol=1e-4)


@pytest.mark.parametrize("booster", ["catboost", "lightgbm"])
@pytest.mark.parametrize(("scale", "shift"), [(2.0**20, 0.0), (2.0**-20, 0.0), (1.0, 64.0)])
def test_c03_units_of_a_mean_and_its_deviation(booster, scale, shift):
    """Splits weigh mean and deviation alike, in whatever units the mean is."""
    X, y = problem("SGLB-catboost")
    y = np.round(y * 2**10) / 2**10  # what float32 holds beside the shift
    settings = {"booster": booster, "loss": "normal", "n_estimators": 15}
    plain, moved = (build("SGLB-catboost", **settings).fit(X, t).members(X) for t in (y, scale * y + shift))
    np.testing.assert_allclose((moved[..., 0] - shift) / scale, plain[..., 0], atol=1e-6)
    np.testing.assert_allclose(moved[..., 1] - np.log(scale), plain[..., 1], atol=1e-6)


@each_regressor
def test_a05_b03_b04_far_from_zero(name, tmp_path):
    """The start value is part of predictions, also of those of copies."""
    X, y = problem(name)
    y = 1000.0 + y
    model = build(name).fit(X, y)
    assert abs(model.predict(X).mean() - y.mean()) < 1.0
    if hasattr(model, "save"):
        model.save(tmp_path / "model")
        np.testing.assert_array_equal(type(model).load(tmp_path / "model").predict(X), model.predict(X))


@each_regressor
def test_i06_a07_forms_of_the_response(name):
    X, y = problem(name, n=30)
    y = np.round(4 * y)
    index = np.random.default_rng(0).permutation(30)
    forms = {
        "list": y.tolist(),
        "column": y[:, None],
        "frame": pd.DataFrame({"y": y}, index=index),
        "series": pd.Series(y, index=index),
        "int": y.astype(int),
        "float32": y.astype(np.float32),
        "object": y.astype(object),
        "nullable": pd.Series(y, index=index, dtype="Float64"),
    }
    expected = build(name).fit(X, y).predict(X)
    assert expected.shape == (30,)
    for form, given in forms.items():
        np.testing.assert_array_equal(build(name).fit(X, given).predict(X), expected, err_msg=form)
    truth = build(name).fit(X, y > 0)
    np.testing.assert_array_equal(truth.predict(X), build(name).fit(X, (y > 0).astype(float)).predict(X))


@each_regressor
def test_i06_texts_and_broken_responses_are_refused(name):
    X, y = problem(name)
    for bad, message in (
        (np.where(y > 0, "b", "a"), "numeric|could not convert"),
        (np.r_[np.nan, y[1:]], "finite|NaN"),
        (np.r_[np.inf, y[1:]], "finite|infinity"),
        (y[:5], "rows|samples"),
        (np.c_[y, y], "shape|1d"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            build(name).fit(X, bad)


@each_regressor
@pytest.mark.parametrize("n", [1, 2, 20])
def test_i07_b09_constant_response(name, n):
    X, _ = problem(name, n=n)
    with warnings.catch_warnings():  # whether and how a model warns is its own test's matter
        warnings.simplefilter("ignore", UserWarning)
        model = build(name, **_folds(name, n)).fit(X, np.full(n, 3.0))
    found = check_answers(model, X)
    np.testing.assert_allclose(found[:, 0], 3.0, rtol=1e-6)


@each
@pytest.mark.parametrize("n", [2, 3, 5, 20])
def test_i07_i09_b09_few_rows_or_nothing_to_learn(name, n):
    X, y = problem(name, n=n)
    y = np.arange(n) % 2 if name in CLASSIFIERS else y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = check_answers(build(name, **_folds(name, n)).fit(X, y), X)
        flat = check_answers(build(name, **_folds(name, n)).fit(np.ones((n, 2)), y), np.ones((3, 2)))
    assert found.shape[0] == n
    np.testing.assert_array_equal(flat, flat[:1].repeat(3, axis=0))


def _folds(name, n):
    """Settings without which so few rows make no folds."""
    return {"cv": [(np.arange(n), np.arange(n))]} if name == "HBART-CV" else {}


@each_classifier
@pytest.mark.parametrize(
    "labels",
    [(3, 7), ("b", "a"), (False, True), (-1, 1), (1, 2, 5), ("x", "y", "z")],
    ids=str,
)
def test_a10_i08_labels_come_back(name, labels):
    X, _ = problem(name)
    y = np.array(labels)[np.digitize(X[:, 0], np.linspace(-1, 1, len(labels) + 1)[1:-1])]
    if name == "BART-classes" and len(labels) > 2:
        with pytest.raises(ValueError, match="two classes|2 classes|binary"):
            build(name).fit(X, y)
        return
    model = build(name).fit(X, y)
    assert model.classes_.tolist() == sorted(labels)
    found = model.predict(X)
    assert found.dtype == model.classes_.dtype
    np.testing.assert_array_equal(found, model.classes_[model.predict_proba(X).argmax(axis=1)])
    check_answers(model, X)
    as_frame = build(name).fit(X, pd.Series(y, index=np.arange(60)[::-1]))
    np.testing.assert_array_equal(as_frame.predict_proba(X), model.predict_proba(X))


@each_classifier
def test_a10_one_class_is_an_error(name):
    with pytest.raises(ValueError, match="class"):
        build(name).fit(np.zeros((5, 1)), ["a"] * 5)


@each_classifier
def test_i08_a_fold_may_lack_a_class(name):
    X, y = problem(name)
    if name != "BART-classes":
        y = np.where(np.arange(60) < 2, "rare", y)
    model = build(name).fit(X[2:], y[2:])
    assert model.classes_.tolist() == ["no", "yes"]
    assert 0.0 <= model.score(X, y) <= 1.0
