"""LightGBM's contract with a custom objective: cases that users reported."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import joblib
import lightgbm as lgb
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from boostplugins import BernoulliMask, CosineCycle, SGLBClassifier, SGLBRegressor, VirtualEnsemble
from boostplugins.lightgbm import CyclicalSGLB
from boostplugins.lightgbm.reader import LightGBMReader
from boostplugins.losses import Logistic, NormalLikelihood, Softmax, SquaredError, check_loss
from tests.lightgbm.common import QUIET, plain, regression, train


@pytest.mark.parametrize("n", [7, 3])
def test_b01_rows_and_outputs_are_told_apart(n):
    rng = np.random.default_rng(n)
    X, y = np.arange(n, dtype=float)[:, None], np.arange(n) % 3
    loss = Softmax(3)
    check_loss(loss, y.astype(float), rng.normal(size=(n, 3)))
    booster = train(plain(loss), X, y, 1, min_data_in_leaf=1, min_data_in_bin=1, num_leaves=n)
    leaves = booster.predict(X, pred_leaf=True).reshape(n, 3)
    start = np.tile(loss.start(y), (n, 1))
    d = loss.direction(y, start)
    for k in range(3):
        for leaf in set(leaves[:, k]):
            inside = leaves[:, k] == leaf
            expected = start[0, k] + 0.1 * d[inside, k].mean()
            assert booster.get_leaf_output(k, leaf) == pytest.approx(expected, abs=1e-6)


def test_b01_other_shapes_and_orders():
    from boostplugins.lightgbm.sessions import sessions

    X, labels = regression(7)[0], np.arange(7) % 3
    chain = plain(Softmax(3))
    booster = lgb.Booster(
        {"objective": "none", "num_class": 3, "min_data_in_leaf": 1, "min_data_in_bin": 1} | QUIET,
        lgb.Dataset(X, labels),
    )
    env = lgb.callback.CallbackEnv(booster, {"num_class": 3}, 0, 0, 5, None)
    scores = np.random.default_rng(0).normal(size=(7, 3))
    found = []
    for array in (scores, np.asfortranarray(scores), scores.astype(np.float32).astype(float)):
        chain.callback()(env)
        found.append(chain(array, booster.train_set)[0])
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_allclose(found[0], found[2], atol=1e-6)
    for array in (scores.T, scores.ravel(), scores[:, :2]):
        chain.callback()(env)
        with pytest.raises(ValueError, match=r"scores must have shape \(7, 3\)"):
            chain(array, booster.train_set)
    sessions.states.clear()


@pytest.mark.parametrize("loss", [SquaredError(1.0), Logistic(), Softmax(3), NormalLikelihood()])
@pytest.mark.parametrize("interface", ["train", "scikit-learn"])
def test_b02_integer_weights_are_repeated_rows(loss, interface):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, size=(300, 3)).astype(float)
    y = X[:, 0] + rng.normal(size=300)
    if loss.classification:
        y = np.digitize(y, [2.0] if isinstance(loss, Logistic) else [1.5, 3.0]).astype(float)
    weight = rng.integers(1, 4, size=300)
    # Few leaves: splits that gain next to nothing are decided by rounding.
    limits = {"min_data_in_leaf": 1, "min_data_in_bin": 1, "min_sum_hessian_in_leaf": 20.0, "num_leaves": 6}
    chain = plain(loss, shrink=0.1)

    def predict(X_, y_, w, **other):
        options = limits | other
        if interface == "train":
            return train(chain, X_, y_, 10, w, **options).predict(X)
        model = lgb.LGBMRegressor(
            objective=chain, n_estimators=10, **QUIET, **chain.lightgbm_params(**options)
        )
        return model.fit(X_, y_, sample_weight=w, callbacks=[chain.callback()]).predict(X)

    once = predict(X, y, weight.astype(float))
    again = predict(np.repeat(X, weight, axis=0), np.repeat(y, weight), None)
    np.testing.assert_allclose(once, again, atol=1e-5)
    assert np.abs(once - predict(X, y, None)).max() > 1e-3
    np.testing.assert_allclose(predict(X, y, np.ones(300)), predict(X, y, None), atol=1e-6)
    unlimited = {"min_sum_hessian_in_leaf": 0.0}
    np.testing.assert_allclose(
        predict(X, y, np.full(300, 2.0), **unlimited), predict(X, y, None, **unlimited), atol=1e-5
    )


def test_b02_noise_of_a_weighted_row_is_that_of_repeated_rows():
    # Leaf means of n rows of weight 4 have the noise variance of 4 n rows. Over 400 iterations the
    # ratio of variances is off by more than 35 % with probability below 1e-5.
    X, y = np.repeat([[0.0], [1.0]], 20, axis=0), np.zeros(40)

    def spread(weight):
        chain = CyclicalSGLB(SquaredError(1.0), leaf_noise="shared", random_state=int(weight[0]))
        booster = train(chain, X, y, 400, weight, learning_rate=1.0, num_leaves=2, min_data_in_leaf=1)
        return LightGBMReader(booster).states(X[[0, -1]], np.arange(1, 401)).var()

    assert spread(np.full(40, 4.0)) / spread(np.ones(40)) == pytest.approx(0.25, rel=0.35)


def test_b03_start_value_of_shifted_targets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = 1000 + X[:, 0] + 0.1 * rng.normal(size=200)
    ours = train(plain(SquaredError(1.0)), X, y, 5)
    built_in = lgb.train({"objective": "regression"} | QUIET, lgb.Dataset(X, y), 5)
    np.testing.assert_allclose(ours.predict(X), built_in.predict(X), atol=1e-3, rtol=1e-7)
    assert abs(ours.predict(X).mean() - y.mean()) < 0.01


def test_b04_start_value_is_part_of_every_prediction(tmp_path):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(100, 2)), 500 + rng.normal(size=100)
    chain = CyclicalSGLB(SquaredError(1.0), shrink=0.0)
    model = lgb.LGBMRegressor(objective=chain, n_estimators=5, **QUIET, **chain.lightgbm_params())
    fit = {"callbacks": [chain.callback()]}
    expected = model.fit(X, y, **fit).predict(X)
    assert abs(expected.mean() - 500) < 1
    model.booster_.save_model(tmp_path / "model.txt")
    joblib.dump(model, tmp_path / "model.joblib")
    others = [
        lgb.Booster(model_file=tmp_path / "model.txt"),
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
        joblib.load(tmp_path / "model.joblib"),
        clone(model).fit(X, y, **fit),
    ]
    for other in others:
        np.testing.assert_array_equal(other.predict(X), expected)
    assert abs(model.predict(X + 10).mean() - 500) < 5


def test_b04_cv_has_a_start_of_each_fold():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(100, 2)), 500 + rng.normal(size=100)
    chain = CyclicalSGLB(SquaredError(1.0), schedule=CosineCycle(length=4), shrink=0.05)
    found = lgb.cv(
        {"objective": chain.objective} | QUIET | chain.lightgbm_params(),
        lgb.Dataset(X, y),
        8,
        nfold=3,
        stratified=False,
        feval=chain.metric(),
        callbacks=[chain.callback()],
        return_cvbooster=True,
    )
    assert len(found["valid log_score-mean"]) == 8
    for booster in found["cvbooster"].boosters:
        # Shrunk by less than 1 - 0.005 in each of 8 iterations, and pulled back by the data.
        assert VirtualEnsemble.from_lightgbm(booster).predict(X).mean() == pytest.approx(500, abs=20)


def test_b05_response_scale():
    X, y = regression(60)
    labels = (y > 0).astype(int)
    model = SGLBClassifier(booster="lightgbm", n_estimators=20, n_jobs=1).fit(X, labels)
    proba = model.predict_proba(X)
    assert ((proba >= 0) & (proba <= 1)).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert abs(proba[:, 1].mean() - labels.mean()) < 0.1
    chain = CyclicalSGLB("binary", schedule=CosineCycle(length=5))
    ensemble = VirtualEnsemble.from_lightgbm(train(chain, X, labels))
    np.testing.assert_allclose(ensemble.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("loss", [SquaredError(1.0), Logistic(), Softmax(3), NormalLikelihood()])
def test_b07_finite_gradients_for_extreme_scores(loss):
    raw = np.linspace(-700, 700, 57)
    X, y = regression(57)
    y = np.arange(57) % 2 if loss.classification else y
    chain = plain(loss)
    params = {"num_class": loss.n_outputs}
    booster = lgb.Booster({"objective": "none"} | params | QUIET, lgb.Dataset(X, y))
    chain.callback()(lgb.callback.CallbackEnv(booster, params, 0, 0, 5, None))
    scores = np.stack([np.roll(raw, k) for k in range(loss.n_outputs)], axis=1)
    gradient, hessian = chain(scores if loss.n_outputs > 1 else scores[:, 0], booster.train_set)
    assert np.isfinite(gradient).all()
    assert (hessian == 1).all()
    with np.errstate(over="ignore"):
        curvature = loss.hessian(y.astype(float), scores)
    assert np.isfinite(curvature).all() and (curvature > 0).all()  # noqa: PT018


class OneNaN(SquaredError):
    """A loss whose third row is NaN."""

    kernel = None

    def direction(self, y, raw):
        d = super().direction(y, raw)
        d[2] = np.nan
        return d


def test_b07_nan_gradient_is_an_error_at_the_first_call():
    X, y = regression(50)
    with pytest.raises(ValueError, match="1 of 50 rows at iteration 0"):
        train(CyclicalSGLB(OneNaN(1.0)), X, y)


@pytest.mark.parametrize(
    "mode",
    [
        {},
        {"bagging_fraction": 0.5, "bagging_freq": 1},
        {"bagging_fraction": 0.5, "bagging_freq": 3},
        {"data_sample_strategy": "goss", "learning_rate": 0.4},
    ],
    ids=["gbdt", "bagging", "bagging-3", "goss"],
)
def test_b08_sampling_modes_equal_the_built_in(mode):
    X, y = regression()
    y = y - y.astype(np.float32).mean()
    built_in = lgb.train(
        {"objective": "regression", "boost_from_average": False} | QUIET | mode, lgb.Dataset(X, y), 20
    )
    ours = train(plain(SquaredError(1.0)), X, y, 20, **mode)
    np.testing.assert_allclose(ours.predict(X), built_in.predict(X), atol=1e-5)


@pytest.mark.parametrize("mode", [{"feature_fraction": 0.5}, {"boosting": "dart"}, {"extra_trees": True}])
def test_b08_random_modes_are_as_good_as_the_built_in(mode):
    # LightGBM draws anew where a custom objective is set: the same in distribution, over ten seeds.
    X, y = regression()
    score = {"ours": 0.0, "built-in": 0.0}
    for seed in range(10):
        options = mode | {"seed": seed}
        built_in = lgb.train({"objective": "regression"} | QUIET | options, lgb.Dataset(X, y), 20)
        ours = train(plain(SquaredError(1.0)), X, y, 20, **options)
        for name, model in (("ours", ours), ("built-in", built_in)):
            score[name] += np.sqrt(np.mean((model.predict(X) - y) ** 2))
    assert score["ours"] == pytest.approx(score["built-in"], rel=0.05)


def test_b08_random_forests_are_refused():
    X, y = regression(60)
    options = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}
    with pytest.raises(lgb.basic.LightGBMError, match="RF mode do not support custom objective"):
        train(plain(SquaredError(1.0)), X, y, **options)


@pytest.mark.parametrize("n", [1, 2, 5, 19])
@pytest.mark.parametrize("loss", [SquaredError(), NormalLikelihood()], ids=lambda loss: loss.name)
def test_b09_tiny_data_give_the_best_constant(n, loss):
    X, y = regression(n, 2)
    chain = CyclicalSGLB(loss)
    with pytest.warns(UserWarning, match="nothing to split"):
        booster = train(chain, X, y, 5)
    expected = loss.start(y.astype(np.float32).astype(float))
    np.testing.assert_allclose(
        booster.predict(X, raw_score=True).reshape(n, -1), np.tile(expected, (n, 1)), rtol=1e-6
    )
    assert LightGBMReader(booster).n_iterations == 5
    read = LightGBMReader(booster).states(X, np.array([3, 5]))
    np.testing.assert_allclose(read, np.tile(expected, (n, 2, 1)), rtol=1e-6)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(booster)).predict(X), booster.predict(X))
    again = lgb.Booster(model_str=booster.model_to_string())
    np.testing.assert_array_equal(again.predict(X), booster.predict(X))


def test_b09_constant_features():
    X, y = np.ones((100, 2)), regression(100)[1]
    with pytest.warns(UserWarning, match="nothing to split"):
        booster = train(CyclicalSGLB(SquaredError(1.0)), X, y, 5)
    np.testing.assert_allclose(booster.predict(X), y.mean(), rtol=1e-6)


def test_b11_everything_pickles_and_copies():
    chain = CyclicalSGLB(Softmax(3), CosineCycle(length=5), BernoulliMask(0.5), shrink=0.1)
    for item in (chain, chain.callback(), chain.metric()):
        for again in (pickle.loads(pickle.dumps(item)), copy.deepcopy(item), copy.copy(item)):
            assert getattr(again, "chain", again) == chain
    X, y = regression(60)
    labels = np.digitize(y, [0, 1])
    classifier = lgb.LGBMClassifier(objective=chain, n_estimators=5, **QUIET, **chain.lightgbm_params())
    classifier.fit(X, labels, callbacks=[chain.callback()])
    again = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(again.predict(X, raw_score=True), classifier.predict(X, raw_score=True))


def test_b11_a_prior_function_is_equal_after_pickling():
    from boostplugins.priors import RandomPrior

    X, y = regression(60)
    chain = CyclicalSGLB(SquaredError(1.0), prior=RandomPrior(scale=0.5).fit(X))
    first, second = (pickle.loads(pickle.dumps(chain)) for _ in range(2))
    assert first == second == chain != CyclicalSGLB(SquaredError(1.0))
    data = lgb.Dataset(X, y, free_raw_data=False)
    params = {"objective": first} | QUIET | chain.lightgbm_params()
    assert lgb.train(params, data, 3, callbacks=[second.callback()]).num_trees() == 3


@pytest.mark.slow
def test_b11_grid_search_in_processes():
    X, y = regression(60)
    model = SGLBRegressor(booster="lightgbm", n_estimators=10, n_jobs=1)
    search = GridSearchCV(model, {"temperature": [1.0, 3.0]}, n_jobs=2, cv=2).fit(X, y)
    assert search.best_estimator_.predict(X).shape == (60,)


def test_b13_lightgbm_may_be_absent():
    code = (
        "import sys; sys.modules['lightgbm'] = None\n"
        "import boostplugins, boostplugins.losses, boostplugins.virtual_ensemble\n"
        "try:\n    import boostplugins.lightgbm\n"
        "except ImportError as error:\n    print('needs LightGBM >= 4.5' in str(error))\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "True"


@pytest.mark.parametrize(
    ("name", "old", "needs"),
    [("lightgbm", "3.3.5", "LightGBM >= 4.5"), ("catboost", "1.2.7", "CatBoost >= 1.2.10")],
)
def test_b13_an_old_booster_is_one_clear_error(name, old, needs):
    code = (
        "import sys, types\n"
        f"sys.modules[{name!r}] = module = types.ModuleType({name!r})\n"
        f"module.__version__ = {old!r}\n"
        f"try:\n    import boostplugins.{name}\n"
        "except ImportError as error:\n    print(error)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == f"boostplugins.{name} needs {needs}, found {old}: pip install -U {name}"
