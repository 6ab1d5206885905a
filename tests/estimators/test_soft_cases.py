"""Reported cases of compiled code and pipelines, for the soft tree estimators."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from boostplugins.estimators.soft_tree import SoftTreeRegressor
from boostplugins.estimators.soft_tree_boosting import SoftBoostingRegressor

FIT = """
import json, numpy as np
from boostplugins.estimators.soft_tree import SoftTreeRegressor
rng = np.random.default_rng(0)
X = rng.normal(size=(50, 2)); y = X[:, 0] + 0.3 * rng.normal(size=50)
print(json.dumps(SoftTreeRegressor(ridge=1.0, max_leaves=3).fit(X, y).predict(X).tolist()))
"""


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | environment, check=True
    )
    return done.stdout.strip()


@pytest.mark.slow
def test_h01_soft_tree_without_a_writable_cache(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    blocked = run(FIT, HOME="/nonexistent", NUMBA_CACHE_DIR=str(tmp_path / "file" / "cache"))
    np.testing.assert_allclose(json.loads(blocked), json.loads(run(FIT)), rtol=1e-12)


SMALL = """
import numpy as np
from boostplugins.soft_trees.kernels import evaluate
eta = np.empty(5)
evaluate(np.linspace(-2, 2, 5)[:, None], np.zeros(1, dtype=np.int64), np.array([1.0, -1.0, 0.5]), eta)
print(eta.tobytes().hex())
"""


@pytest.mark.slow
def test_h02_soft_tree_cold_processes_at_once_and_broken_cache_files(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", SMALL]
    first = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    texts = {process.communicate(timeout=300)[0].strip() for process in first}
    assert [process.returncode for process in first] == [0] * 4
    files = list(tmp_path.rglob("*.nb*"))
    assert files
    for path in files:
        path.write_bytes(path.read_bytes()[:20])
    texts.add(run(SMALL, NUMBA_CACHE_DIR=str(tmp_path)))
    assert len(texts) == 1


def test_h09_soft_tree_compiles_nothing_at_import_and_all_in_warm_up():
    code = """
from boostplugins.soft_trees import kernels
from boostplugins.soft_trees.warm_up import warm_up
import boostplugins.estimators.soft_tree_boosting as boosting
from boostplugins.estimators.soft_tree import SoftTreeRegressor
used = [kernels._evaluate, kernels._differentiate, kernels.best_step]
print([len(kernel.signatures) for kernel in used])
warm_up()
before = [len(kernel.signatures) for kernel in used]
import numpy as np
X = np.random.default_rng(0).normal(size=(50, 2))
for dtype in ("float32", "float64"):
    SoftTreeRegressor(ridge=1.0, max_leaves=3).fit(X.astype(dtype), X[:, 0]).predict(X)
    boosting.SoftBoostingRegressor(n_estimators=2).fit(X.astype(dtype), X[:, 0]).predict(X)
print(before, [len(kernel.signatures) for kernel in used])
"""
    cold, warm = run(code).splitlines()
    assert cold == "[0, 0, 0]"
    assert warm == "[1, 1, 1] [1, 1, 1]"


def test_i02_soft_boosting_stops_early_inside_a_pipeline():
    rng = np.random.default_rng(6)
    X = pd.DataFrame({"site": rng.choice(["a", "b"], 300), "x": rng.normal(size=300)})
    y = X["x"] + rng.normal(size=300)
    encode = make_column_transformer((OneHotEncoder(), ["site"]), remainder="passthrough")
    early = SoftBoostingRegressor(n_estimators=200, validation_fraction=0.2, patience=5)
    model = make_pipeline(encode, early).fit(X, y)
    assert model[-1].best_iteration_ < model[-1].n_iter_ < 200
    again = make_pipeline(encode, early).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_i02_soft_tree_chooses_its_ridge_on_held_out_rows_inside_a_pipeline():
    rng = np.random.default_rng(7)
    X = pd.DataFrame({"site": rng.choice(["a", "b"], 150), "x": rng.normal(size=150)})
    y = np.sin(2 * X["x"]) + 0.3 * rng.normal(size=150)
    encode = make_column_transformer((OneHotEncoder(), ["site"]), remainder="passthrough")
    tree = SoftTreeRegressor(selection="validation", validation_fraction=0.2, max_leaves=4)
    model = make_pipeline(encode, tree).fit(X, y)
    assert model[-1].figures_["ridge"] > 0
    assert model.score(X, y) > 0.3
