"""SoftTreeRegressor and SoftTreeClassifier: reported cases, inputs, explanations, files."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from boostplugins.estimators.soft_tree import SoftTreeRegressor
from boostplugins.estimators.soft_tree_classifier import SoftTreeClassifier
from boostplugins.soft_trees.structured import Linear, Smooth


# A smaller ridge fits the checks' few rows exactly, where an optimum is known to five digits only.
@parametrize_with_checks(
    [SoftTreeRegressor(ridge=10.0, max_leaves=4), SoftTreeClassifier(ridge=1.0, max_leaves=4)]
)
def test_estimator_checks(estimator, check):
    check(estimator)


def data(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + np.exp(0.3 * X[:, 2] - 1.5) * rng.normal(size=n)


def quick(**more):
    return SoftTreeRegressor(**{"ridge": 1.0, "max_leaves": 5} | more)


@pytest.mark.parametrize("kind", ["codes", "huge", "tiny"])
def test_g01_raw_and_discrete_features_give_finite_fits(kind):
    rng = np.random.default_rng(0)
    if kind == "codes":
        X = rng.integers(0, 3, size=(300, 4)).astype(float)
    else:
        X = rng.normal(size=(300, 4)) * (1e6 if kind == "huge" else 1e-9)
    signal_part = (X - X.mean(axis=0)) / X.std(axis=0) @ [1.0, -1.0, 0.5, 0.0]
    y = signal_part + 0.5 * rng.normal(size=300)
    model = quick().fit(X, y)
    assert model.score(X, y) > 0.5
    assert np.isfinite(model.log_score(X, y))
    far = model.predict_dist(np.array([[1e9] * 4, [-1e9] * 4]))
    assert np.isfinite(far.mean()).all()
    assert (far.std() > 0).all()


def test_g04_a_single_row_is_predicted_as_in_a_batch():
    X, y = data(1000)
    model = quick().fit(X, y)
    whole = model.predict(X)
    alone = np.concatenate([model.predict(X[i : i + 1]) for i in range(len(X))])
    np.testing.assert_allclose(alone, whole, rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="Reshape your data"):
        model.predict(X[0])


@pytest.mark.slow
def test_g05_heteroskedastic_mean_is_not_underfitted():
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, size=(1000, 1))
    truth = np.sin(2 * x[:, 0])
    sd = np.where(x[:, 0] < 0, 0.01, 1.0)
    y = truth + sd * rng.normal(size=1000)
    model = SoftTreeRegressor(ridge=0.03).fit(x, y)
    # The same trees for the mean with one deviation for all: what least squares would give.
    plain = SoftTreeRegressor(ridge=0.03, features={"sigma": []}).fit(x, y)
    y_new = truth + sd * rng.normal(size=1000)
    error, reference = (np.sqrt(np.mean((m.predict(x) - y_new) ** 2)) for m in (model, plain))
    assert error < 1.1 * reference
    quiet = x[:, 0] < -0.3
    error, reference = (np.mean((m.predict(x) - truth)[quiet] ** 2) for m in (model, plain))
    assert error < 0.25 * reference
    spread = model.predict_dist(x).std()
    assert (spread > 0).all()
    assert 20 < np.median(spread[x[:, 0] > 0.5]) / np.median(spread[x[:, 0] < -0.5]) < 200


def test_hard_mode_has_at_most_as_many_values_as_leaves():
    X, y = data()
    model = quick().fit(X, y)
    for k, predictor in enumerate(model.model_.predictors):
        assert len(np.unique(model.predict_raw(X, hard=True)[:, k])) <= predictor.tree.n_leaves


def test_h04_h05_other_random_code_changes_nothing_and_missing_values_are_the_mean():
    X, y = data()
    X[::7, 1] = np.nan
    first = quick().fit(X, y)
    np.random.default_rng(0).normal(size=10)
    second = quick().fit(X, y)
    np.testing.assert_array_equal(first.predict_raw(X), second.predict_raw(X))
    assert np.isfinite(first.predict_raw(X)).all()
    with pytest.raises(ValueError, match="infinity"):
        first.predict(np.full((1, 3), np.inf))


@pytest.mark.slow
def test_h05_h10_same_result_without_compilation_and_with_bounds_checks(tmp_path):
    code = (
        "import numpy as np; from boostplugins.estimators.soft_tree import SoftTreeRegressor as S\n"
        "r = np.random.default_rng(0); X = r.normal(size=(30, 2)); X[3, 0] = np.nan\n"
        "y = X[:, 1] + r.normal(size=30)\n"
        "m = S(ridge=1.0, max_leaves=2).fit(X, y); print(repr(m.predict_raw(X).sum()))"
    )
    out = []
    for extra in (
        {},
        {"NUMBA_DISABLE_JIT": "1"},
        {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)},
    ):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | extra, check=True
        )
        out.append(float(done.stdout.strip().removeprefix("np.float64(").removesuffix(")")))
    assert out[1] == pytest.approx(out[0], rel=1e-6)
    assert out[2] == pytest.approx(out[0], rel=1e-9)


def test_h06_h07_memory_layouts_and_read_only_inputs(tmp_path):
    X, y = data(60)
    X = X.astype(np.float32).astype(np.float64)
    expected = quick().fit(X, y).predict_raw(X)
    frozen = X.copy()
    frozen.flags.writeable = False
    file = tmp_path / "x.dat"
    X.tofile(file)
    mapped = np.memmap(file, dtype=np.float64, mode="r", shape=X.shape)
    wide = np.empty((60, 6))
    wide[:, ::2] = X
    for variant in (np.asfortranarray(X), frozen, mapped, wide[:, ::2], X.tolist()):
        model = quick().fit(variant, y)
        np.testing.assert_allclose(model.predict_raw(variant), expected, rtol=1e-9, atol=1e-9)
    single = quick().fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.predict_raw(X.astype(np.float32)), expected, rtol=1e-5, atol=1e-5)


def test_h08_pickles_are_small_and_equal():
    X, y = data()
    model = quick()
    pickle.loads(pickle.dumps(model))
    model.fit(X, y)
    raw = model.predict_raw(X)
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(copied.predict_raw(X), raw)
    assert len(pickle.dumps(model)) < 100_000


@pytest.mark.slow
def test_h11_interruption_stops_the_fit():
    code = (
        "import numpy as np; from boostplugins.estimators.soft_tree import SoftTreeRegressor as S\n"
        "r = np.random.default_rng(0); X = r.normal(size=(60000, 10))\n"
        "y = np.sin(3 * X).sum(axis=1) + r.normal(size=60000)\n"
        "print('ready', flush=True); S(criterion=None, ridge=0.1).fit(X, y)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors


def test_i01_clone_and_search():
    model = SoftTreeRegressor(structured={"mu": [Linear(0), Smooth(1)]}, features={"sigma": [0]}, ridge=1.0)
    assert clone(model).get_params() == model.get_params()
    X, y = data(60)
    search = GridSearchCV(quick(max_leaves=2), {"family": ["normal", "logistic"]}, cv=2).fit(X, y)
    assert search.best_params_["family"] in ("normal", "logistic")


def test_i05_i06_tables_and_targets():
    X, y = data(60)
    expected = quick().fit(X, y).predict(X)
    for target in (y.tolist(), pd.Series(y, index=range(7, 67)), pd.DataFrame({"y": y})):
        np.testing.assert_array_equal(quick().fit(X, target).predict(X), expected)
    with pytest.raises(ValueError, match="numeric"):
        quick().fit(X, ["a"] * 60)
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=range(60, 0, -1))
    model = quick().fit(frame, y)
    np.testing.assert_array_equal(model.predict(frame), expected)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c"]])
    frame["d"] = pd.Categorical(np.where(X[:, 0] > 0, "up", "down"))
    frame["e"] = pd.array([1, None] * 30, dtype="Int64")
    mixed = quick(structured=[Linear("d")]).fit(frame, y)
    assert [row["name"] for row in mixed.coefficients()] == ["d=up"]
    assert np.isfinite(mixed.predict(frame)).all()
    strange = frame.assign(d="never seen")
    assert np.isfinite(mixed.predict(strange)).all()


def test_i07_constant_targets_and_features_and_one_row():
    X, y = data(20)
    with pytest.warns(UserWarning, match="constant"):
        model = SoftTreeRegressor().fit(X, np.full(20, 3.0))
    np.testing.assert_allclose(model.predict(X), 3.0)
    assert np.isfinite(model.predict_uncertainty(X).total).all()
    flat = SoftTreeRegressor().fit(np.ones((20, 2)), y)
    np.testing.assert_allclose(flat.predict(np.ones((2, 2))), y.mean())
    one = SoftTreeRegressor().fit(X[:1], y[:1])
    assert one.predict(X)[3] == pytest.approx(y[0])


def test_more_features_than_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 60))
    model = quick().fit(X, X[:, 0] + 0.1 * rng.normal(size=20))
    assert np.isfinite(model.predict_raw(X)).all()


def test_i08_labels_of_any_kind():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    for labels in ([1, 2, 5], [-1, 1], ["b", "a"]):
        number = (np.digitize(X[:, 0], [-0.5, 0.5])) % len(labels)
        y = np.array(labels)[number]
        model = SoftTreeClassifier(ridge=0.3, max_leaves=6).fit(X, y)
        assert model.classes_.tolist() == sorted(labels)
        assert model.score(X, y) > 0.8
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    with pytest.raises(ValueError, match="at least 2 classes"):
        SoftTreeClassifier().fit(X, np.ones(150))


def test_i11_weights():
    X, y = data(40)
    weight = np.ones(40)
    weight[3] = -1
    with pytest.raises(ValueError, match="sample_weight must be >= 0"):
        quick().fit(X, y, weight)
    with pytest.raises(ValueError, match="positive sum"):
        quick().fit(X, y, np.zeros(40))
    weight[:] = 0
    weight[5] = 1
    assert quick().fit(X, y, weight).predict(X)[0] == pytest.approx(y[5])
    weight = np.r_[np.ones(30), np.zeros(10)]
    np.testing.assert_array_equal(
        quick().fit(X, y, weight).predict(X), quick().fit(X[:30], y[:30]).predict(X)
    )


def test_features_for_each_parameter():
    X, y = data(300)
    model = quick(features={"mu": [0, 1], "sigma": [2]}, max_leaves=8).fit(X, y)
    assert model.importances_["mu"][2] == 0.0
    assert not model.importances_["sigma"][:2].any()
    moved = X.copy()
    moved[:, 2] += 1.0
    np.testing.assert_array_equal(model.predict(moved), model.predict(X))


def test_explanations_fit_together():
    X, y = data(300)
    model = quick(structured=[Linear(1)], max_leaves=8).fit(X, y)
    parts = model.effects(X)
    np.testing.assert_allclose(sum(parts.values()), model.predict_raw(X)[:, 0], atol=1e-10)
    assert list(parts)[:2] == ["x1", "level 0"]
    row = model.coefficients()[0]
    assert abs(row["estimate"] - 0.5) < 4 * row["standard_error"]
    _, effect = model.partial_effect(X, "x1", grid=[0.0, 1.0])
    assert effect[1] - effect[0] == pytest.approx(0.5, abs=0.1)
    for name, values in model.importances_.items():
        assert values.sum() == pytest.approx(1.0), name
    nodes = model.tree_data("mu")
    assert len(nodes) == len(model.model_.predictors[0].tree.beta)
    root = nodes[0]
    z = root["intercept"] + sum(root["weights"][f"x{j}"] * X[:, j] for j in range(3))
    weights = model.model_.predictors[0].tree.path_weights(model.model_.blocks(X)[0].x)
    np.testing.assert_allclose(1 / (1 + np.exp(-z)), weights[:, root["left"]], rtol=1e-9)


def test_files_hold_the_whole_model(tmp_path):
    X, y = data()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = quick(structured={"mu": [Linear("a"), Smooth("b")]}).fit(frame, y)
    model.save(tmp_path / "m.npz")
    loaded = SoftTreeRegressor.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(loaded.predict_raw(frame), model.predict_raw(frame))
    assert loaded.get_params() == model.get_params()
    assert loaded.figures_ == model.figures_
    assert loaded.coefficients()[0] == model.coefficients()[0]
    labels = SoftTreeClassifier(ridge=1.0, max_leaves=3).fit(X, np.where(y > 0, "p", "n"))
    labels.save(tmp_path / "c.npz")
    assert SoftTreeClassifier.load(tmp_path / "c.npz").predict(X).tolist() == labels.predict(X).tolist()
    with pytest.raises(ValueError, match="holds a SoftTreeClassifier"):
        SoftTreeRegressor.load(tmp_path / "c.npz")
    content = (tmp_path / "m.npz").read_bytes()
    for bad in (b"", b"nonsense", content[: len(content) // 2]):
        (tmp_path / "bad.npz").write_bytes(bad)
        with pytest.raises(ValueError, match="no saved model"):
            SoftTreeRegressor.load(tmp_path / "bad.npz")


def test_ridge_by_validation_score():
    X, y = data(300)
    model = SoftTreeRegressor(selection="validation", criterion=None, max_leaves=6).fit(X, y)
    assert model.figures_["ridge"] > 0
    assert model.score(X, y) > 0.5


@pytest.mark.parametrize(
    ("params", "error", "match"),
    [
        ({"ridge": -1.0}, ValueError, "ridge must be a finite number"),
        ({"ridge": "best"}, TypeError, "ridge must be"),
        ({"criterion": "dic"}, ValueError, "criterion must be one of"),
        ({"criterion": None, "ridge": "auto"}, ValueError, "needs a criterion"),
        ({"max_leaves": 0}, ValueError, "max_leaves must be an integer >= 1"),
        ({"features": {"tau": [0]}}, ValueError, "features must name parameters of normal"),
        ({"features": [9]}, ValueError, "features must name features of X"),
        ({"structured": "x0"}, TypeError, "structured must be a list"),
        ({"structured": ["x0"]}, TypeError, "Linear and Smooth"),
        ({"family": "bernoulli"}, ValueError, "SoftTreeClassifier"),
        ({"family": "gamma"}, ValueError, "y must hold"),
        ({"random_state": -1}, ValueError, "random_state"),
    ],
)
def test_wrong_settings_are_refused(params, error, match):
    X, y = data(30)
    with pytest.raises(error, match=match):
        quick(**params).fit(X, y)


def test_verbose_shows_progress(capsys):
    X, y = data(100)
    quick(verbose=True).fit(X, y)
    assert "leaves" in capsys.readouterr().err
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick().fit(X, y)
    assert capsys.readouterr().err == ""


def test_staged_rents(staged_data):
    X, y, _ = staged_data("rent99")
    half = np.arange(len(y)) % 2 == 0
    model = SoftTreeRegressor("gamma", ridge=3.0, max_leaves=8).fit(X[half], y[half])
    assert model.score(X[~half], y[~half]) > 0.35
