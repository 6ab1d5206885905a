"""What users of small networks and of compiled packages ran into, as tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numba
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from boostplugins.estimators.hnn import HNNRegressor
from boostplugins.estimators.mc_dropout import MCDropoutRegressor
from boostplugins.estimators.usnrt import USNRTRegressor

QUICK = {"max_epochs": 12, "patience": 4, "learning_rate_drops": 0}
TREE = USNRTRegressor(min_samples_leaf=60, split_hidden=(8,), leaf_hidden=(6, 4), **QUICK)


@pytest.mark.parametrize("kind", ["bits", "huge", "tiny"])
@pytest.mark.parametrize(
    "model",
    [
        USNRTRegressor(min_samples_leaf=100, max_epochs=50),
        HNNRegressor(max_epochs=50),
        MCDropoutRegressor(20, hidden=(32,), dropout=0.1, max_epochs=50),
    ],
    ids=lambda model: type(model).__name__,
)
def test_g01_raw_and_discrete_features(model, kind):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(400, 4)).astype(float) if kind == "bits" else rng.normal(size=(400, 4))
    y = X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * rng.normal(size=400)
    X = X * {"bits": 1.0, "huge": 1e6, "tiny": 1e-9}[kind]
    model = clone(model).fit(X, y)
    history = model.history_ if isinstance(model.history_, list) else [(model.history_,)]
    assert all(np.isfinite(each.loss).all() for leaf in history for each in leaf)
    assert model.score(X, y) > 0.5
    far = np.full((2, 4), 1e9)
    assert np.isfinite(model.predict_dist(far).theta).all()


@pytest.mark.parametrize(
    "model",
    [TREE, HNNRegressor(n_members=2, hidden=(8,), **QUICK), MCDropoutRegressor(5, hidden=(8,), **QUICK)],
    ids=lambda model: type(model).__name__,
)
def test_g04_a_row_alone_equals_the_row_in_a_batch(model):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    model = clone(model).fit(X, X[:, 0] + rng.normal(size=200) * np.exp(X[:, 1]))
    whole = model.predict_dist(X).theta
    single = np.concatenate([model.predict_dist(X[i : i + 1]).theta for i in range(60)])
    np.testing.assert_allclose(single, whole[:60], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(model.predict(np.tile(X, (5, 1)))[:200], model.predict(X))
    with pytest.raises(ValueError, match="2D array"):
        model.predict(X[0])


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_g05_likelihood_training_does_not_spoil_the_mean(beta):
    rng = np.random.default_rng(2)
    X = rng.uniform(-3, 3, size=(1000, 1))
    noise = np.where(X[:, 0] < 0, 0.01, 1.0)
    y = np.sin(X[:, 0]) + noise * rng.normal(size=1000)
    common = {"hidden": (24, 12), "max_epochs": 150, "random_state": 1}
    squared = HNNRegressor(rounds=1, beta=1.0, **common).fit(X, y)  # the mean by squared error alone
    model = HNNRegressor(beta=beta, **common).fit(X, y)
    grid = np.linspace(-2.9, 2.9, 400)[:, None]
    rmse = [np.sqrt(np.mean((m.predict(grid) - np.sin(grid[:, 0])) ** 2)) for m in (model, squared)]
    fresh = np.sin(X[:, 0]) + noise * rng.normal(size=1000)
    total = [np.sqrt(np.mean((m.predict(X) - fresh) ** 2)) for m in (model, squared)]
    assert total[0] <= 1.1 * total[1], (total, rmse)
    sd = model.predict_dist(grid).std()
    assert (sd > 0).all()
    assert np.median(sd[grid[:, 0] > 0.5]) / np.median(sd[grid[:, 0] < -0.5]) > 20


def test_g06_hard_splits_give_each_row_one_leaf():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2))
    y = rng.normal(size=300) * np.where(X[:, 0] < 0, 0.1, 1)
    model = clone(TREE).set_params(calibration=None).fit(X, y)
    leaf = model.apply(X)[:, 0]
    member = model.members_[0]
    assert set(np.unique(leaf)) == set(member.tree.leaves)
    assert len(member.pairs) >= 2
    for place, pair in zip(member.tree.leaves, member.pairs):
        mean, _ = pair.predict(model._read(X[leaf == place])[1])
        np.testing.assert_array_equal(model.predict(X)[leaf == place], model._center + model._unit * mean)


FIT = """
import json, sys
import numpy as np
from boostplugins.estimators.usnrt import USNRTRegressor
rng = np.random.default_rng(0)
X = rng.normal(size=(120, 2))
y = X[:, 0] + rng.normal(size=120) * np.where(X[:, 1] < 0, 0.1, 1)
X[::6, 0] = np.nan
model = USNRTRegressor(min_samples_leaf=40, split_hidden=(4,), leaf_hidden=(4,), max_epochs=2, rounds=1,
                       learning_rate_drops=0, split_test="levene").fit(X, y)
print(json.dumps([model.predict(X[:20]).tolist(), model.apply(X).tolist()]))
"""


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_h05_h10_compiled_and_plain_python_agree():
    compiled, plain = (json.loads(run(FIT, NUMBA_DISABLE_JIT=flag)) for flag in ("0", "1"))
    np.testing.assert_allclose(compiled[0], plain[0], atol=1e-4)
    assert compiled[1] == plain[1]


@pytest.mark.slow
def test_h01_h10_no_cache_folder_and_checked_bounds(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    nowhere = str(tmp_path / "file" / "cache")
    blocked = run(FIT, HOME="/nonexistent", NUMBA_CACHE_DIR=nowhere, NUMBA_BOUNDSCHECK="1")
    assert json.loads(blocked)[1] == json.loads(run(FIT))[1]


SMALL = """
import numpy as np
from boostplugins.usnrt.kernels import tanh_in_place
x = np.linspace(-2, 2, 7)
tanh_in_place(x)
print(x.tobytes().hex())
"""


@pytest.mark.slow
def test_h02_cold_processes_at_once_and_broken_cache_files(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", SMALL]
    first = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    texts = {process.communicate(timeout=200)[0] for process in first}
    assert [process.returncode for process in first] == [0] * 4
    files = list(tmp_path.rglob("*.nb*"))
    assert files
    for path in files:
        path.write_bytes(path.read_bytes()[:20])
    texts.add(run(SMALL, NUMBA_CACHE_DIR=str(tmp_path)))
    assert len(texts) == 1


def test_h04_global_seeds_and_threads_do_not_matter():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(200, 2)), rng.normal(size=200)
    first = clone(TREE).fit(X, y).predict(X)
    np.random.seed(7)  # noqa: NPY002 - the global state must neither matter nor move
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    numba.set_num_threads(1)
    second = clone(TREE).fit(X, y).predict(X)
    np.testing.assert_array_equal(first, second)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_h09_importing_compiles_nothing_and_warm_up_compiles_all():
    code = """
from boostplugins.usnrt import kernels, levene
from boostplugins.usnrt.warm_up import warm_up
import boostplugins.estimators.usnrt
used = [kernels.train_epoch, kernels.predict_into, kernels.mean_loss, levene.scan_cuts, levene.scan_subsets]
print([len(kernel.signatures) for kernel in used])
warm_up()
before = [len(kernel.signatures) for kernel in used]
import numpy as np
X = np.random.default_rng(0).normal(size=(60, 2))
boostplugins.estimators.usnrt.USNRTRegressor(min_samples_leaf=20, max_epochs=2).fit(X, X[:, 0]).predict(X)
print(before, [len(kernel.signatures) for kernel in used])
"""
    cold, warm = run(code).splitlines()
    assert cold == "[0, 0, 0, 0, 0]"
    assert warm == "[1, 1, 1, 1, 1] [1, 1, 1, 1, 1]"


def test_i01_nested_parameters_are_searched():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    search = GridSearchCV(
        HNNRegressor(hidden=(3,), **QUICK), {"beta": [0.0, 1.0], "calibration": [None, "scale"]}, cv=2
    )
    search.fit(X, y)
    assert set(search.best_params_) == {"beta", "calibration"}
    model = USNRTRegressor(split_hidden=(4, 2), cat_features=[0])
    assert clone(model).get_params() == model.get_params()


def test_i02_early_stopping_inside_a_pipeline():
    rng = np.random.default_rng(6)
    X = pd.DataFrame({"site": rng.choice(["a", "b"], 300), "x": rng.normal(size=300)})
    y = X["x"] + rng.normal(size=300)
    encode = make_column_transformer((OneHotEncoder(), ["site"]), remainder="passthrough")
    model = make_pipeline(encode, HNNRegressor(hidden=(8, 4), patience=5)).fit(X, y)
    assert model[-1].n_iter_ < 1000
    assert np.isfinite(model.predict(X)).all()


def test_i05_nullable_columns_equal_plain_ones():
    rng = np.random.default_rng(7)
    plain = rng.integers(0, 5, size=(200, 2)).astype(float)
    plain[::9, 0] = np.nan
    y = rng.normal(size=200) + np.nan_to_num(plain[:, 0])
    nullable = pd.DataFrame(
        {"a": pd.array(plain[:, 0], dtype="Float64"), "b": pd.array(plain[:, 1].astype(int), dtype="Int64")}
    )
    nullable.loc[np.isnan(plain[:, 0]), "a"] = pd.NA
    shuffled = pd.Series(y, index=rng.permutation(200))
    expected = clone(TREE).fit(plain, y).predict(plain)
    np.testing.assert_array_equal(clone(TREE).fit(nullable, shuffled).predict(nullable), expected)
