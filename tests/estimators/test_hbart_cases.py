"""What users of Bayesian trees reported elsewhere, as tests of these estimators."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from boostplugins import BARTClassifier, BARTRegressor, HBARTRegressor

SHORT = {"n_trees": 5, "n_burn": 15, "n_draws": 15, "n_chains": 2, "random_state": 0}
FEW = {"n_trees": 20, "n_burn": 100, "n_draws": 100, "n_chains": 2, "random_state": 0}
REGRESSORS = {
    "BART": BARTRegressor(),
    "HBART": HBARTRegressor(),
    "forest": HBARTRegressor(variance="forest", n_variance_trees=5),
}
each = pytest.mark.parametrize("kind", REGRESSORS)
pytestmark = pytest.mark.filterwarnings("ignore::boostplugins.estimators._bart_base.MixingWarning")


def build(kind, **params):
    return clone(REGRESSORS[kind]).set_params(**params)


def data(n=100, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    return X, 2 * X[:, 0] + np.exp(X[:, 1] - 1) * rng.standard_normal(n)


def in_new_process(code, *arguments, **environment):
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return run.stdout


@pytest.mark.slow
def test_f01_memory_is_linear_in_rows():
    X, y = data(100_000, 10)
    model = HBARTRegressor(n_burn=5, n_draws=100, n_chains=1, random_state=0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model.fit(X, y)
    mean = model.predict(X)
    rise = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert rise < 600  # MB; the draws of f alone would be 80 MB a hundred draws
    arrays = [value for value in vars(model.posterior_.mean).values() if isinstance(value, np.ndarray)]
    assert sum(array.nbytes for array in arrays) < 4e6
    rows = slice(49_990, 50_010)
    np.testing.assert_array_equal(mean[rows], model.predict(X[rows]))


@each
def test_f01_blocks_change_no_bit(kind, monkeypatch):
    X, y = data()
    model = build(kind, **SHORT).fit(X, y)
    full = model.predict(X), model.predict_interval(X), model.predict_credible_interval(X)
    monkeypatch.setattr("boostplugins.hbart.posterior._BLOCK_VALUES", 7 * model.n_draws_)
    for a, b in zip(full, (model.predict(X), model.predict_interval(X), model.predict_credible_interval(X))):
        np.testing.assert_array_equal(a, b)


@each
def test_f02_one_row_predicts_as_among_many(kind):
    X, y = data()
    model = build(kind, **SHORT).fit(X, y)
    np.testing.assert_array_equal(model.predict(X[:1]), model.predict(X)[:1])
    # Rows go down a tree once per structure, not once per draw: far fewer structures than trees drawn.
    mean = model.posterior_.mean
    assert len(mean.start) - 1 < mean.structure.size


def test_f03_restored_in_a_new_process(tmp_path):
    X, y = data()
    color = pd.Categorical(np.array(list("uvw"))[np.arange(100) % 3])
    frame = pd.DataFrame(X, columns=list("abc")).assign(d=color)
    frame.loc[::7, "a"] = np.nan
    frame.to_pickle(tmp_path / "X.pkl")
    models = {kind: build(kind, **SHORT).fit(frame, y) for kind in REGRESSORS}
    for kind, model in models.items():
        model.save(tmp_path / f"{kind}.npz")
    joblib.dump(models, tmp_path / "models.joblib")
    (tmp_path / "models.pkl").write_bytes(pickle.dumps(models))
    code = (
        "import sys, pickle, joblib, numpy as np, pandas as pd\n"
        "from boostplugins import BARTRegressor, HBARTRegressor\n"
        "folder = sys.argv[1]\n"
        "X = pd.read_pickle(folder + '/X.pkl')\n"
        "pickled = pickle.load(open(folder + '/models.pkl', 'rb'))\n"
        "dumped = joblib.load(folder + '/models.joblib')\n"
        "for kind, model in pickled.items():\n"
        "    loaded = type(model).load(folder + '/' + kind + '.npz')\n"
        "    found = [model.sample_more(5), dumped[kind], loaded]\n"
        "    np.save(folder + '/' + kind, [np.c_[m.predict(X), m.predict_interval(X)] for m in found])\n"
    )
    in_new_process(code, tmp_path)
    for kind, model in models.items():
        continued, dumped, loaded = np.load(tmp_path / f"{kind}.npy")
        expected = np.c_[model.predict(frame), model.predict_interval(frame)]
        np.testing.assert_array_equal(dumped, expected)
        np.testing.assert_array_equal(loaded, expected)
        np.testing.assert_array_equal(continued[:, 0], model.sample_more(5).predict(frame))
        with pytest.raises(ValueError, match="no chains to continue"):
            type(model).load(tmp_path / f"{kind}.npz").sample_more(5)


def test_f03_bad_files_are_one_clear_error(tmp_path):
    X, y = data()
    path = tmp_path / "model.npz"
    BARTRegressor(**SHORT).fit(X, y).save(path)
    with pytest.raises(ValueError, match="holds a BARTRegressor, not a HBARTRegressor"):
        HBARTRegressor.load(path)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"not a model"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is no saved model of boostplugins"):
            BARTRegressor.load(path)
    with pytest.raises(FileNotFoundError):
        BARTRegressor.load(tmp_path / "none.npz")
    model = HBARTRegressor(variance_features=lambda X: X[:, 0], **SHORT).fit(X, y)
    with pytest.raises(ValueError, match="variance_features must be a number, a string or a list"):
        model.save(path)
    classifier = BARTClassifier(**SHORT).fit(X, np.where(y > 1, "b", "a"))
    classifier.save(path)
    again = BARTClassifier.load(path)
    np.testing.assert_array_equal(again.predict_proba(X), classifier.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), classifier.predict(X))


@each
@pytest.mark.parametrize("response", ["noise-free", "binary floats"])
def test_f05_sigma_stays_positive(kind, response):
    X, _ = data()
    y = 2 * X[:, 0] if response == "noise-free" else (X[:, 0] > 0.5).astype(float)
    model = build(kind, **SHORT).fit(X, y)
    draws = model.posterior_draws(X)
    for name in ("sigma", "noise"):
        assert np.isfinite(draws[name]).all()
        assert draws[name].min() > 0
    assert draws["sigma"].max() < 2


@each
def test_f06_draws_depend_on_the_seed_alone(kind):
    X, y = data()
    settings = {**SHORT, "n_chains": 4, "n_draws": 40}
    found = [build(kind, **{**settings, "n_jobs": n}).fit(X, y).posterior_draws(X) for n in (1, 2, 4)]
    for other in found[1:]:
        for name, draws in found[0].items():
            np.testing.assert_array_equal(draws, other[name])
    sigma = found[0]["sigma"]
    # Steps of a chain are about uncorrelated; so 39 of them correlate across chains by .16 at random.
    assert np.abs(np.corrcoef(np.diff(np.log(sigma))) - np.eye(4)).max() < 0.55
    assert len({tuple(row) for row in sigma}) == 4
    other = build(kind, **{**settings, "random_state": 1}).fit(X, y).posterior_draws(X)
    assert (other["sigma"] != sigma).all()


@pytest.mark.parametrize("kind", ["HBART", "forest"])
def test_f07_variance_of_new_rows(kind):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1200, 2))
    y = X[:, 0] + np.exp(X[:, 1]) * rng.standard_normal(1200)
    model = build(kind, **FEW).fit(X[:1000], y[:1000])
    sd = model.predict_dist(X[1000:]).std()
    assert spearmanr(sd, np.exp(X[1000:, 1])).statistic > 0.8
    # Training rows passed as new ones are the chain's own rows.
    chain = model._runs[0].chain
    f = model._centre + model._scale * (chain.target - chain.mean.rows.residual)
    np.testing.assert_allclose(model.posterior_draws(X[:1000])["f"][0, -1], f, atol=1e-5)


def test_f08_binary_response():
    X, y = data(60)
    labels = (y > 1).astype(int)
    p = BARTClassifier(**SHORT).fit(X, labels).predict_proba(X)
    assert ((p > 0) & (p < 1)).all()
    assert np.isfinite(BARTRegressor(**SHORT).fit(X, labels).predict(X)).all()


@each
def test_f08_weights_are_precisions(kind):
    rng = np.random.default_rng(0)
    x = np.repeat([0.0, 1.0], 200)[:, None]
    weight = np.repeat([1.0, 16.0], 200)
    y = 3 * x[:, 0] + rng.standard_normal(400) / np.sqrt(weight)
    extra = {"variance_features": "none"} if kind == "HBART" else {}
    if kind == "forest":
        extra = {"variance_spread": 0.01}
    model = build(kind, **FEW, **extra).fit(x, y, sample_weight=weight)
    f = model.posterior_draws([[0.0], [1.0]])["f"].reshape(-1, 2)
    # 200 draws of autocorrelated sds: exact ratio is 1/4 up to the prior.
    assert f[:, 1].std() / f[:, 0].std() < 0.5
    # sigma is the noise of a row of mean weight, 8.5.
    assert model.posterior_draws()["sigma"].mean() == pytest.approx(1 / np.sqrt(8.5), rel=0.1)
    assert model.predict(x[:7]).shape == (7,)
    np.testing.assert_array_equal(
        model.predict(x), build(kind, **FEW, **extra).fit(x, y, sample_weight=4 * weight).predict(x)
    )


@each
def test_f09_missing_values_and_categories(kind):
    rng = np.random.default_rng(0)
    color = np.array(["red", "green", "blue"])[rng.integers(0, 3, 400)]
    x = rng.random(400)
    x[rng.random(400) < 0.3] = np.nan
    y = np.where(np.isnan(x), 3.0, 0.0) + 2.0 * (color == "red") + 0.1 * rng.standard_normal(400)
    frame = pd.DataFrame({"x": x, "color": pd.Categorical(color)})
    model = build(kind, **FEW).fit(frame, y)
    assert np.sqrt(np.mean((model.predict(frame) - y) ** 2)) < 0.3
    new = pd.DataFrame({"x": [np.nan, 0.5, 0.5], "color": ["green", "purple", None]})
    found = model.predict(new)
    assert found[0] == pytest.approx(3.0, abs=0.4)
    assert found[1] == found[2]
    assert np.isfinite(model.predict_interval(new)).all()
    with pytest.raises(ValueError, match="at most 62 levels, got 63"):
        build(kind, **SHORT).fit(pd.DataFrame({"a": [f"v{i:02}" for i in range(63)]}), np.arange(63.0))


def test_f11_models_in_threads_share_nothing():
    X, y = data()
    models = [build(kind, **SHORT) for kind in ("BART", "HBART", "forest", "HBART")]
    alone = [clone(model).fit(X, y).predict(X) for model in models]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda model: model.fit(X, y).predict(X), models))
    for a, b in zip(alone, together):
        np.testing.assert_array_equal(a, b)


@each
@pytest.mark.parametrize("power", [-30, 30])
def test_f12_units_of_the_response(kind, power):
    X, y = data()
    one = build(kind, **SHORT).fit(X, y)
    other = build(kind, **SHORT).fit(X, y * 2.0**power)
    np.testing.assert_allclose(other.predict(X) / 2.0**power, one.predict(X), rtol=1e-6)
    np.testing.assert_allclose(other.predict_interval(X) / 2.0**power, one.predict_interval(X), rtol=1e-6)


@each
def test_f12_shifted_integer_and_constant_responses(kind):
    X, y = data()
    one = build(kind, **FEW).fit(X, y)
    shifted = build(kind, **FEW).fit(X, y + 1000 * y.std())
    assert np.abs(shifted.predict(X) - 1000 * y.std() - one.predict(X)).max() < 0.1 * y.std()
    ratio = shifted.predict_dist(X).std() / one.predict_dist(X).std()
    assert np.abs(ratio - 1).max() < 0.05
    whole = np.round(10 * y).astype(int)
    np.testing.assert_array_equal(
        build(kind, **SHORT).fit(X, whole).predict(X),
        build(kind, **SHORT).fit(X, whole.astype(float)).predict(X),
    )


@each
@pytest.mark.parametrize("n", [1, 2, 20])
def test_f12_i07_constant_response_or_features(kind, n):
    X = np.random.default_rng(0).random((n, 2))
    with pytest.warns(UserWarning, match="y is constant, 3: the fit is that constant"):
        model = build(kind, **SHORT).fit(X, np.full(n, 3.0))
    np.testing.assert_allclose(model.predict(X), 3.0, rtol=1e-6)
    uncertainty = model.predict_uncertainty(X)
    assert np.isfinite(uncertainty.total).all()
    if n > 2:
        model = build(kind, **SHORT).fit(np.ones((n, 2)), np.arange(n))
        np.testing.assert_allclose(model.predict(np.ones((3, 2))), model.predict(np.ones((1, 2)))[0])


@each
def test_f13_credible_and_predictive_intervals(kind):
    # Coverage of 2000 test rows has a standard error of .007; the band of .05 is seven of them.
    rng = np.random.default_rng(0)
    X = rng.random((4000, 3))
    y = 5 * np.sin(3 * X[:, 0]) + X[:, 1] + rng.standard_normal(4000)
    model = build(kind, **FEW).fit(X[:2000], y[:2000])
    low, high = model.predict_interval(X[2000:]).T
    assert 0.85 < ((low < y[2000:]) & (y[2000:] < high)).mean() < 0.95
    band = model.predict_credible_interval(X[2000:])
    assert (high - low > band[:, 1] - band[:, 0]).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("backend", ["threading", "multiprocessing", "loky"])
def test_f14_h03_parallel_fits_after_a_fit(backend):
    X, y = data()
    model = BARTRegressor(**SHORT)
    model.fit(X, y)
    serial = cross_val_score(model, X, y, cv=2)
    with joblib.parallel_backend(backend, n_jobs=2):
        parallel = cross_val_score(model, X, y, cv=2, n_jobs=2)
    np.testing.assert_array_equal(serial, parallel)


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
        "from boostplugins.hbart.posterior import evaluate\n"
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
        "import sys, numpy as np\n"
        "from boostplugins import BARTRegressor\n"
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
    out, _ = child.communicate(timeout=120)  # generous: a machine may be busy
    assert out == "stopped\n"
    assert child.returncode == 0


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
