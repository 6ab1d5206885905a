"""DistributionalRegressor: what users of such models reported."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from boostplugins import DistributionalRegressor
from tests.estimators.distributional_data import AFFINE, PLAIN, SCALED, both, quick, response, spread_data


@both
@pytest.mark.parametrize("name", [*AFFINE, *SCALED])
def test_c03_predictions_follow_any_change_of_units(name, booster):
    X, y = spread_data(200)
    y = y if name in AFFINE else np.exp(y)
    plain = quick(name, booster=booster, n_estimators=15).fit(X, y).predict_dist(X)
    for scale in (1e-9, 3.7, 1e9):
        for shift in (0.0, 1e3 * scale) if name in AFFINE else (0.0,):
            moved = quick(name, booster=booster, n_estimators=15).fit(X, scale * y + shift).predict_dist(X)
            size = np.abs(plain.ppf(0.9)).max()
            for q in (0.1, 0.5, 0.9):
                assert np.abs((moved.ppf(q) - shift) / scale - plain.ppf(q)).max() <= 1e-6 * size


@both
@pytest.mark.parametrize("name", ["normal", "gamma", "student_t", "laplace", "jsu", "poisson", "lognormal"])
def test_c01_an_outlier_leaves_everything_finite(name, booster):
    rng = np.random.default_rng(0)
    y = np.abs(rng.normal(size=50))
    y = np.floor(y * 3) if name == "poisson" else y + 0.01
    y[7] = 1e6
    X = rng.normal(size=(50, 2))
    model = quick(name, booster=booster, n_estimators=300, learning_rate=1.0, min_samples_leaf=3)
    dist = model.fit(X, y).predict_dist(X)
    for values in (dist.mean(), dist.ppf(0.05), dist.ppf(0.95), dist.log_pdf(y)):
        assert np.isfinite(values).all()


@both
@pytest.mark.parametrize("name", ["student_t", "laplace", "gamma", "negative_binomial", "jsu", "weibull"])
def test_c02_repeated_responses_do_not_break_the_fit(name, booster):
    rng = np.random.default_rng(1)
    y = np.where(np.arange(40) < 20, 2.0, rng.poisson(3.0, 40) + 1.0)
    X = rng.normal(size=(40, 2))
    dist = quick(name, booster=booster, n_estimators=200).fit(X, y).predict_dist(X)
    assert np.isfinite(dist.log_pdf(y)).all()
    assert np.isfinite(dist.mean()).all()


@both
def test_c04_scale_keeps_above_its_floor(booster):
    x = np.linspace(0, 1, 100)
    for y in (x, np.where(x < 0.5, 3.0, x)):
        dist = quick(booster=booster, n_estimators=500).fit(x[:, None], y).predict_dist(x[:, None])
        assert dist.std().min() >= 0.999e-4 * y.std()
        assert np.isfinite(dist.log_pdf(y)).all()


@both
def test_scale_shrinks_where_no_split_helps(booster):
    """A mean that fits leaves gradients of the scale that are alike in all rows."""
    X, _ = spread_data(300)
    y = np.where(X[:, 0] > 0, 5.0, -5.0) + 1e-3 * np.random.default_rng(0).normal(size=300)
    dist = quick(booster=booster, n_estimators=300, min_samples_leaf=20).fit(X, y).predict_dist(X)
    assert dist.std().max() < 0.05


@both
@pytest.mark.parametrize(
    ("name", "bad"), [("lognormal", 0.0), ("gamma", 0.0), ("beta", 1.0), ("poisson", 0.5)]
)
def test_c05_responses_outside_the_support_are_refused(name, bad, booster):
    X, y = spread_data(60)[0], response(name, 60)
    y[0] = bad
    with pytest.raises(ValueError, match=rf"y must hold .*numbers in .* for family {name}.*1 of 60 rows"):
        quick(name, booster=booster).fit(X, y)
    good = response(name, 60)
    with pytest.raises(ValueError, match="y of eval_set must hold"):
        quick(name, booster=booster).fit(X, good, eval_set=(X, y))


@pytest.mark.parametrize("name", ["poisson", "negative_binomial", "ZIP", "ZINBI", "ZAP"])
def test_c07_counts_without_events(name):
    X = spread_data(50)[0]
    for y in (np.zeros(50), np.eye(50)[3]):
        dist = quick(name).fit(X, y).predict_dist(X)
        assert (dist.mean() >= 0).all()
        assert dist.mean().mean() < 0.2
        assert np.isfinite(dist.log_pdf(y)).all()


def test_c07_zero_inflation_is_recovered():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(5000) < 0.7, 0.0, rng.poisson(3.0, 5000))
    dist = quick("ZIP", n_estimators=20).fit(rng.normal(size=(5000, 2)), y).predict_dist(np.zeros((1, 2)))
    assert dist.theta[0, 1] == pytest.approx(0.7, abs=0.05)
    assert dist.theta[0, 0] == pytest.approx(3.0, abs=0.2)


@both
def test_c08_every_parameter_follows_its_own_feature(booster):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.5, 1.5, (3000, 3))
    model = quick(booster=booster, n_estimators=100).fit(X, np.exp(X[:, 0]) * rng.normal(size=3000))
    assert stats.spearmanr(model.predict_dist(X).std(), X[:, 0])[0] > 0.8
    assert model.feature_importances_[1].argmax() == 0
    size = np.exp(X[:, 1])
    y = rng.negative_binomial(size, size / (size + 10.0)).astype(float)
    model = quick("NBI", booster=booster, n_estimators=100).fit(X, y)
    assert stats.spearmanr(model.predict_dist(X).theta[:, 1], size)[0] > 0.8
    np.testing.assert_allclose(model.feature_importances_.sum(axis=1), 1.0)


@both
@pytest.mark.parametrize("name", PLAIN)
def test_c09_whole_weights_equal_repeated_rows(name, booster):
    rng = np.random.default_rng(0)
    X, y = np.round(rng.uniform(0, 4, (50, 2))), response(name, 50)
    weight = rng.integers(0, 4, 50).astype(float)
    rows = np.repeat(np.arange(50), weight.astype(int))
    settings = {"booster": booster, "n_estimators": 10, "min_samples_leaf": 1, "depth": 2}
    weighted = quick(name, **settings).fit(X, y, sample_weight=weight).predict_dist(X)
    repeated = quick(name, **settings).fit(X[rows], y[rows]).predict_dist(X)
    np.testing.assert_allclose(weighted.theta, repeated.theta, rtol=2e-5)
    equal = quick(name, **settings).fit(X, y, sample_weight=np.full(50, 1.0)).predict_dist(X)
    np.testing.assert_allclose(
        equal.theta, quick(name, **settings).fit(X, y).predict_dist(X).theta, rtol=1e-9
    )


@both
def test_c10_exposure(booster):
    rng = np.random.default_rng(0)
    X, exposure = rng.uniform(-1, 1, (1000, 2)), rng.choice([0.5, 1.0, 2.0], 1000)
    y = rng.poisson(exposure * np.exp(1.0 + X[:, 0])).astype(float)
    model = quick("poisson", booster=booster).fit(X, y, offset=np.log(exposure))
    once, twice = model.predict(X, offset=np.log(exposure)), model.predict(X, offset=np.log(2 * exposure))
    np.testing.assert_allclose(twice, 2 * once, rtol=1e-12)
    np.testing.assert_allclose(model.predict(X), once / exposure, rtol=1e-12)
    assert once.sum() == pytest.approx(y.sum(), rel=0.02)
    # The same exposure in two halves: the same rate.
    half = rng.binomial(y.astype(int), 0.5).astype(float)
    X2, y2 = np.concatenate([X, X]), np.concatenate([half, y - half])
    split = quick("poisson", booster=booster).fit(X2, y2, offset=np.log(np.tile(exposure / 2, 2)))
    assert split.predict(X).mean() == pytest.approx(model.predict(X).mean(), rel=0.02)


@both
def test_c12_b10_the_given_evaluation_set_is_scored(booster):
    X, y = spread_data(100)
    X_held, y_held = spread_data(50, seed=1)
    y_held = y_held + 5.0
    model = quick(booster=booster, early_stopping_rounds=5, validation_fraction=0.2, refit=False)
    model.fit(X, y, eval_set=(X_held, y_held))
    history = model.history_[0]
    best = int(np.argmin(history))
    assert model.n_rounds_ == [best + 1]
    assert len(history) <= best + 1 + 5
    assert -model.log_score(X_held, y_held) == pytest.approx(history[best], abs=1e-8)
    by_hand = stats.norm.logpdf(y_held, *model.predict_dist(X_held).theta.T).mean()
    assert model.log_score(X_held, y_held) == pytest.approx(by_hand, abs=1e-8)  # D08


@both
def test_c13_the_seed_is_enough(booster):
    X, y = spread_data(300)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    fits = [
        quick(booster=booster, n_folds=3, calibration="scale", n_jobs=jobs, random_state=3).fit(X, y)
        for jobs in (1, 2, 1)
    ]
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002
    for other in fits[1:]:
        assert (other.predict_dist(X).theta == fits[0].predict_dist(X).theta).all()
    draws = [fit.predict_dist(X).sample(3, random_state=1) for fit in fits]
    assert (draws[0] == draws[1]).all()
    quick(booster=booster, random_state=np.random.default_rng(0)).fit(X, y)
    quick(booster=booster, random_state=None).fit(X, y)


@both
@pytest.mark.parametrize("name", ["normal", "gamma", "lognormal"])
def test_c15_contributions_sum_to_the_raw_prediction(name, booster):
    X, y = spread_data(100)
    y = y * 1e3 + 50 if name == "normal" else np.exp(y) * 1e3
    model = quick(name, booster=booster).fit(X, y)
    shares = model.contributions(X)
    assert shares.shape == (100, 4, 2)
    np.testing.assert_allclose(shares.sum(axis=1), model.predict_raw(X), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        model.family_.theta(model.predict_raw(X)), model.predict_dist(X).theta, rtol=1e-9
    )


@both
def test_c16_missing_features(booster):
    X, y = spread_data(100)
    X[::5, 0] = np.nan
    X[:, 2] = np.nan
    model = quick(booster=booster).fit(X, y)
    constant = np.c_[X[:, :2], np.ones(100)]
    same = quick(booster=booster).fit(constant, y).predict(constant)
    np.testing.assert_allclose(model.predict(X), same, rtol=1e-9)
    assert np.isfinite(model.predict(np.full((1, 3), np.nan))).all()


@pytest.mark.slow
@both
def test_c17_a_boosted_scale_is_worth_it(booster):
    gains, losses = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-2, 2, 600)
        for noise, kept in ((0.1 + x**2, gains), (0.3, losses)):
            y = np.sin(x) + noise * rng.normal(size=600)
            model = DistributionalRegressor(booster=booster).fit(x[:300, None], y[:300])
            mean = model.predict(x[:, None])
            sd = np.sqrt(np.mean((y[:300] - mean[:300]) ** 2))
            best = min(
                -stats.norm.logpdf(y[300:], mean[300:], s).mean() for s in sd * np.linspace(0.8, 1.6, 17)
            )
            kept.append(best + model.log_score(x[300:, None], y[300:]))
    assert np.mean(gains) > 0.0
    assert np.mean(losses) >= -0.02
