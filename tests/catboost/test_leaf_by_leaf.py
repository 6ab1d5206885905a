"""Every leaf of every tree, recomputed in numpy from the algorithm."""

import numpy as np
import pytest
from catboost import CatBoost, CatBoostClassifier, CatBoostRegressor, Pool

from boostplugins.catboost import CyclicalSGLB
from boostplugins.losses import Logistic, NormalLikelihood, Softmax, SquaredError
from boostplugins.masks import BernoulliMask
from boostplugins.schedules import CosineCycle
from tests.naive.chain import leaf_values

EPS, SHRINK = 0.1, 0.3
QUIET = {"iterations": 12, "learning_rate": EPS, "depth": 4, "verbose": False, "allow_writing_files": False}


def _data(n, k=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    if k == 1:
        y = 50 + X[:, 0] + rng.normal(size=n)
    else:
        y = ((X[:, 0] > 0).astype(int) + (X[:, 1] + rng.normal(size=n) > 0.5)).astype(float)
    return X, y, rng.integers(1, 4, n).astype(float)


def _chain(loss, **options):
    return CyclicalSGLB(
        loss,
        schedule=CosineCycle(length=5, max_scale=4.0, exploration=0.6),
        mask=BernoulliMask(keep=0.6, random_state=3),
        noise="none",
        shrink=SHRINK,
        **options,
    )


def _assert_leaves(model, pool, y, weight, chain, loss):
    step, shrink = float(np.float32(EPS)), float(np.float32(SHRINK))
    leaves = model.calc_leaf_indexes(pool).astype(int)
    counts = model.get_tree_leaf_counts().astype(int)
    ends = np.cumsum(counts) * loss.n_outputs
    replay = leaf_values(leaves, loss, y, weight, chain.schedule, chain.mask, step, shrink)
    total = len(counts)
    for t, (expected, _) in enumerate(replay):
        stored = model.get_leaf_values()[ends[t] - counts[t] * loss.n_outputs : ends[t]]
        stored = stored.reshape(counts[t], loss.n_outputs) / (1 - shrink * step) ** (total - 1 - t)
        filled = np.zeros_like(stored)
        filled[: len(expected)] = expected
        np.testing.assert_allclose(stored, filled, atol=1e-9 * max(1.0, np.abs(filled).max()))


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("n", [50, 499, 500, 501, 1001, 5000, 12000])
def test_one_output_as_called(n, threads):
    X, y, weight = _data(n)
    chain = _chain(SquaredError(1.0))
    model = CatBoostRegressor(
        loss_function=chain, eval_metric="RMSE", **QUIET, **chain.catboost_params(thread_count=threads)
    )
    model.fit(X, y, sample_weight=weight, callbacks=[chain.callback()])
    _assert_leaves(model, Pool(X), y.astype(np.float32).astype(float), weight, chain, chain.loss)


@pytest.mark.parametrize(
    ("policy", "boosting"),  # CatBoost has ordered boosting for symmetric trees only
    [
        ("SymmetricTree", "Plain"),
        ("SymmetricTree", "Ordered"),
        ("Depthwise", "Plain"),
        ("Lossguide", "Plain"),
    ],
)
@pytest.mark.parametrize("categories", [False, True])
@pytest.mark.parametrize(("n", "threads"), [(50, 1), (1001, 2), (5000, 4)])
def test_one_output_on_a_chains_pool(n, threads, boosting, categories, policy):
    X, y, weight = _data(n)
    X = X.astype(object)
    options = {}
    if categories:
        X[:, 3] = np.random.default_rng(1).integers(0, 30, n).astype(str)
        options = {"cat_features": [3]}
    chain = _chain(SquaredError(1.0))
    pool = chain.pool(X, y, sample_weight=weight, **options)
    params = chain.catboost_params(
        thread_count=threads, boosting_type=boosting, has_time=False, grow_policy=policy
    )
    if policy != "SymmetricTree":
        # With target statistics in other trees a training row's own leaf (by the statistic of the rows
        # before it) is not the one that prediction finds; built-in losses show the same.
        params["one_hot_max_size"] = 40
    model = CatBoost(dict(loss_function=chain, eval_metric="RMSE", **QUIET, **params))
    model.fit(pool, callbacks=[chain.callback()])
    _assert_leaves(model, pool, y, weight, chain, chain.loss)


@pytest.mark.parametrize("categories", [False, True])
def test_categories_keep_their_order_as_called(categories):
    X, y, weight = _data(2000)
    X = X.astype(object)
    X[:, 3] = np.random.default_rng(1).integers(0, 30, 2000).astype(str)
    y = (y > 50).astype(float)
    chain = _chain(Logistic())
    model = CatBoostClassifier(
        loss_function=chain, eval_metric="Logloss", cat_features=[3], **QUIET, **chain.catboost_params()
    )
    model.fit(X, y, sample_weight=weight, callbacks=[chain.callback()])
    _assert_leaves(model, Pool(X, cat_features=[3]), y, weight, chain, chain.loss)


@pytest.mark.parametrize("n", [50, 1001, 5000])
def test_classes_as_called(n):
    X, y, weight = _data(n, k=3)
    chain = _chain("MultiClass")
    model = CatBoostClassifier(
        loss_function=chain, eval_metric="MultiClass", **QUIET, **chain.catboost_params()
    )
    model.fit(X, y, sample_weight=weight, callbacks=[chain.callback()])
    _assert_leaves(model, Pool(X), y, weight, chain, Softmax(3))


@pytest.mark.parametrize(
    ("n", "threads", "boosting"), [(50, 1, "Plain"), (1001, 4, "Plain"), (1500, 2, "Ordered")]
)
@pytest.mark.parametrize("loss", [Softmax(3), NormalLikelihood()], ids=lambda loss: loss.name)
def test_several_outputs_on_a_chains_pool(n, threads, boosting, loss):
    X, y, weight = _data(n, k=3 if loss.classification else 1)
    chain = _chain(loss)
    pool = chain.pool(X, y, sample_weight=weight)
    params = chain.catboost_params(thread_count=threads, boosting_type=boosting)
    model = CatBoost(dict(loss_function=chain, eval_metric=chain.metric(), **QUIET, **params))
    model.fit(pool, callbacks=[chain.callback()])
    _assert_leaves(model, Pool(X), y, weight, chain, loss.ready(y, weight))


BUILT_IN = {
    "leaf_estimation_method": "Gradient",
    "leaf_estimation_iterations": 1,
    "l2_leaf_reg": 0.0,
    "bootstrap_type": "No",
    "random_strength": 0.0,
    "boosting_type": "Plain",
    "has_time": True,
}


@pytest.mark.parametrize("name", ["RMSE", "Logloss", "MultiClass", "RMSEWithUncertainty"])
def test_null_chain_equals_the_built_in_loss(name):
    """Same start, no noise: the chain's first tree is the start, the others are CatBoost's own."""
    X, y, weight = _data(3000, k=1 if "RMSE" in name else 3)
    y = (y > 0).astype(float) if name == "Logloss" else y
    loss = {"RMSE": SquaredError(1.0), "MultiClass": Softmax(3)}.get(name, name)
    chain = CyclicalSGLB(loss, noise="none")
    pool = chain.pool(X, y, sample_weight=weight)
    ours = CatBoost(dict(loss_function=chain, eval_metric=chain.metric(), **QUIET, **chain.catboost_params()))
    ours.fit(pool, callbacks=[chain.callback()])
    start = np.tile(chain.loss.start(y, weight), (len(y), 1))
    plain = CatBoost(dict(loss_function=name, **(QUIET | {"iterations": 11}), **BUILT_IN))
    if name == "RMSEWithUncertainty":
        plain.fit(Pool(X, y, weight=weight))
        expected = plain.predict(X, prediction_type="RawFormulaVal")
    else:
        base = start[:, 0] if start.shape[1] == 1 else start
        plain.fit(Pool(X, y, weight=weight, baseline=base))
        expected = plain.predict(Pool(X, baseline=base), prediction_type="RawFormulaVal")
    np.testing.assert_allclose(ours.predict(X, prediction_type="RawFormulaVal"), expected, atol=1e-6)
