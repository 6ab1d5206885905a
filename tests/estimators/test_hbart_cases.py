"""What users of Bayesian trees reported elsewhere: memory, draws, chains, weights, intervals (F)."""

from __future__ import annotations

import pickle
import resource
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from boostplugins import BARTClassifier, BARTRegressor, HBARTRegressor
from tests.estimators.bart_cases import FEW, REGRESSORS, SHORT, build, data, each, in_new_process, quiet

pytestmark = quiet


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
