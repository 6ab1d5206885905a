"""SoftForestRegressor and SoftBoostingRegressor."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from boostplugins.estimators.soft_tree import SoftTreeRegressor
from boostplugins.estimators.soft_tree_boosting import SoftBoostingRegressor
from boostplugins.estimators.soft_tree_forest import SoftForestRegressor

DRAWN = {
    "check_sample_weight_equivalence_on_dense_data": "rows are drawn or held out by number, not by weight"
}


@parametrize_with_checks(
    [
        SoftForestRegressor(n_estimators=2, ridge=1.0, max_leaves=3),
        SoftBoostingRegressor(n_estimators=10),
    ],
    expected_failed_checks=lambda estimator: DRAWN,
)
def test_estimator_checks(estimator, check):
    check(estimator)


def data(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + np.exp(0.3 * X[:, 2] - 1.5) * rng.normal(size=n)


def forest(**more):
    return SoftForestRegressor(**{"n_estimators": 4, "ridge": 1.0, "max_leaves": 5} | more)


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_h03_i10_forest_is_the_same_for_any_jobs_and_backend(backend):
    X, y = data(120)
    expected = forest().fit(X, y).members_theta(X)
    with joblib.parallel_backend(backend):
        np.testing.assert_array_equal(forest(n_jobs=2).fit(X, y).members_theta(X), expected)


def test_forest_is_a_mixture_and_disagrees_far_away():
    X, y = data()
    model = forest(n_estimators=6).fit(X, y)
    near, far = model.predict_uncertainty(X), model.predict_uncertainty(8.0 * np.ones((1, 3)))
    assert far.knowledge[0] > 5 * np.median(near.knowledge)
    np.testing.assert_allclose(near.total, model.predict_dist(X).var())
    assert model.score(X, y) > 0.7
    assert model.importances_["mu"].sum() == pytest.approx(1.0)
    assert forest(bootstrap=True, max_features=0.7).fit(X, y).score(X, y) > 0.3
    other = forest(n_estimators=6, random_state=1).fit(X, y)
    assert not np.array_equal(other.predict(X), model.predict(X))


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_i09_tiny_data_leave_something_to_sample(n):
    X, y = data(n)
    assert np.isfinite(forest(max_samples=0.01).fit(X, y).predict(X)).all()
    assert np.isfinite(SoftBoostingRegressor(n_estimators=3, subsample=0.01).fit(X, y).predict(X)).all()
    for bad in (0.0, 1.5):
        with pytest.raises(ValueError, match="max_samples"):
            forest(max_samples=bad).fit(X, y)
        with pytest.raises(ValueError, match="subsample"):
            SoftBoostingRegressor(subsample=bad).fit(X, y)


def test_forest_of_all_rows_is_the_tree():
    X, y = data(120)
    one = forest(n_estimators=1, max_samples=1.0).fit(X, y)
    tree = SoftTreeRegressor(ridge=1.0, max_leaves=5).fit(X, y)
    np.testing.assert_array_equal(one.members_theta(X)[:, 0], tree.predict_dist(X).theta)


def test_boosting_improves_every_round_and_stops_early():
    X, y = data(400)
    model = SoftBoostingRegressor(
        n_estimators=150, learning_rate=0.3, max_leaves=6, ridge=0.001, patience=5
    ).fit(X, y)
    assert (np.diff(model.history_["training"]) >= 0).all()
    assert model.best_iteration_ == np.argmax(model.history_["validation"]) < 150
    assert model.n_iter_ == min(150, model.best_iteration_ + 5)
    assert model.score(X, y) > 0.8
    X_new, y_new = data(400, seed=1)
    assert model.log_score(X_new, y_new) > SoftBoostingRegressor(n_estimators=1).fit(X, y).log_score(
        X_new, y_new
    )


def test_i12_refit_with_the_best_number_of_rounds():
    X, y = data(200)
    first = SoftBoostingRegressor(n_estimators=20, validation_fraction=None).fit(X, y)
    again = SoftBoostingRegressor(n_estimators=8, validation_fraction=None).fit(X, y)
    np.testing.assert_array_equal(first.predict_raw(X, 8), again.predict_raw(X))


def test_boosting_other_families_and_weights():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = rng.poisson(np.exp(0.5 + 0.6 * X[:, 0])).astype(float)
    model = SoftBoostingRegressor("poisson", n_estimators=25).fit(X, y)
    assert np.corrcoef(model.predict_raw(X)[:, 0], X[:, 0])[0, 1] > 0.95
    plan = {"family": "poisson", "n_estimators": 5, "validation_fraction": None}
    times = rng.integers(1, 3, size=300)
    weighted = SoftBoostingRegressor(**plan).fit(X, y, times)
    repeated = SoftBoostingRegressor(**plan).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-3)


def test_i04_history_survives_pickle_and_file(tmp_path):
    X, y = data()
    for model in (SoftBoostingRegressor(n_estimators=12).fit(X, y), forest().fit(X, y)):
        model.save(tmp_path / "m.npz")
        for copied in (pickle.loads(pickle.dumps(model)), type(model).load(tmp_path / "m.npz")):
            np.testing.assert_array_equal(copied.predict_dist(X).theta, model.predict_dist(X).theta)
            assert copied.get_params() == model.get_params()
            if isinstance(model, SoftBoostingRegressor):
                assert copied.best_iteration_ == model.best_iteration_
                np.testing.assert_array_equal(copied.history_["validation"], model.history_["validation"])


def test_i07_constant_targets():
    X, _ = data(20)
    for model in (forest(), SoftBoostingRegressor(n_estimators=3)):
        with pytest.warns(UserWarning, match="constant"):
            model.fit(X, np.full(20, 3.0))
        np.testing.assert_allclose(model.predict(X), 3.0)


@pytest.mark.parametrize("share", [None, 0.2])
def test_boosting_reports_each_round_with_and_without_held_out_rows(share, capsys):
    X, y = data(100)
    SoftBoostingRegressor(n_estimators=3, validation_fraction=share, verbose=True).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert all(("validation" in line) == (share is not None) for line in lines)
