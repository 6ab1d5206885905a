"""Virtual ensembles: exact states, definitions, sizes (reports D01 to D12)."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from catboost import CatBoost, CatBoostRegressor, Pool
from scipy import stats
from scipy.sparse import csr_matrix
from sklearn.metrics import roc_auc_score

from boostplugins import RandomPrior, SGLBRegressor, VirtualEnsemble
from boostplugins.catboost import CyclicalSGLB
from boostplugins.losses import NormalLikelihood, SquaredError
from boostplugins.masks import BernoulliMask
from boostplugins.schedules import Constant, CosineCycle
from boostplugins.uncertainty import Uncertainty
from tests.naive.chain import leaf_values

QUIET = {"verbose": False, "allow_writing_files": False, "thread_count": 1}


def _train(loss, X, y, iterations=100, schedule=None, **options):
    chain = CyclicalSGLB(loss, schedule=schedule, **options)
    settings = QUIET | {"iterations": iterations, "depth": 4, "learning_rate": 0.1} | chain.catboost_params()
    model = CatBoost(dict(loss_function=chain, eval_metric=chain.metric(), **settings))
    return model.fit(chain.pool(X, y), callbacks=[chain.callback()]), chain


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    return X, X[:, 0] + 0.5 * rng.normal(size=200)


def _targets(name, y):
    return (
        (y > 0).astype(float) + ((y > 1) if name == "MultiClass" else 0)
        if name in ("Logloss", "MultiClass")
        else y
    )


@pytest.mark.parametrize("shrink", [0.0, 0.4])
@pytest.mark.parametrize("reload", [False, True])
def test_members_are_exact_states(shrink, reload, data, tmp_path):
    X, y = data
    schedule = CosineCycle(length=7, max_scale=4.0)
    model, chain = _train(
        SquaredError(1.0),
        X,
        y,
        iterations=30,
        schedule=schedule,
        noise="none",
        shrink=shrink,
        mask=BernoulliMask(0.5),
    )
    if reload:
        model.save_model(str(tmp_path / "m.cbm"))
        model = CatBoost().load_model(str(tmp_path / "m.cbm"))
    leaves = model.calc_leaf_indexes(Pool(X)).astype(int)
    step, rate = float(np.float32(0.1)), float(np.float32(shrink))
    states = [
        state
        for _, state in leaf_values(leaves, chain.loss, y, np.ones(200), schedule, chain.mask, step, rate)
    ]
    with pytest.warns(UserWarning, match="trained without Langevin noise"):
        ensemble = VirtualEnsemble.from_catboost(model)
    assert ensemble.ends.tolist() == [7, 14, 21, 28]
    np.testing.assert_allclose(
        ensemble.members(X), np.stack([states[end - 1] for end in ensemble.ends], axis=1), atol=1e-9
    )


def test_a_model_that_was_cut_afterwards_has_the_states_that_are_left(data):
    X, y = data
    schedule = CosineCycle(length=5)
    model, _ = _train(SquaredError(1.0), X, y, iterations=20, schedule=schedule, shrink=0.4)
    states = VirtualEnsemble.from_catboost(model).members(X)
    model.shrink(12)
    cut = VirtualEnsemble.from_catboost(model)
    assert cut.ends.tolist() == [5, 10]
    np.testing.assert_allclose(cut.members(X), states[:, :2], rtol=1e-12)


def test_columns_of_a_frame_are_found_by_name(data):
    """Prior functions as well as trees, which CatBoost finds by name itself."""
    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = _trained_on_a_pool(frame, y)
    ensemble = VirtualEnsemble.from_catboost(model)
    other = frame[["c", "a", "b"]]
    np.testing.assert_array_equal(ensemble.members(other), ensemble.members(frame))
    np.testing.assert_array_equal(ensemble.members(X), ensemble.members(frame))
    pool = CyclicalSGLB(SquaredError(1.0)).pool(other, y)
    np.testing.assert_array_equal(ensemble.members(pool), ensemble.members(frame))


def test_prior_functions_on_sparse_rows(data):
    X, y = data
    ensembles = [VirtualEnsemble.from_catboost(_trained_on_a_pool(rows, y)) for rows in (csr_matrix(X), X)]
    np.testing.assert_array_equal(ensembles[0].members(csr_matrix(X)), ensembles[1].members(X))


def _trained_on_a_pool(rows, y):
    schedule, prior = CosineCycle(length=5), RandomPrior(scale=2.0)
    return _train(SquaredError(1.0), rows, y, iterations=10, schedule=schedule, prior=prior)[0]


def test_embeddings_are_read(data):
    X, y = data
    frame = pd.DataFrame({"a": X[:, 0], "e": list(X)})
    chain = CyclicalSGLB(SquaredError(1.0), schedule=CosineCycle(length=5))
    settings = QUIET | {"iterations": 10, "embedding_features": ["e"]} | chain.catboost_params()
    model = CatBoostRegressor(loss_function=chain, eval_metric="RMSE", **settings)
    model.fit(frame, y, callbacks=[chain.callback()])
    ensemble = VirtualEnsemble.from_catboost(model)
    np.testing.assert_allclose(ensemble.members(frame)[:, -1, 0], model.predict(frame))


def test_agrees_with_catboosts_own_reader():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 4))
    y = X[:, 0] + rng.normal(size=500)
    model = CatBoostRegressor(
        loss_function="RMSEWithUncertainty",
        posterior_sampling=True,
        leaf_estimation_method="Gradient",
        iterations=200,
        learning_rate=0.1,
        **QUIET,
    ).fit(X, y)
    ours = VirtualEnsemble.from_catboost(model, n_members=10)
    theirs = model.virtual_ensembles_predict(X, prediction_type="VirtEnsembles", virtual_ensembles_count=10)
    np.testing.assert_allclose(ours.members(X)[..., 0], theirs[..., 0], atol=1e-5)
    total = model.virtual_ensembles_predict(X, prediction_type="TotalUncertainty", virtual_ensembles_count=10)
    u = ours.uncertainty(X)
    np.testing.assert_allclose(u.knowledge, total[:, 1], rtol=2e-3, atol=1e-9)
    np.testing.assert_allclose(u.data, total[:, 2], rtol=2e-3)


def test_d01_variance_units_and_coverage():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    truth = np.exp(0.5 * X[:, 1])
    y = X[:, 0] + truth * rng.normal(size=4000)
    chain = CyclicalSGLB(NormalLikelihood(), schedule=CosineCycle(length=15, max_scale=2.0), temperature=10.0)
    settings = {"iterations": 150, "learning_rate": 0.05, "grow_policy": "Depthwise", "min_data_in_leaf": 50}
    model = CatBoost(
        dict(loss_function=chain, eval_metric=chain.metric(), **(QUIET | settings | chain.catboost_params()))
    )
    model.fit(chain.pool(X[:3000], y[:3000]), callbacks=[chain.callback()])
    ensemble = VirtualEnsemble.from_catboost(model)
    u = ensemble.uncertainty(X[3000:])
    np.testing.assert_array_equal(u.total, u.knowledge + u.data)
    sd = np.sqrt(u.total)
    assert np.corrcoef(sd, truth[3000:])[0, 1] > 0.8
    assert 0.8 < sd.mean() / truth[3000:].mean() < 1.25
    inside = np.abs(y[3000:] - ensemble.predict(X[3000:])) < stats.norm.ppf(0.95) * sd
    assert abs(inside.mean() - 0.9) < 0.04


@pytest.mark.parametrize(("trees", "expected"), [(1, 1), (2, 1), (5, 3), (19, 10), (20, 10)])
def test_d02_few_trees(trees, expected, data):
    X, y = data
    model, _ = _train(SquaredError(1.0), X, y, iterations=trees)
    if expected < 10:
        with pytest.warns(UserWarning, match=f"has {expected} members, 10 were wanted"):
            ensemble = VirtualEnsemble.from_catboost(model, n_members=10)
    else:
        ensemble = VirtualEnsemble.from_catboost(model, n_members=10)
    assert len(ensemble.ends) == expected
    assert np.isfinite(ensemble.uncertainty(X).knowledge).all()


def test_d02_unfinished_cycle_and_huge_counts(data):
    X, y = data
    model, _ = _train(SquaredError(1.0), X, y, iterations=20, schedule=CosineCycle(length=50))
    with pytest.warns(UserWarning, match="has not finished a cycle"):
        ensemble = VirtualEnsemble.from_catboost(model)
    assert (ensemble.uncertainty(X).knowledge == 0).all()
    model, _ = _train(SquaredError(1.0), X, y, iterations=20, schedule=CosineCycle(length=5))
    with pytest.warns(UserWarning, match="has 4 members, 1000000 were wanted"):
        VirtualEnsemble.from_catboost(model, n_members=10**6)
    with pytest.raises(ValueError, match="n_members must be an integer >= 1, got 0"):
        VirtualEnsemble.from_catboost(model, n_members=0)


@pytest.mark.parametrize("name", ["RMSE", "Logloss", "MultiClass", "RMSEWithUncertainty"])
def test_d06_every_loss(name, data):
    X, y = data
    target = _targets(name, y)
    model, _ = _train(
        SquaredError(0.25) if name == "RMSE" else name, X, target, schedule=CosineCycle(length=10)
    )
    ensemble = VirtualEnsemble.from_catboost(model)
    u, members = ensemble.uncertainty(X), ensemble.members(X)
    assert members.shape == (200, 10, {"MultiClass": 3, "RMSEWithUncertainty": 2}.get(name, 1))
    for part in (u.knowledge, u.data, u.total):
        assert part.shape == (200,)
        assert np.isfinite(part).all()
    assert (u.knowledge >= 0).all()
    np.testing.assert_allclose(u.total, u.knowledge + u.data, atol=1e-12)
    if name in ("RMSE", "RMSEWithUncertainty"):
        by_hand = members[..., 0].var(axis=1)
        assert ensemble.predict(X).shape == (200,)
    else:
        raw = np.concatenate([np.zeros_like(members), members], axis=2) if name == "Logloss" else members
        p = np.exp(raw - raw.max(axis=2, keepdims=True))
        p /= p.sum(axis=2, keepdims=True)
        mean = p.mean(axis=1)
        by_hand = -(mean * np.log(mean)).sum(axis=1) + (p * np.log(p)).sum(axis=2).mean(axis=1)
        np.testing.assert_allclose(ensemble.predict_proba(X), mean, atol=1e-12)
        assert (ensemble.predict(X) == target).mean() > 0.7
    np.testing.assert_allclose(u.knowledge, by_hand, atol=1e-10)


def test_d09_plain_models_warn_once_and_sampled_ones_do_not(data, tmp_path):
    X, y = data
    plain = CatBoostRegressor(iterations=30, **QUIET).fit(X, y)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert not VirtualEnsemble.from_catboost(plain).sampled
    assert [str(w.message)[:40] for w in said] == ["the model was trained without Langevin n"]
    model, _ = _train(SquaredError(1.0), X, y, iterations=40)
    model.save_model(str(tmp_path / "m.cbm"))
    assert VirtualEnsemble.from_catboost(CatBoost().load_model(str(tmp_path / "m.cbm"))).sampled


def test_other_models_are_refused_clearly(data):
    X, y = data
    with pytest.raises(TypeError, match="model must be a CatBoost model, got str"):
        VirtualEnsemble.from_catboost("model.cbm")
    with pytest.raises(ValueError, match="model must be fitted"):
        VirtualEnsemble.from_catboost(CatBoostRegressor())
    mae = CatBoostRegressor(loss_function="MAE", iterations=5, **QUIET).fit(X, y)
    with pytest.raises(ValueError, match=r"\(loss MAE\) does not say which chain it is"):
        VirtualEnsemble.from_catboost(mae)


def test_a_chain_without_metadata_can_be_named(data):
    X, y = data
    chain = CyclicalSGLB(SquaredError(1.0), schedule=CosineCycle(length=5))
    settings = {key: value for key, value in chain.catboost_params().items() if key != "metadata"}
    model = CatBoostRegressor(loss_function=chain, eval_metric="RMSE", iterations=20, **(QUIET | settings))
    model.fit(X, y, callbacks=[chain.callback()])
    with pytest.raises(ValueError, match="pass chain=loss"):
        VirtualEnsemble.from_catboost(model)
    assert VirtualEnsemble.from_catboost(model, chain=chain).ends.tolist() == [5, 10, 15, 20]


def test_the_description_is_plain_json(data):
    X, y = data
    model, _ = _train(SquaredError(1.0), X, y, iterations=10)
    told = json.loads(dict(model.get_metadata())["boostplugins"])
    assert told["format"] == 1
    assert told["noise"] == "objective"


def _shifted(kind, rng):
    if kind == "shift":
        X = rng.normal(size=(500, 5))
        far = rng.normal(size=(500, 5)) + 4
        near = rng.normal(size=(500, 5))
    elif kind == "hole":
        X = rng.uniform(-1, 1, size=(2000, 2))
        near = rng.uniform(-1, 1, size=(2000, 2))
        X, near = X[np.abs(X).max(axis=1) > 0.5], near[np.abs(near).max(axis=1) > 0.5]
        far = rng.uniform(-0.4, 0.4, size=(500, 2))
    else:
        X = np.vstack([rng.normal(size=(1000, 2)), rng.normal(size=(15, 2)) + 6])
        near, far = rng.normal(size=(500, 2)), rng.normal(size=(200, 2)) + 6
    return X, X[:, 0] + np.sin(3 * X[:, 1]) + 0.3 * rng.normal(size=len(X)), near, far


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["shift", "hole", "cluster"])
def test_d12_knowledge_rises_off_the_data_at_least_as_much_as_catboosts(kind):
    """Mean AUC over ten data sets; one fit alone is noisy."""
    ours, theirs = [], []
    for seed in range(10):
        X, y, near, far = _shifted(kind, np.random.default_rng(seed))
        label, both = np.r_[np.zeros(len(near)), np.ones(len(far))], np.vstack([near, far])
        chain = SGLBRegressor(n_estimators=200, depth=4, prior=RandomPrior(), random_state=seed, n_jobs=1)
        ours.append(roc_auc_score(label, chain.fit(X, y).predict_uncertainty(both).knowledge))
        own = CatBoostRegressor(
            loss_function="RMSEWithUncertainty",
            posterior_sampling=True,
            iterations=200,
            random_seed=seed,
            **QUIET,
        ).fit(X, y)
        known = own.virtual_ensembles_predict(
            both, prediction_type="TotalUncertainty", virtual_ensembles_count=10
        )
        theirs.append(roc_auc_score(label, known[:, 1]))
    assert np.mean(ours) >= np.mean(theirs) - 0.05
    assert np.mean(ours) > 0.9


def test_members_carry_the_prior_function_of_their_cycle(data, tmp_path):
    """With a squared error and plain leaves: chain plus prior follow the target, cycle by cycle."""
    X, y = data
    prior = RandomPrior(scale=2.0, random_state=3).fit(X)
    schedule = CosineCycle(length=10, max_scale=2.0)
    model, _ = _train(SquaredError(1.0), X, y, iterations=30, schedule=schedule, noise="none", prior=prior)
    leaves = model.calc_leaf_indexes(Pool(X)).astype(int)
    step, state = float(np.float32(0.1)), np.full(200, y.mean())
    expected = []
    for t in range(1, 30):
        offset = prior.values(t // 10, X)[:, 0]
        direction = schedule.scale(t) * (y - state - offset)
        total = np.bincount(leaves[:, t], direction, minlength=16)
        size = np.maximum(np.bincount(leaves[:, t], minlength=16), 1)
        state = state + step * (total / size)[leaves[:, t]]
        if (t + 1) % 10 == 0:
            expected.append(state + offset)
    model.save_model(str(tmp_path / "m.cbm"))
    for read in (model, CatBoost().load_model(str(tmp_path / "m.cbm"))):
        with pytest.warns(UserWarning, match="without Langevin noise"):
            members = VirtualEnsemble.from_catboost(read).members(X)[..., 0]
        np.testing.assert_allclose(members, np.stack(expected, axis=1), atol=1e-9)


def test_an_unfitted_prior_is_fitted_to_the_pool(data):
    X, y = data
    fitted = RandomPrior(random_state=3).fit(X).in_units([1.0])
    found = []
    for prior in (RandomPrior(random_state=3), fitted):
        model, _ = _train(
            SquaredError(1.0), X, y, iterations=20, schedule=CosineCycle(length=10), prior=prior
        )
        found.append(VirtualEnsemble.from_catboost(model).members(X + 3.0))
    np.testing.assert_array_equal(found[0], found[1])


def test_the_prior_needs_a_pool(data):
    X, y = data
    chain = CyclicalSGLB(SquaredError(1.0), prior=RandomPrior().fit(X))
    model = CatBoostRegressor(loss_function=chain, eval_metric="RMSE", **(QUIET | chain.catboost_params()))
    with pytest.raises(ValueError, match="must be trained on loss.pool"):
        model.fit(X, y, callbacks=[chain.callback()])


def test_where_there_are_no_data_the_spread_is_the_priors():
    """Law: far away, the members' variance over cycles equals the prior's, and more of the chain's own."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=300)
    prior = RandomPrior(scale=5.0, random_state=1).fit(X)
    model, _ = _train(SquaredError(0.01), X, y, iterations=400, schedule=CosineCycle(length=4), prior=prior)
    far = X[:50] + 40.0
    ensemble = VirtualEnsemble.from_catboost(model)
    # 100 members and 50 rows that hang together: the mean variance has a relative sd of some 15 %.
    ratio = ensemble.members(far)[..., 0].var(axis=1).mean() / 25.0
    assert 0.5 < ratio < 1.8
    assert ensemble.members(X)[..., 0].var(axis=1).mean() < 0.1 * 25.0


def test_schedules_without_cycles_read_the_second_half(data):
    X, y = data
    model, _ = _train(SquaredError(1.0), X, y, iterations=60, schedule=Constant())
    ensemble = VirtualEnsemble.from_catboost(model, n_members=5)
    assert ensemble.ends.tolist() == [36, 42, 48, 54, 60]
    assert isinstance(ensemble.uncertainty(X), Uncertainty)
