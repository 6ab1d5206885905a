"""Every state of a chain on LightGBM, recomputed leaf by leaf."""

from __future__ import annotations

import math
import pickle

import lightgbm as lgb
import numpy as np
import pytest

from boostplugins import BernoulliMask, Constant, CosineCycle, NoMask, VirtualEnsemble
from boostplugins.lightgbm import CyclicalSGLB
from boostplugins.lightgbm.reader import LightGBMReader
from boostplugins.losses import Logistic, NormalLikelihood, Softmax, SquaredError
from tests.naive.lightgbm_chain import states

N, STEPS = 240, 24


def problem(loss, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 4))
    signal = X[:, 0] + np.sin(2 * X[:, 1])
    if isinstance(loss, Softmax):
        y = np.digitize(signal + 0.5 * rng.normal(size=N), [-0.7, 0.7])
    elif isinstance(loss, Logistic):
        y = (signal + 0.5 * rng.normal(size=N) > 0).astype(int)
    else:
        y = 50 + signal + 0.3 * rng.normal(size=N)
    # Labels and weights that float32, LightGBM's type, holds exactly.
    weight = rng.uniform(0.25, 3.0, size=N).astype(np.float32).astype(np.float64)
    return X, np.asarray(y, dtype=np.float32).astype(np.float64), weight


def train(chain, X, y, weight=None, n_steps=STEPS, **options):
    params = {"objective": chain.objective, "verbosity": -1, "num_threads": 1, "num_leaves": 8}
    params |= {"min_data_in_leaf": 5, "learning_rate": 0.3} | chain.lightgbm_params() | options
    return lgb.train(params, lgb.Dataset(X, y, weight=weight), n_steps, callbacks=[chain.callback()])


LOSSES = [SquaredError(noise_variance=0.1), Logistic(), Softmax(3), NormalLikelihood()]


@pytest.mark.parametrize("leaf_noise", ["shared", "independent"])
@pytest.mark.parametrize("shrink", [0.0, 0.4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_states_are_leaf_means(loss, weighted, shrink, leaf_noise):
    X, y, weight = problem(loss)
    chain = CyclicalSGLB(
        loss,
        schedule=CosineCycle(length=8, max_scale=3.0, min_scale=1.0, exploration=0.5),
        mask=BernoulliMask(keep=0.6, random_state=3),
        temperature=2.0,
        shrink=shrink,
        leaf_noise=leaf_noise,
        random_state=11,
    )
    step = 0.05 if isinstance(loss, NormalLikelihood) else 0.3  # larger ones carry log sigma far away
    booster = train(chain, X, y, weight if weighted else None, learning_rate=step)
    leaves = booster.predict(X, pred_leaf=True).reshape(N, STEPS, loss.n_outputs)
    w = weight if weighted else np.ones(N)
    read = LightGBMReader(booster).states(X, np.arange(1, STEPS + 1))
    for t, expected in enumerate(states(leaves, chain, loss.ready(y, w), y, w, step)):
        np.testing.assert_allclose(read[:, t], expected, rtol=1e-5, atol=3e-5)
    last = booster.predict(X, raw_score=True).reshape(N, -1)
    np.testing.assert_allclose(last, read[:, -1], rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES[:3], ids=lambda loss: loss.name)
def test_shrinking_to_the_start_with_quieter_structure(loss):
    X, y, weight = problem(loss)
    options = {"leaf_noise": "independent", "structure_noise": 0.3, "shrink_to": "start", "shrink": 0.4}
    chain = CyclicalSGLB(loss, temperature=2.0, **options)
    booster = train(chain, X, y, weight)
    leaves = booster.predict(X, pred_leaf=True).reshape(N, STEPS, loss.n_outputs)
    read = LightGBMReader(booster).states(X, np.arange(1, STEPS + 1))
    for t, expected in enumerate(states(leaves, chain, loss, y, weight, 0.3)):
        np.testing.assert_allclose(read[:, t], expected, rtol=1e-5, atol=3e-5)
    with pytest.raises(ValueError, match="structure_noise must be 1"):
        CyclicalSGLB(loss, structure_noise=0.3, leaf_noise="shared")


def test_the_first_tree_is_not_all_of_the_trees():
    # The recomputation above must fail for other draws, or it proves nothing.
    loss = SquaredError(noise_variance=0.1)
    X, y, _ = problem(loss)
    booster = train(CyclicalSGLB(loss, random_state=1), X, y)
    leaves = booster.predict(X, pred_leaf=True).reshape(N, STEPS, 1)
    read = LightGBMReader(booster).states(X, np.array([STEPS]))[:, 0]
    *_, other = states(leaves, CyclicalSGLB(loss, random_state=2), loss, y, np.ones(N), 0.3)
    assert np.abs(read - other).max() > 0.01


def test_loss_of_ones_own_takes_the_uncompiled_path():
    class Plain(SquaredError):
        kernel = None

    X, y, weight = problem(Plain(noise_variance=0.1))
    options = {"mask": BernoulliMask(0.5), "schedule": CosineCycle(length=8), "shrink": 0.1}
    own = train(CyclicalSGLB(Plain(noise_variance=0.1), **options), X, y, weight)
    compiled = train(CyclicalSGLB(SquaredError(noise_variance=0.1), **options), X, y, weight)
    np.testing.assert_allclose(own.predict(X), compiled.predict(X), rtol=1e-5)


def test_prior_function_is_seen_by_the_chain_and_added_by_the_reader():
    from boostplugins.priors import RandomPrior

    loss = Softmax(3)
    X, y, _ = problem(loss)
    prior = RandomPrior(scale=0.8, random_state=5).fit(X)
    chain = CyclicalSGLB(loss, schedule=CosineCycle(length=8), prior=prior)
    params = {"objective": chain, "verbosity": -1, "num_threads": 1, "learning_rate": 0.3, "num_leaves": 8}
    data = lgb.Dataset(X, y, free_raw_data=False)
    history = {}
    booster = lgb.train(
        params | chain.lightgbm_params(),
        data,
        STEPS,
        valid_sets=[data.create_valid(X[:50], y[:50])],
        feval=chain.metric(),
        callbacks=[chain.callback(), lgb.record_evaluation(history)],
    )
    leaves = booster.predict(X, pred_leaf=True).reshape(N, STEPS, 3)
    replay = states(leaves, chain, loss, y, np.ones(N), 0.3, lambda cycle: prior.values(cycle, X, 3))
    for t, expected in enumerate(replay):
        read = LightGBMReader(booster).states(X, np.array([t + 1]))[:, 0]
        np.testing.assert_allclose(read, expected, atol=3e-5)
    members = VirtualEnsemble.from_lightgbm(booster).members(X)
    np.testing.assert_allclose(members[:, -1], expected + prior.values(2, X, 3), atol=3e-5)
    score = loss.value(y[:50], members[:50, -1]).mean()
    np.testing.assert_allclose(history["valid_0"]["log_score"][-1], score, rtol=1e-6)


def test_prior_function_needs_rows():
    from boostplugins.priors import RandomPrior

    loss = SquaredError(noise_variance=0.1)
    X, y, _ = problem(loss)
    chain = CyclicalSGLB(loss, prior=RandomPrior(scale=0.8).fit(X))
    with pytest.raises(ValueError, match="free_raw_data=False"):
        train(chain, X, y)


@pytest.mark.parametrize("leaf_noise", ["shared", "independent"])
@pytest.mark.parametrize("shrink", [0.0, 0.5])
def test_metric_is_the_loss_of_the_state(shrink, leaf_noise):
    loss = Softmax(3)
    X, y, weight = problem(loss)
    chain = CyclicalSGLB(loss, shrink=shrink, leaf_noise=leaf_noise)
    data = lgb.Dataset(X[:200], y[:200], weight=weight[:200])
    held = data.create_valid(X[200:], y[200:], weight=weight[200:])
    history = {}
    params = {"objective": chain, "verbosity": -1, "num_threads": 1} | chain.lightgbm_params()
    booster = lgb.train(
        params,
        data,
        15,
        valid_sets=[data, held],
        valid_names=["train", "held"],
        feval=[chain.metric(), chain.metric(lambda y, raw, w: raw[:, 0].mean(), "first", maximize=True)],
        callbacks=[chain.callback(), lgb.record_evaluation(history)],
    )
    reader = LightGBMReader(booster)
    for name, rows in (("train", slice(0, 200)), ("held", slice(200, N))):
        read = reader.states(X[rows], np.arange(1, 16))
        expected = [np.average(loss.value(y[rows], read[:, t]), weights=weight[rows]) for t in range(15)]
        np.testing.assert_allclose(history[name]["log_score"], expected, rtol=1e-9)
        np.testing.assert_allclose(history[name]["first"], read[:, :, 0].mean(axis=0), rtol=1e-9)


def test_reloaded_text_knows_its_members(tmp_path):
    loss = SquaredError()
    X, y, _ = problem(loss)
    chain = CyclicalSGLB(loss, schedule=CosineCycle(length=6), shrink=0.3)
    booster = train(chain, X, y)
    members = VirtualEnsemble.from_lightgbm(booster).members(X)
    assert members.shape == (N, 4, 1)
    booster.save_model(tmp_path / "model.txt")
    for again in (
        tmp_path / "model.txt",
        str(tmp_path / "model.txt"),
        lgb.Booster(model_str=booster.model_to_string()),
        pickle.loads(pickle.dumps(booster)),
        lgb.Booster(model_str=lgb.Booster(model_file=tmp_path / "model.txt").model_to_string()),
    ):
        ensemble = VirtualEnsemble.from_lightgbm(again)
        np.testing.assert_array_equal(ensemble.members(X), members)
        assert ensemble.schedule == chain.schedule
        assert 0.05 < ensemble.loss.noise_variance < 0.5  # estimated; the truth is 0.09


@pytest.mark.parametrize("name", ["regression", "binary", "multiclass"])
def test_null_chain_is_the_plain_booster(name):
    loss = {"regression": SquaredError(1.0), "binary": Logistic(), "multiclass": Softmax(3)}[name]
    X, y, weight = problem(loss)
    chain = CyclicalSGLB(loss, schedule=Constant(), mask=NoMask(), temperature=math.inf, leaves="newton")
    common = {"verbosity": -1, "num_threads": 1, "num_leaves": 8, "min_data_in_leaf": 5, "learning_rate": 0.3}
    common["min_sum_hessian_in_leaf"] = 1e-3
    plain = common | {"objective": name}
    init = None
    if name == "multiclass":
        plain["num_class"] = 3
        # LightGBM starts classes at their log shares; ours are centred, which changes no probability.
        init = np.tile(loss.start(y, weight), (N, 1))
        plain["boost_from_average"] = False
    built_in = lgb.train(plain, lgb.Dataset(X, y, weight=weight, init_score=init), 20)
    expected = built_in.predict(X, raw_score=True)
    if init is not None:
        expected = expected + init
    booster = train(chain, X, y, weight, 20, **common)
    np.testing.assert_allclose(booster.predict(X, raw_score=True), expected, atol=1e-5)
