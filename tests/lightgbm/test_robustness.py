"""The LightGBM chain under contradictory settings, odd inputs, threads and files."""

from __future__ import annotations

import math
import threading

import lightgbm as lgb
import numpy as np
import pytest
from scipy.sparse import csr_matrix

from boostplugins import BernoulliMask, CosineCycle, SGLBRegressor, VirtualEnsemble
from boostplugins.lightgbm import CyclicalSGLB, settings
from boostplugins.lightgbm.description import read_description
from boostplugins.losses import Logistic, Softmax, SquaredError
from tests.lightgbm.common import QUIET, plain, regression, train


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"boosting_type": "dart"}, "rewrites earlier trees"),
        ({"reg_lambda": 1.0, "lambda_l2": 1.0}, "lambda_l2 must be 0"),
        ({"lambda_l1": 0.5}, "lambda_l1 must be 0"),
        ({"linear_tree": True}, "linear_tree must be off"),
        ({"path_smooth": 1.0}, "path_smooth must be 0"),
        ({"max_delta_step": 0.1}, "max_delta_step must be 0"),
        ({"use_quantized_grad": True}, "use_quantized_grad must be off"),
        ({"num_class": 3}, "num_class must be 1"),
        ({"mc": [1, 0, 0, 0, 0]}, "monotone_constraints must be empty"),
        ({"scale_pos_weight": 5.0}, "scale_pos_weight must be 1"),
        ({"unbalance": True}, "is_unbalance must be off"),
    ],
)
def test_contradictory_settings_are_one_error_before_training(given, message):
    X, y = regression(60)
    with pytest.raises(ValueError, match=message):
        train(CyclicalSGLB(SquaredError(1.0)), X, y, **given)


def test_chains_that_cannot_be_kept_exact_are_refused():
    X, y = regression(60)
    with pytest.raises(ValueError, match=r"shrink \* learning_rate \* iterations must be at most 45"):
        train(CyclicalSGLB(SquaredError(1.0), shrink=5.0), X, y, 200)
    with pytest.raises(ValueError, match=r"shrink \* learning_rate must be < 1"):
        train(CyclicalSGLB(SquaredError(1.0), shrink=10.0), X, y, 2)
    chain = CyclicalSGLB(SquaredError(1.0), shrink=0.1)
    data = lgb.Dataset(X, y, init_score=np.ones(60))
    with pytest.raises(ValueError, match="init_score cannot go with shrink"):
        lgb.train({"objective": chain} | QUIET, data, 3, callbacks=[chain.callback()])
    chain = CyclicalSGLB(SquaredError(1.0))
    decay = lgb.reset_parameter(learning_rate=lambda t: 0.1 * 0.9**t)
    with pytest.raises(ValueError, match="learning_rate must stay"):
        lgb.train({"objective": chain} | QUIET, lgb.Dataset(X, y), 3, callbacks=[chain.callback(), decay])
    penalty = lgb.reset_parameter(lambda_l2=lambda t: float(t))
    with pytest.raises(ValueError, match=r"lambda_l2 must be 0: .*, got 1\.0"):
        lgb.train({"objective": chain} | QUIET, lgb.Dataset(X, y), 3, callbacks=[chain.callback(), penalty])
    data = lgb.Dataset(X, y, params={"linear_tree": True})
    with pytest.raises(ValueError, match="linear_tree must be off"):
        lgb.train({"objective": chain} | QUIET, data, 3, callbacks=[chain.callback()])
    with pytest.raises(ValueError, match="labels of the logistic loss"):
        train(CyclicalSGLB("binary"), X, y)
    with pytest.raises(ValueError, match="must go without noise"):
        CyclicalSGLB("binary", leaves="newton")


@pytest.mark.parametrize("name", [*settings._ALIASES, *(rule[0] for rule in settings._RULES), "cat_l2"])
def test_every_name_of_a_setting_is_known(name):
    """LightGBM itself says which there are."""
    known = {name, *settings._ALIASES.get(name, ())}
    assert known == set(lgb.basic._ConfigAliases.get(name))


def test_only_a_chain_of_the_same_kind_is_gone_on_with():
    X, y = regression(100)
    first = train(CyclicalSGLB(SquaredError(0.1), CosineCycle(length=5)), X, y, 10)
    foreign = lgb.train({"objective": "regression"} | QUIET, lgb.Dataset(X, y), 3)
    for earlier, loss, length, message in (
        (first, SquaredError(0.1), 7, "the same schedule, .*'length': 7.*, got .*'length': 5"),
        (first, Logistic(), 5, "the same loss, logistic, got squared_error"),
        (foreign, SquaredError(0.1), 5, "does not say which; .* init_score=model.predict"),
    ):
        chain = CyclicalSGLB(loss, CosineCycle(length=length))
        params = {"objective": chain} | QUIET | chain.lightgbm_params()
        with pytest.raises(ValueError, match=message):
            lgb.train(params, lgb.Dataset(X, y > 0), 3, init_model=earlier, callbacks=[chain.callback()])


@pytest.mark.filterwarnings("ignore:LightGBM found nothing to split")
def test_skipped_iterations_of_an_earlier_model_are_remembered():
    X, y = np.arange(40.0)[:, None], np.repeat([0.0, 1.0], 20)
    chain = CyclicalSGLB(SquaredError(1.0), CosineCycle(length=5))
    # At the start the two halves are far apart; later what the noise leaves to gain is often too little.
    first = train(chain, X, y, 6, min_gain_to_split=20.0, min_data_in_leaf=3)
    params = {"objective": chain} | QUIET | chain.lightgbm_params(min_data_in_leaf=3)
    both = lgb.train(params, lgb.Dataset(X, y), 4, init_model=first, callbacks=[chain.callback()])
    skipped = read_description(first)["skipped"]
    assert skipped
    assert read_description(both)["skipped"] == skipped
    assert both.current_iteration() == 10 - len(skipped)
    assert VirtualEnsemble.from_lightgbm(both).ends.tolist() == [5, 10]


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan])
def test_bad_temperatures(temperature):
    with pytest.raises(ValueError, match="temperature"):
        CyclicalSGLB("regression", temperature=temperature)


def test_seeds_of_64_bits():
    X, y = regression(60)
    with pytest.raises(ValueError, match=r"below 2\*\*64"):
        CyclicalSGLB("regression", random_state=2**64)

    class Plain(SquaredError):
        kernel = None

    for seed in (2**63 + 5, 2**64 - 1):
        compiled, plain_ = (
            train(CyclicalSGLB(loss(1.0), random_state=seed), X, y, 3) for loss in (SquaredError, Plain)
        )
        np.testing.assert_allclose(compiled.predict(X), plain_.predict(X), rtol=1e-5)


def test_settings_of_the_wrong_kind():
    for options in ({"schedule": CosineCycle}, {"mask": 0.5}):
        with pytest.raises(TypeError, match="must be an instance"):
            CyclicalSGLB("regression", **options)
    with pytest.raises(ValueError, match="noise must be one of"):
        CyclicalSGLB("regression", noise="catboost")
    with pytest.raises(ValueError, match="maximize must be"):
        CyclicalSGLB("regression").metric(lambda y, raw, weight: 0.0)


def test_users_objects_are_left_as_they_were():
    X, y = regression()
    weight = np.ones(300)
    chain = CyclicalSGLB("regression", shrink=0.1)
    params = {"objective": chain} | QUIET | chain.lightgbm_params() | {"seed": 3}
    before, X0, y0 = dict(params), X.copy(), y.copy()
    data = lgb.Dataset(X, y, weight=weight, free_raw_data=False)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first = lgb.train(params, data, 5, callbacks=[chain.callback()])
    assert params == before
    assert data.get_init_score() is None
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    np.testing.assert_array_equal(X, X0)
    np.testing.assert_array_equal(y, y0)
    second = lgb.train(params, data, 5, callbacks=[chain.callback()])
    np.testing.assert_array_equal(first.predict(X), second.predict(X))


@pytest.mark.parametrize("leaf_noise", ["shared", "independent"])
def test_init_model_continues_the_chain(leaf_noise):
    X, y = regression()
    chain = CyclicalSGLB(SquaredError(0.1), CosineCycle(length=5), BernoulliMask(0.7), leaf_noise=leaf_noise)
    whole = train(chain, X, y, 20)
    half = train(chain, X, y, 10)
    params = {"objective": chain} | QUIET | chain.lightgbm_params()
    data = lgb.Dataset(X, y)
    options = {"valid_sets": [data.create_valid(X[:50], y[:50])], "feval": chain.metric()}
    both = lgb.train(params, data, 10, init_model=half, callbacks=[chain.callback()], **options)
    last = SquaredError(0.1).value(y[:50], whole.predict(X[:50])[:, None]).mean()
    assert both.best_score["valid_0"]["log_score"] == pytest.approx(last, rel=1e-4)
    np.testing.assert_allclose(both.predict(X), whole.predict(X), atol=1e-5)
    np.testing.assert_allclose(
        VirtualEnsemble.from_lightgbm(both).members(X),
        VirtualEnsemble.from_lightgbm(whole).members(X),
        atol=1e-5,
    )


def test_categorical_features_need_no_prior_of_lightgbms():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 12, size=(300, 2)).astype(float)
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=300)
    chain = plain(SquaredError(0.01))
    for options in ({"cat_l2": 10.0}, {"cat_l2": None}):
        params = {"objective": chain} | QUIET | chain.lightgbm_params(**options)
        params = {name: value for name, value in params.items() if value is not None}
        data = lgb.Dataset(X, y, categorical_feature=[0, 1])
        with pytest.raises(ValueError, match="cat_l2 must be 0"):
            lgb.train(params, data, 3, callbacks=[chain.callback()])
    data = lgb.Dataset(X, y, categorical_feature=[0, 1])
    params = {"objective": chain, "learning_rate": 1.0} | QUIET | chain.lightgbm_params(max_cat_to_onehot=1)
    booster = lgb.train(params, data, 1, callbacks=[chain.callback()])
    leaves = booster.predict(X, pred_leaf=True).ravel()
    for leaf in set(leaves):
        assert booster.get_leaf_output(0, leaf) == pytest.approx(y[leaves == leaf].mean(), abs=1e-5)


def test_threads_at_the_same_time_and_nested_fits():
    X, y = regression()
    chain = CyclicalSGLB(SquaredError(0.1), CosineCycle(length=5))
    data = lgb.Dataset(X, y)
    expected = train(chain, X, y).predict(X)
    found = {}

    def run(name):
        other = CyclicalSGLB(Softmax(3), random_state=name)
        train(other, X, np.digitize(y, [0, 1]), 5)
        found[name] = train(chain, X, y).predict(X)

    threads = [threading.Thread(target=run, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in range(3):
        np.testing.assert_array_equal(found[name], expected)

    def inner(env):
        train(CyclicalSGLB(Logistic()), X, (y > 0).astype(float), 2)

    params = {"objective": chain} | QUIET | chain.lightgbm_params()
    nested = lgb.train(params, data, 10, callbacks=[inner, chain.callback(), lgb.record_evaluation({})])
    np.testing.assert_array_equal(nested.predict(X), expected)


@pytest.mark.slow
def test_thread_count_changes_nothing():
    X, y = regression(600)
    found = []
    for n_jobs in (1, 2):
        model = SGLBRegressor(booster="lightgbm", n_estimators=4, n_jobs=n_jobs).fit(X, y)
        found.append(model.members(X))
    np.testing.assert_array_equal(found[0], found[1])


def test_reader_refuses_what_it_cannot_read(tmp_path):
    X, y = regression(60)
    plain_booster = lgb.train({"objective": "regression"} | QUIET, lgb.Dataset(X, y), 3)
    with pytest.raises(ValueError, match="does not say which chain"):
        VirtualEnsemble.from_lightgbm(plain_booster)
    with pytest.raises(TypeError, match="must be a LightGBM model"):
        VirtualEnsemble.from_lightgbm(3)
    with pytest.raises(ValueError, match="no such file"):
        VirtualEnsemble.from_lightgbm(tmp_path / "none.txt")
    booster = train(CyclicalSGLB(SquaredError(1.0)), X, y, 30)
    ensemble = VirtualEnsemble.from_lightgbm(booster)
    for bad in (X[:, :4], X[0], np.ones((3, 6))):
        with pytest.raises(ValueError, match=r"X must have shape \(n_samples, 5\)"):
            ensemble.members(bad)
    assert ensemble.members(X[:0]).shape == (0, 10, 1)
    for same in (X.tolist(), np.asfortranarray(X), X[::1].astype(np.float64)):
        np.testing.assert_array_equal(ensemble.members(same), ensemble.members(X))


def test_models_of_estimators_survive_and_damage_is_noticed():
    from boostplugins.lightgbm.training import dump, restore

    X, y = regression(60)
    booster = train(CyclicalSGLB(SquaredError(1.0)), X, y, 5)
    content = dump(booster)
    np.testing.assert_array_equal(restore(content).predict(X), booster.predict(X))
    for bad in (b"", b"tree\n", content[:-1], content[:400], content.replace(b"leaf_value", b"leaf_valu")):
        with pytest.raises(ValueError, match="checksum"):
            restore(bad)


def test_missing_values():
    X, y = regression()
    X[::7, 0] = np.nan
    booster = train(CyclicalSGLB(SquaredError(1.0)), X, y)
    assert np.isfinite(booster.predict(X)).all()


def test_zero_weights_are_absent_rows():
    X, y = regression()
    weight = np.ones(300)
    weight[200:] = 0.0
    y_other = y.copy()
    y_other[200:] += 1e3
    chain = CyclicalSGLB(SquaredError(0.1))
    first, second = (train(chain, X, target, 10, weight).predict(X) for target in (y, y_other))
    np.testing.assert_allclose(first, second, atol=1e-6)
    with pytest.raises(ValueError, match="positive sum"):
        train(chain, X, y, 10, np.zeros(300))
    with pytest.raises((ValueError, lgb.basic.LightGBMError), match=r"weight"):
        train(chain, X, y, 10, -weight)


def test_a_kept_booster_is_not_mistaken_for_the_next():
    X, y = regression()
    data = lgb.Dataset(X, y)
    held = data.create_valid(X[:50], y[:50])
    found = []
    kept = []
    for variance in (1.0, 2.0, 1.0):
        chain = CyclicalSGLB(SquaredError(variance), random_state=2)
        params = {"objective": chain} | QUIET | chain.lightgbm_params()
        options = {"valid_sets": [held], "feval": chain.metric(), "keep_training_booster": True}
        kept.append(lgb.train(params, data, 4, callbacks=[chain.callback()], **options))
        found.append(kept[-1].best_score["valid_0"]["log_score"])
    assert found[0] == found[2] != found[1]


def test_fits_leave_no_arrays_behind():
    from boostplugins.lightgbm.sessions import sessions

    X, y = regression()
    booster = train(CyclicalSGLB(SquaredError(1.0)), X, y, 30)
    VirtualEnsemble.from_lightgbm(booster)
    assert booster not in sessions.states


def test_sparse_rows():
    X, y = regression()
    sparse = csr_matrix(np.where(X > 0, X, 0.0))
    ensemble = VirtualEnsemble.from_lightgbm(train(CyclicalSGLB(SquaredError(1.0)), sparse, y, 30))
    np.testing.assert_array_equal(ensemble.members(sparse), ensemble.members(sparse.toarray()))
