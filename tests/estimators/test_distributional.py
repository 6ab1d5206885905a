"""DistributionalRegressor: calibration, choice of the family, inputs, saving."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from boostplugins import DistributionalRegressor, Predictive
from tests.estimators.distributional_data import both, quick, response, spread_data


@both
def test_d01_units_and_coverage(booster):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2))
    truth = np.exp(0.5 * X[:, 1])
    y = X[:, 0] + truth * rng.normal(size=4000)
    model = quick(booster=booster, n_estimators=100, n_folds=2, calibration="scale")
    model.fit(X[:3000], y[:3000])
    dist = model.predict_dist(X[3000:])
    assert np.corrcoef(dist.std(), truth[3000:])[0, 1] > 0.8
    assert 0.8 <= dist.std().mean() / truth[3000:].mean() <= 1.25
    u = model.predict_uncertainty(X[3000:])
    np.testing.assert_allclose(u.knowledge + u.data, u.total)
    np.testing.assert_allclose(u.total, dist.var())
    ends = model.predict_interval(X[3000:], 0.9)
    inside = ((ends[:, 0] <= y[3000:]) & (y[3000:] <= ends[:, 1])).mean()
    assert 0.86 <= inside <= 0.94


def test_d05_scorers_work():
    X, y = spread_data(90)
    for scoring in ("r2", "neg_root_mean_squared_error"):
        assert np.isfinite(cross_val_score(quick(), X, y, cv=3, scoring=scoring)).all()


@both
def test_b09_i07_nothing_to_learn_gives_the_best_constant_and_a_warning(booster):
    rng = np.random.default_rng(0)
    for name in ("normal", "poisson"):
        y = response(name, 100)
        with pytest.warns(UserWarning, match="best constant"):
            model = quick(name, booster=booster).fit(np.ones((100, 2)), y)
        assert model.predict([[1.0, 1.0]])[0] == pytest.approx(y.mean(), rel=1e-6)
        assert model.contributions([[1.0, 1.0]]).sum(axis=1)[0] == pytest.approx(
            model.predict_raw([[1.0, 1.0]])[0]
        )
    for n in (1, 2, 5):
        X, y = rng.normal(size=(n, 1)), np.full(n, 3.0)
        if n == 1:
            with pytest.warns(UserWarning, match="best constant"):
                model = quick(booster=booster).fit(X, y)
        else:
            model = quick(booster=booster).fit(X, y)
        assert model.predict(X) == pytest.approx(np.full(n, 3.0))
        assert (model.predict_dist(X).std() > 0).all()


@both
def test_categories_and_reordered_columns(booster):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=300), "kind": rng.choice(["a", "b", "c"], 300)})
    y = X["kind"].map({"a": 0.0, "b": 3.0, "c": -3.0}) + 0.1 * rng.normal(size=300)
    model = quick(booster=booster).fit(X, y)
    assert model.categorical_features_ == [1]
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.98
    assert model.contributions(X).shape == (300, 3, 2)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[["kind", "size"]])
    unseen = X.assign(kind="never seen")
    assert np.isfinite(model.predict(unseen)).all()


@both
@pytest.mark.parametrize("calibration", [None, "scale", "conformal"])
def test_saved_and_pickled_models_predict_the_same(tmp_path, booster, calibration):
    X, y = spread_data(200)
    model = quick("gamma", booster=booster, n_folds=2, calibration=calibration).fit(X, np.exp(y))
    for other in (
        pickle.loads(pickle.dumps(model)),
        DistributionalRegressor.load(model.save(tmp_path / "model") or tmp_path / "model"),
    ):
        assert (other.predict_dist(X).theta == model.predict_dist(X).theta).all()
        assert (other.predict_interval(X) == model.predict_interval(X)).all()
        assert other.n_rounds_ == model.n_rounds_
    (tmp_path / "bad").write_bytes(b"no model")
    with pytest.raises(ValueError, match="no saved model"):
        DistributionalRegressor.load(tmp_path / "bad")


@both
def test_scale_calibration_covers(booster):
    X, y = spread_data(1500)
    X_test, y_test = spread_data(4000, seed=1)
    hasty = {"booster": booster, "n_estimators": 200, "calibration": "scale"}
    single = quick(validation_fraction=0.3, refit=False, **hasty).fit(X, y)
    assert single.calibration_.factor_ > 1.05
    mixture = quick(n_folds=3, early_stopping_rounds=20, **hasty).fit(X, y)
    for model in (single, mixture):
        ends = model.predict_interval(X_test, 0.9)
        inside = ((ends[:, 0] <= y_test) & (y_test <= ends[:, 1])).mean()
        assert 0.87 <= inside <= 0.93


def test_auto_compares_counts_with_what_was_rounded():
    """Fewer spread than a Poisson's: rounded Normals, which no family of counts can follow."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 2))
    rounded = np.rint(50.0 + 10.0 * X[:, 0] + 3.0 * rng.normal(size=400))
    model = quick("auto").fit(X, rounded)
    assert model.family_.name == "normal"
    poisson = next(score for name, score in model.selection_.items() if name.startswith("Poisson"))
    best = next(iter(model.selection_.values()))
    # Log probabilities of whole numbers: a Normal of standard deviation 3 has about log(3 sqrt(2 pi e)).
    assert poisson < best - 0.1
    assert -2.9 < best < -2.4


def test_auto_chooses_a_family_that_fits():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 2))
    counts = rng.negative_binomial(1.0, 1 / (1 + np.exp(1.5 + X[:, 0]))).astype(float)
    model = quick("auto").fit(X, counts)
    assert model.family_.name in ("negative_binomial", "zero_inflated")
    assert next(iter(model.selection_)) == repr(model.family_)
    heavy = quick("auto").fit(X, X[:, 0] + stats.t(2.0).rvs(400, random_state=1))
    assert heavy.family_.name in ("student_t", "jsu", "laplace")
    assert list(heavy.selection_.values()) == sorted(heavy.selection_.values(), reverse=True)
    skewed = quick("auto").fit(X, rng.gamma(1.5, np.exp(X[:, 0])))
    assert skewed.family_.support.low == 0.0


def test_refitting_the_same_object_forgets_the_first_fit():
    X, y = spread_data(200)
    model = quick(n_folds=2, calibration="scale").fit(X, y)
    model.set_params(n_folds=None, calibration=None).fit(X, y)
    fresh = clone(model).fit(X, y)
    assert (model.predict_dist(X).theta == fresh.predict_dist(X).theta).all()
    assert model.calibration_ is None


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"booster": "xgboost"}, "booster must be one of"),
        ({"step": "newton"}, "step must be 'fisher'"),
        ({"step": 2.0}, "step must be"),
        ({"n_estimators": 0}, "n_estimators must be an integer >= 1"),
        ({"learning_rate": 0.0}, "learning_rate must be"),
        ({"calibration": "scale"}, "calibration needs held-out rows"),
        ({"early_stopping_rounds": 5}, "early_stopping_rounds needs held-out rows"),
        ({"n_folds": 2, "validation_fraction": 0.2}, "n_folds holds rows out itself"),
        ({"family": "nothing"}, "family must be one of"),
        ({"metric": "rmse"}, "metric must be one of"),
        ({"validation_fraction": 1.5}, "validation_fraction must be"),
    ],
)
def test_bad_settings_are_refused_before_training(settings, match):
    X, y = spread_data(30)
    with pytest.raises(ValueError, match=match):
        quick(**settings).fit(X, y)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_responses_that_are_not_finite_are_refused(value):
    X, y = spread_data(30)
    y[4] = value
    with pytest.raises(ValueError, match="y must be finite"):
        quick().fit(X, y)


def test_i11_bad_weights_are_refused():
    X, y = spread_data(30)
    for weight, match in ((-np.eye(30)[0], ">= 0"), (np.zeros(30), "positive sum")):
        with pytest.raises(ValueError, match=match):
            quick().fit(X, y, sample_weight=weight)
    with pytest.warns(UserWarning, match="best constant"):
        model = quick().fit(X, y, sample_weight=np.eye(30)[29])
    assert model.predict(X[:1])[0] == pytest.approx(y[29])


def test_h06_h07_kinds_of_input_give_the_same_predictions():
    X, y = spread_data(60)
    plain = quick().fit(X, y).predict(X)
    frozen = X.copy()
    frozen.flags.writeable = False
    for other in (np.asfortranarray(X), frozen, X.tolist(), np.repeat(X, 2, axis=0)[::2]):
        np.testing.assert_allclose(quick().fit(other, y).predict(other), plain, rtol=1e-9)
    single = X.astype(np.float32)
    assert isinstance(quick().fit(single, y).predict_dist(single), Predictive)
    with pytest.raises(ValueError, match="features"):
        quick().fit(X, y).predict(X[:, :2])


def test_a_single_model_of_catboost_draws_its_splits_from_5000_rows_on():
    """Whatever the threads and the units; the caller's own strength wins."""
    X, y = spread_data(5000)

    def fit(y=y, rows=5000, **settings):
        model = quick(booster="catboost", n_estimators=20, **settings).fit(X[:rows], y[:rows])
        return model.predict_dist(X[:500]).theta

    drawn = fit()
    np.testing.assert_array_equal(fit(n_jobs=2), drawn)
    np.testing.assert_allclose(fit(y=1e9 * y) / 1e9, drawn, rtol=1e-6, atol=1e-9)
    exact = {"random_strength": 0.0}
    assert np.abs(fit(booster_params=exact) - drawn).max() > 1e-3
    for few in ({"rows": 4999}, {"n_folds": 2}):
        np.testing.assert_array_equal(fit(**few), fit(**few, booster_params=exact))
