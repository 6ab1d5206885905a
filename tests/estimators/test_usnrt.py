"""USNRTRegressor and its baselines: scikit-learn's checks, tables, files, threads, interruption."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info

from boostplugins._files import read_model, write_model
from boostplugins.estimators.hnn import HNNRegressor
from boostplugins.estimators.mc_dropout import MCDropoutRegressor
from boostplugins.estimators.usnrt import USNRTRegressor

QUICK = {"max_epochs": 12, "patience": 4, "learning_rate_drops": 0}
TREE = USNRTRegressor(n_members=2, min_samples_leaf=80, split_hidden=(8,), leaf_hidden=(6, 4), **QUICK)
ALL = [
    TREE,
    HNNRegressor(hidden=(8, 4), **QUICK),
    MCDropoutRegressor(n_draws=10, hidden=(12, 6), dropout=0.2, **QUICK),
]


def steps(n=500, seed=0):
    """Noise that jumps with the first of three features."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 3))
    return X, X[:, 1] + rng.normal(size=n) * np.where(X[:, 0] < 0.5, 0.1, 1.0)


def mixed(n=500, seed=0):
    """A table with numbers, missing values and categories; noise depends on the category."""
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "green", "blue"], n)
    size = pd.array(rng.integers(0, 9, n), dtype="Int64")
    size[::7] = pd.NA
    X = pd.DataFrame(
        {
            "length": rng.normal(size=n).astype(np.float32),
            "colour": pd.Categorical(colour),
            "size": size,
            "site": rng.choice(["a", "b"], n),
        }
    )
    X.loc[::5, "length"] = np.nan
    return X, rng.normal(size=n) * np.where(colour == "red", 3.0, 0.3)


def known_differences(estimator):
    return {
        "check_sample_weight_equivalence_on_dense_data": (
            "rows are drawn into mini-batches and held out one by one: a row of weight 2 and two rows share "
            "the loss, not the path of the optimiser"
        )
    }


@parametrize_with_checks(
    [
        USNRTRegressor(min_samples_leaf=30, max_epochs=100, learning_rate_drops=0),
        HNNRegressor(n_members=2, max_epochs=100, learning_rate_drops=0),
        MCDropoutRegressor(n_draws=10, hidden=(16, 8), dropout=0.1, max_epochs=100, learning_rate_drops=0),
    ],
    expected_failed_checks=known_differences,
)
@pytest.mark.filterwarnings("ignore:y is constant:UserWarning", "ignore:A column-vector:UserWarning")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_finds_the_step_and_its_noise():
    X, y = steps(1500)
    model = clone(TREE).set_params(n_members=1, max_epochs=60).fit(X, y)
    root, *_ = nodes = model.tree_data()
    assert root["feature"] == "x0"
    assert root["threshold"] == pytest.approx(0.5, abs=0.03)
    leaves = [node for node in nodes if node["leaf"]]
    assert sum(node["n_rows"] for node in leaves) == 1500
    quiet = [node["residual_variance"] for node in leaves if "x0 <=" in node["region"][0]]
    loud = [node["residual_variance"] for node in leaves if "x0 >" in node["region"][0]]
    assert max(quiet) < 0.03
    assert min(loud) > 0.7
    test = np.array([[0.2, 0.5, 0.5], [0.8, 0.5, 0.5]])
    np.testing.assert_allclose(model.predict_dist(test).std(), [0.1, 1.0], rtol=0.35)


def test_text_shows_regions_sizes_and_variances():
    X, y = mixed()
    model = clone(TREE).fit(X, y)
    text = model.export_text(1)
    assert "colour in {red}" in text
    assert "500 rows, residual variance" in text.splitlines()[0]
    nodes = model.tree_data(1)
    assert len(text.splitlines()) == len(nodes)
    assert sorted(node["x"] for node in nodes if node["leaf"]) == list(range(len(nodes) // 2 + 1))
    for node in nodes[1:]:
        assert node["depth"] == nodes[node["parent"]]["depth"] + 1
    leaf = model.apply(X)
    for node in nodes:
        if node["leaf"]:
            assert (leaf[:, 1] == node["node"]).sum() == node["n_rows"]
    with pytest.raises(ValueError, match="member must be below n_members = 2, got 2"):
        model.tree_data(2)


def test_picture_shows_every_node(tmp_path):
    pytest.importorskip("matplotlib")
    X, y = mixed()
    X["site"] = "a place with a long name, " + X["site"]
    model = clone(TREE).fit(X, y)
    nodes = model.tree_data()
    ax = model.plot_tree()
    texts = [text.get_text() for text in ax.texts]
    assert sum("rows" in text for text in texts) == len(nodes) > 1
    assert {node["condition"] for node in nodes[1:]} <= {text.replace("\n", " ") for text in texts}
    ax.figure.savefig(tmp_path / "tree.png")


def test_ensemble_is_a_mixture_with_both_kinds_of_uncertainty():
    X, y = steps()
    model = clone(TREE).fit(X, y)
    dist, u = model.predict_dist(X), model.predict_uncertainty(X)
    assert dist.n_members == 2
    assert (u.knowledge > 0).all()
    np.testing.assert_allclose(u.total, dist.var())
    single = clone(TREE).set_params(n_members=1).fit(X, y)
    assert (single.predict_uncertainty(X).knowledge == 0).all()
    # The first member does not depend on how many there are.
    np.testing.assert_array_equal(single.predict_dist(X).theta, dist.theta[:, 0])


@pytest.mark.parametrize("model", ALL, ids=lambda m: type(m).__name__)
def test_threads_and_seeds(model):
    X, y = steps()
    fits = [clone(model).set_params(n_jobs=jobs).fit(X, y) for jobs in (1, 2)]
    np.random.default_rng(0).normal(size=3)
    theta = [fit.predict_dist(X).theta for fit in fits]
    assert theta[0].tobytes() == theta[1].tobytes()
    other = clone(model).set_params(random_state=1).fit(X, y)
    assert not np.array_equal(other.predict_dist(X).theta, theta[0])


@pytest.mark.parametrize("kind", ["polars", "reordered", "unknown"])
def test_tables(kind):
    X, y = mixed()
    model = clone(TREE).fit(X, y)
    expected = model.predict(X)
    assert list(model.feature_names_in_) == ["length", "colour", "size", "site"]
    if kind == "polars":
        polars = pytest.importorskip("polars")
        columns = {name: [None if pd.isna(v) else v for v in X[name]] for name in X}
        frame = polars.DataFrame(columns)
        np.testing.assert_array_equal(model.predict(frame), expected)
    if kind == "reordered":
        with pytest.raises(ValueError, match="order"):
            model.predict(X[["size", "colour", "length", "site"]])
        shuffled = X.set_axis(np.random.default_rng(0).permutation(500))
        np.testing.assert_array_equal(model.predict(shuffled), expected)
    if kind == "unknown":
        strange = X.assign(colour=["violet"] * 250 + [None] * 250, length=1e30, size=0)
        dist = model.predict_dist(strange)
        assert np.isfinite(dist.mean()).all()
        assert np.isfinite(dist.std()).all()


def test_categories_of_an_array_equal_those_of_a_frame():
    X, y = mixed(200)
    X = X[["colour", "site"]].astype(str)
    frame = clone(TREE).fit(X, y)
    array = clone(TREE).set_params(cat_features=[0, 1]).fit(X.to_numpy(dtype=object), y)
    np.testing.assert_array_equal(array.predict(X.to_numpy(dtype=object)), frame.predict(X))


@pytest.mark.parametrize("model", ALL, ids=lambda m: type(m).__name__)
def test_i04_files_and_copies_keep_everything(model, tmp_path):
    X, y = mixed()
    if hasattr(model, "calibration"):
        model = clone(model).set_params(calibration="scale")
    model = clone(model).fit(X, y)
    model.save(tmp_path / "model.npz")
    routes = {
        "file": type(model).load(tmp_path / "model.npz"),
        "pickle": pickle.loads(pickle.dumps(model)),
        "copy": copy.deepcopy(model),
    }
    for route in routes.values():
        assert route.predict_dist(X).theta.tobytes() == model.predict_dist(X).theta.tobytes()
        assert route.history_ == model.history_
        assert route.n_iter_ == model.n_iter_
        assert route.n_features_in_ == 4
        assert list(route.feature_names_in_) == list(X.columns)
        assert repr(route.get_params()) == repr(model.get_params())
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        assert all(name == "head.json" or file[name].dtype.kind in "fiub" for name in file.files)
    assert [p.name for p in tmp_path.iterdir()] == ["model.npz"]


@pytest.mark.parametrize("damage", ["empty", "cut", "other", "wrong shape"])
def test_bad_files_are_one_clear_error(damage, tmp_path):
    X, y = steps(200)
    path = tmp_path / "model.npz"
    model = HNNRegressor(hidden=(4,), **QUICK).fit(X, y)
    model.save(path)
    if damage == "empty":
        path.write_bytes(b"")
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-200])
    if damage == "wrong shape":
        state, arrays, _ = read_model(path, "HNNRegressor")
        write_model(path, "HNNRegressor", state, arrays | {"mean0": arrays["mean0"][:, :-1]})
    kind, text = HNNRegressor, "no saved"
    if damage == "other":
        kind, text = USNRTRegressor, "holds a HNNRegressor"
    with pytest.raises(ValueError, match=text):
        kind.load(path)
    with pytest.raises(FileNotFoundError):
        HNNRegressor.load(tmp_path / "none.npz")


@pytest.mark.parametrize("model", ALL, ids=lambda m: type(m).__name__)
@pytest.mark.filterwarnings("ignore:y is constant:UserWarning", "ignore:A column-vector:UserWarning")
def test_i06_i07_i11_targets_and_weights(model):
    X, y = steps(30)
    expected = clone(model).fit(X, y).predict(X)
    for form in (list(y), y[:, None], pd.DataFrame({"y": y}), pd.Series(y, index=range(30, 0, -1))):
        np.testing.assert_array_equal(clone(model).fit(X, form).predict(X), expected)
    with pytest.raises(ValueError, match="numeric"):
        clone(model).fit(X, np.array(["a"] * 30, dtype=object))
    for weight in (np.r_[-1.0, np.ones(29)], np.zeros(30)):
        with pytest.raises(ValueError, match="sample_weight"):
            clone(model).fit(X, y, sample_weight=weight)
    one = clone(model).fit(X, y, sample_weight=np.r_[np.zeros(29), 1.0])
    np.testing.assert_allclose(one.predict(X), y[-1], rtol=1e-6, atol=1e-6)
    constant = clone(model).fit(X, np.full(30, 3.0))
    np.testing.assert_allclose(constant.predict(X), 3.0, atol=1e-6)
    assert np.isfinite(constant.predict_uncertainty(X).total).all()
    flat = clone(model).fit(np.ones((30, 2)), y)
    assert np.ptp(flat.predict(np.ones((5, 2)))) == 0
    ignored = clone(model).fit(np.r_[X, X], np.r_[y, y + 9], sample_weight=np.r_[np.ones(30), np.zeros(30)])
    np.testing.assert_array_equal(ignored.predict(X), expected)


def test_constant_target_warns():
    with pytest.warns(UserWarning, match="y is constant"):
        HNNRegressor(**QUICK).fit(np.eye(5), np.ones(5))


@pytest.mark.parametrize("model", ALL, ids=lambda m: type(m).__name__)
def test_tiny_samples(model):
    for n in (1, 2, 3, 5):
        X, y = steps(n)
        fitted = clone(model).set_params(**({"min_samples_leaf": 2} if model is TREE else {})).fit(X, y)
        assert np.isfinite(fitted.predict_interval(X)).all()


def test_below_the_least_leaf_there_is_one_leaf():
    X, y = steps(900)
    model = USNRTRegressor(leaf_hidden=(4,), split_hidden=(4,), **QUICK).fit(X, y)
    assert len(model.members_[0].pairs) == 1
    assert model.export_text().startswith("leaf 0: 900 rows")


@pytest.mark.parametrize("scale", [1e-9, 1e9, 1e150])
def test_units_do_not_matter(scale):
    X, y = steps()
    plain = clone(TREE).fit(X, y)
    scaled = clone(TREE).fit(X * scale, y * scale)
    np.testing.assert_allclose(scaled.predict(X * scale) / scale, plain.predict(X), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"n_members": 0}, "n_members must be an integer >= 1, got 0"),
        ({"split_test": "anova"}, "split_test must be one of"),
        ({"alpha": 1.5}, "alpha"),
        ({"min_samples_leaf": 1}, "min_samples_leaf must be an integer >= 2, got 1"),
        ({"beta": 2.0}, "beta"),
        ({"calibration": "platt"}, "calibration must be one of"),
        ({"dtype": "float16"}, "dtype must be one of"),
        ({"leaf_hidden": 8}, "leaf_hidden must be a non-empty sequence"),
        ({"leaf_hidden": (0,)}, "unit count of leaf_hidden must be an integer >= 1"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"random_state": -1}, "random_state must be an integer >= 0, got -1"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"variance_floor": 0.0}, "variance_floor"),
    ],
)
def test_wrong_parameters(params, text):
    X, y = steps(20)
    with pytest.raises((ValueError, TypeError), match=text):
        USNRTRegressor(**params).fit(X, y)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_wrong_data(bad):
    X, y = steps(20)
    with pytest.raises(ValueError, match="y must be finite"):
        HNNRegressor().fit(X, np.r_[bad, y[1:]])
    with pytest.raises(ValueError, match="infinity"):
        HNNRegressor().fit(np.full((20, 3), np.inf), y)
    model = HNNRegressor(hidden=(3,), **QUICK).fit(X, y)
    with pytest.raises(ValueError, match="2 features, but HNNRegressor is expecting 3"):
        model.predict(X[:, :2])


def test_h06_h07_kinds_of_arrays():
    X, y = steps(60)
    X = np.round(X * 8)
    expected = clone(TREE).fit(X, y).predict(X)
    frozen = X.copy()
    frozen.flags.writeable = False
    strided = np.repeat(X, 2, axis=0)[::2]
    for form in (frozen, np.asfortranarray(X), strided, X.astype(np.float32), X.astype(int), X.tolist()):
        np.testing.assert_allclose(clone(TREE).fit(form, y).predict(form), expected, atol=1e-5)
    assert (frozen == X).all()


def test_h08_no_compiled_objects_in_the_model():
    X, y = steps(300)
    pickle.loads(pickle.dumps(TREE))
    model = clone(TREE).fit(X, y)
    held = sum(p.mean.params.nbytes + p.variance.params.nbytes for m in model.members_ for p in m.pairs)
    assert len(pickle.dumps(model)) < 10 * held


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_h03_two_fits_at_once():
    before = blas_threads()
    X, y = steps(300)
    expected = clone(TREE).fit(X, y).predict(X)
    found = [None, None]

    def fit(place):
        found[place] = clone(TREE).set_params(n_jobs=2).fit(X, y).predict(X)

    threads = [threading.Thread(target=fit, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(found[0], expected)
    np.testing.assert_array_equal(found[1], expected)
    assert blas_threads() == before


def test_verbose_shows_progress_and_leaves_logging_alone(caplog, capsys):
    X, y = steps(200)
    HNNRegressor(hidden=(3,), verbose=True, **QUICK).fit(X, y)
    assert "member 0 leaf 0: 200 rows" in capsys.readouterr().err
    HNNRegressor(hidden=(3,), **QUICK).fit(X, y)
    assert capsys.readouterr().err == ""


INTERRUPTED = """
import os, signal, threading, time
import numpy as np
from boostplugins.estimators.usnrt import USNRTRegressor
X = np.random.default_rng(0).normal(size=(20000, 8))
y = np.random.default_rng(1).normal(size=20000)
USNRTRegressor(max_epochs=1).fit(X[:100], y[:100])
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
begin = time.monotonic()
try:
    USNRTRegressor(n_members=50, patience=1000, n_jobs={jobs}).fit(X, y)
except KeyboardInterrupt:
    print("stopped")
time.sleep(1.0)
print(sum(t.name != "MainThread" and not t.daemon for t in threading.enumerate()), "left")
"""


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_h11_interrupt_stops_the_fit(jobs):
    code = INTERRUPTED.replace("{jobs}", str(jobs))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.split("\n")[0] == "stopped"


FORKED = """
import os
import numpy as np
from boostplugins import HNNRegressor
rng = np.random.default_rng(0)
X, y = rng.normal(size=(200, 2)), rng.normal(size=200)
model = HNNRegressor(n_members=2, hidden=(4,), max_epochs=3, n_jobs=2)
expected = model.fit(X, y).predict(X)
child = os.fork()
if child == 0:
    os._exit(0 if (model.set_params(n_jobs=1).fit(X, y).predict(X) == expected).all() else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.slow
# Windows has no fork, and so no child that inherits compiled code.
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_h03_fit_in_a_forked_child():
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "0"
