"""Compiled code of Bayesian trees: caches, layouts, pickles, interruptions (H)."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from boostplugins import HBARTRegressor
from tests.estimators.bart_cases import SHORT, build, data, each, in_new_process, quiet

pytestmark = quiet


VARIETY = """
import sys, warnings
import numpy as np, pandas as pd
from boostplugins import BARTClassifier, HBARTRegressor
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = pd.DataFrame({"a": rng.random(80), "b": list("wxyz") * 20, "c": rng.random(80)})
X.loc[::4, "a"] = np.nan
y = 3.0 * (X["c"] > 0.5) + rng.standard_normal(80)
found = []
few = {"n_trees": 4, "n_burn": 40, "n_draws": 10, "n_chains": 1, "random_state": 0, "beta": 0.5}
swap = (0.25, 0.25, 0.25, 0.25)
for more in ({}, {"variance": "forest", "n_variance_trees": 3}, {"moves": swap}, {"min_samples_leaf": 1}):
    model = HBARTRegressor(**few, **more).fit(X, y)
    found += [model.predict(X), model.predict_dist(X).std()]
found.append(BARTClassifier(**few).fit(X, y > 1).predict_proba(X)[:, 1])
np.save(sys.argv[1], found)
"""


@pytest.mark.slow
def test_h01_h10_no_cache_folder_and_checked_bounds(tmp_path):
    """Without a place for the cache, and with every index checked, the fits agree."""
    (tmp_path / "file").write_text("not a folder")
    nowhere = tmp_path / "file" / "cache"
    in_new_process(
        VARIETY,
        tmp_path / "checked.npy",
        HOME="/nonexistent",
        NUMBA_CACHE_DIR=str(nowhere),
        NUMBA_BOUNDSCHECK="1",
    )
    in_new_process(VARIETY, tmp_path / "plain.npy")
    checked, plain = np.load(tmp_path / "checked.npy"), np.load(tmp_path / "plain.npy")
    np.testing.assert_allclose(checked, plain, rtol=1e-4)


@pytest.mark.slow
def test_h02_cold_servers_at_once_and_broken_cache_files(tmp_path):
    X, y = data()
    model = HBARTRegressor(**SHORT).fit(X, y)
    model.save(tmp_path / "model.npz")
    np.save(tmp_path / "X.npy", X)
    code = (
        "import sys, numpy as np\n"
        "from boostplugins import HBARTRegressor\n"
        "model = HBARTRegressor.load(sys.argv[1] + '/model.npz')\n"
        "print(model.predict(np.load(sys.argv[1] + '/X.npy')).tobytes().hex())\n"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", code, str(tmp_path)]
    servers = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    texts = {server.communicate(timeout=300)[0].strip() for server in servers}
    assert [server.returncode for server in servers] == [0] * 3
    files = list((tmp_path / "cache").rglob("*.nb*"))
    assert files
    for path in files:
        path.write_bytes(path.read_bytes()[:20])
    texts.add(in_new_process(code, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache")).strip())
    assert texts == {model.predict(X).tobytes().hex()}


def test_h04_global_seeds_change_nothing():
    X, y = data()
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    one = HBARTRegressor(**SHORT).fit(X, y).predict(X)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    np.testing.assert_array_equal(HBARTRegressor(**SHORT).fit(X, y).predict(X), one)


@pytest.mark.slow
def test_h05_h10_uncompiled_code_agrees(tmp_path):
    code = (
        "import sys, numpy as np, pandas as pd\n"
        "from boostplugins import HBARTRegressor\n"
        "rng = np.random.default_rng(0)\n"
        "X = pd.DataFrame({'a': rng.random(25), 'b': list('xyz' * 8) + ['x']})\n"
        "X.loc[::4, 'a'] = np.nan\n"
        "y = rng.standard_normal(25)\n"
        "found = []\n"
        "for variance in ('log-linear', 'forest'):\n"
        "    model = HBARTRegressor(3, 3, 4, 1, variance=variance, n_variance_trees=2, random_state=0)\n"
        "    model.fit(X, y)\n"
        "    found += [model.predict(X), model.predict_dist(X).std()]\n"
        "np.save(sys.argv[1], found)\n"
    )
    in_new_process(code, tmp_path / "compiled.npy", NUMBA_DISABLE_JIT="0")
    in_new_process(code, tmp_path / "plain.npy", NUMBA_DISABLE_JIT="1")
    compiled, plain = np.load(tmp_path / "compiled.npy"), np.load(tmp_path / "plain.npy")
    np.testing.assert_allclose(compiled, plain, rtol=1e-4)


@each
def test_h06_h07_layouts_and_types(kind, tmp_path):
    X, y = data(60)
    X = np.round(X, 2).astype(np.float32).astype(np.float64)
    expected = build(kind, **SHORT).fit(X, y).predict(X)
    locked = X.copy()
    locked.flags.writeable = False
    mapped = np.memmap(tmp_path / "X", dtype=float, mode="w+", shape=X.shape)
    mapped[:] = X
    mapped.flush()
    strided = np.repeat(X, 2, axis=1)[:, ::2]
    read_only = np.memmap(tmp_path / "X", dtype=float, mode="r", shape=X.shape)
    forms = [
        locked,
        read_only,
        np.asfortranarray(X),
        strided,
        X.astype(np.float32),
        X.tolist(),
        pd.DataFrame(X),
    ]
    for form in forms:
        names = ["a", "b", "c"]
        form = form.set_axis(names, axis=1) if isinstance(form, pd.DataFrame) else form
        np.testing.assert_array_equal(build(kind, **SHORT).fit(form, y).predict(form), expected)
    whole = np.arange(180).reshape(60, 3) % 7
    np.testing.assert_array_equal(
        build(kind, **SHORT).fit(whole, y).predict(whole),
        build(kind, **SHORT).fit(whole.astype(float), y).predict(whole.astype(float)),
    )


@each
def test_h08_pickles_before_and_after_fit(kind):
    X, y = data()
    model = build(kind, **SHORT)
    assert pickle.loads(pickle.dumps(model)).get_params()["n_trees"] == 5
    model.fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_h09_import_compiles_nothing():
    code = (
        "import boostplugins.estimators.hbart\n"
        "from boostplugins.hbart.sampler import run\n"
        "from boostplugins.hbart.evaluation import evaluate\n"
        "print(len(getattr(run, 'signatures', ())) + len(getattr(evaluate, 'signatures', ())))\n"
    )
    assert in_new_process(code).strip() == "0"


def test_h10_shapes_are_checked():
    X, y = data()
    model = HBARTRegressor(**SHORT).fit(X, y)
    for wrong in (X[:, :2], np.column_stack([X, X[:, 0]])):
        with pytest.raises(ValueError, match="features"):
            model.predict(wrong)
    with pytest.raises(ValueError, match="as many rows"):
        HBARTRegressor(**SHORT).fit(X, y[:-1])


def test_h11_interrupt_stops_a_long_fit():
    code = (
        "import signal, numpy as np\n"
        "from boostplugins import BARTRegressor\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # shells may have it ignored\n"
        "X = np.random.default_rng(0).random((2000, 3))\n"
        "BARTRegressor(5, 1, 1, 1).fit(X[:50], X[:50, 0])\n"
        "model = BARTRegressor(n_burn=1, n_draws=10**7, n_chains=2)\n"
        "print('ready', flush=True)\n"
        "try:\n"
        "    model.fit(X, X[:, 0])\n"
        "except KeyboardInterrupt:\n"
        "    print('stopped', flush=True)\n"
    )
    child = subprocess.Popen([sys.executable, "-W", "ignore", "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    time.sleep(1.0)
    child.send_signal(signal.SIGINT)
    try:
        out, _ = child.communicate(timeout=120)  # generous: a machine may be busy
    finally:
        child.kill()
    assert out == "stopped\n"
    assert child.returncode == 0
