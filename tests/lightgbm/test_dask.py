"""The chain on a local Dask cluster of two workers."""

from __future__ import annotations

import math
import socket
import threading

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest

from boostplugins import BernoulliMask, CosineCycle, VirtualEnsemble
from boostplugins.lightgbm import CyclicalSGLB
from boostplugins.lightgbm.network import first_row
from boostplugins.losses import Softmax, SquaredError

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.slow,
    # LightGBM warns of its own settings (n_jobs), and of every port that it tries.
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def in_time(function, seconds=60):
    """Run in a thread: a fit that hangs fails the test instead of the whole run."""
    outcome = {}

    def run():
        try:
            outcome["value"] = function()
        except BaseException as error:
            outcome["error"] = error

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), f"no result within {seconds} s"
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]


def rows(n=400):
    rng = np.random.default_rng(0)
    # Few values, all of them in every part: LightGBM's machines find bins from their own rows alone, so
    # that only then its distributed training has the splits of a single machine.
    X = rng.integers(0, 6, size=(n, 3)).astype(float)
    return X, 50 + X[:, 0] + np.sin(X[:, 1]) + 0.1 * rng.normal(size=n)


def settings(chain, **options):
    return {
        "n_estimators": 12,
        "verbosity": -1,
        "min_child_samples": 5,
        "num_leaves": 8,
        "min_data_in_bin": 1,
    } | (chain.lightgbm_params() | options)


@pytest.mark.parametrize("shrink", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
def test_noiseless_chain_equals_the_one_of_a_single_machine(client, shrink, weighted):
    X, y = rows()
    weight = np.tile([1.0, 2.0], 200) if weighted else None
    chain = CyclicalSGLB(SquaredError(0.01), CosineCycle(length=6), temperature=math.inf, shrink=shrink)
    model = lgb.DaskLGBMRegressor(client=client, **settings(chain))
    data = [da.from_array(X, chunks=(100, 3)), da.from_array(y, chunks=100)]
    if weighted:
        data.append(da.from_array(weight, chunks=100))
    in_time(lambda: chain.fit_dask(model, *data))
    alone = lgb.LGBMRegressor(objective=chain, n_jobs=1, **settings(chain))
    alone.fit(X, y, sample_weight=weight, callbacks=[chain.callback()])
    np.testing.assert_allclose(model.predict(data[0]).compute(), alone.predict(X), atol=1e-6)
    members = VirtualEnsemble.from_lightgbm(model).members(X)
    assert members.shape == (400, 2, 1)


def test_noise_and_masks_have_rows_of_their_own_on_every_machine(client):
    # Two machines with the same rows: were their draws the same, the trees could not tell the noise
    # from the data, and leaf means of 200 rows would vary as those of 100 (ratio 2; of 60 draws each,
    # a ratio below 0.7 comes by chance once in 100 runs, below the asserted 0.5 never).
    X = np.tile([[0.0], [1.0]], (50, 1))
    y = np.zeros(100)
    chain = CyclicalSGLB(SquaredError(1.0), mask=BernoulliMask(0.5), random_state=3)
    model = lgb.DaskLGBMRegressor(
        client=client, **settings(chain, n_estimators=60, num_leaves=2, learning_rate=1.0)
    )
    both = da.from_array(np.concatenate([X, X]), chunks=(100, 1))
    in_time(lambda: chain.fit_dask(model, both, da.from_array(np.concatenate([y, y]), chunks=100)))
    from boostplugins.lightgbm.reader import LightGBMReader

    states = LightGBMReader(model).states(X[:2], np.arange(1, 61))[:, :, 0]
    # With learning rate 1 each state is the mean of the noise of 100 rows, of variance 2 each.
    assert 0.5 < states.var() / (2.0 / 100) < 1.6


def test_b12_empty_and_one_class_parts(client):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    y = np.concatenate([np.ones(20), np.tile([0.0, 1.0, 2.0, 1.0], 5)])
    data = da.from_array(X, chunks=((20, 0, 20), (2,))), da.from_array(y, chunks=((20, 0, 20),))
    chain = CyclicalSGLB(Softmax(3))
    options = settings(chain, min_child_samples=2)
    model = in_time(lambda: chain.fit_dask(lgb.DaskLGBMRegressor(client=client, **options), *data))
    description = VirtualEnsemble.from_lightgbm(model)
    assert description.predict_proba(X).shape == (40, 3)
    np.testing.assert_allclose(model.objective.start, chain.loss.start(y))  # global, not a machine's
    classifier = in_time(
        lambda: chain.fit_dask(lgb.DaskLGBMClassifier(client=client, **options), data[0], data[1].astype(int))
    )
    assert list(classifier.classes_) == [0, 1, 2]


def test_frames_with_empty_parts(client):
    import dask.dataframe as frames

    X, y = rows(200)
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    parts = frames.from_pandas(table, npartitions=4)
    parts = frames.concat([parts, parts[parts.a > 99]])
    chain = CyclicalSGLB(SquaredError(0.01), temperature=math.inf)
    model = lgb.DaskLGBMRegressor(client=client, **settings(chain))
    in_time(lambda: chain.fit_dask(model, parts[["a", "b", "c"]], parts["y"]))
    predicted = model.predict(parts[["a", "b", "c"]]).compute()
    assert np.corrcoef(predicted, y)[0, 1] > 0.95


def test_scoring_by_parts(client):
    X, y = rows()
    chain = CyclicalSGLB(SquaredError(0.01), CosineCycle(length=4))
    model = lgb.LGBMRegressor(objective=chain, n_jobs=1, **settings(chain))
    ensemble = VirtualEnsemble.from_lightgbm(model.fit(X, y, callbacks=[chain.callback()]))
    parts = da.from_array(X, chunks=(150, 3))
    found = parts.map_blocks(lambda part: ensemble.uncertainty(part).knowledge, drop_axis=1, dtype=float)
    np.testing.assert_allclose(in_time(found.compute), ensemble.uncertainty(X).knowledge)


def test_a_chain_that_is_not_settled_is_refused(client):
    X, y = rows()
    chain = CyclicalSGLB(SquaredError(0.01))
    model = lgb.DaskLGBMRegressor(objective=chain, client=client, **settings(chain))
    data = da.from_array(X, chunks=(100, 3)), da.from_array(y, chunks=100)
    with pytest.raises(ValueError, match=r"chain\.distributed"):
        in_time(lambda: model.fit(*data, callbacks=[chain.callback()]))
    with pytest.raises(ValueError, match="noise_variance must be given"):
        CyclicalSGLB("regression").distributed(data[1])


def test_row_ranges_of_machines():
    machines = "10.0.0.1:100,10.0.0.2:200"
    assert first_row({}) == (0, False)
    assert first_row({"machines": machines, "num_machines": 2, "local_listen_port": 100}) == (0, True)
    assert first_row({"machines": machines, "num_machines": 2, "local_listen_port": 200}) == (2**40, True)
    mine = f"10.9.8.7:100,{socket.gethostname()}:100"
    assert first_row({"machines": mine, "num_machines": 2, "local_listen_port": 100}) == (2**40, True)
    with pytest.raises(ValueError, match="once"):
        first_row({"machines": "10.9.8.7:1,10.9.8.6:1", "num_machines": 2, "local_listen_port": 1})
