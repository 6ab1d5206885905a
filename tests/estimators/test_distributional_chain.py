"""DistributionalRegressor as a chain: knowledge uncertainty for every family."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from boostplugins import BernoulliMask, CosineCycle, DistributionalRegressor, RandomPrior
from boostplugins.estimators import _distributional_chain as chains
from boostplugins.families import get_family
from boostplugins.schedules import Constant
from tests.estimators.distributional_data import both, quick, response, spread_data
from tests.families.cases import FAMILIES as EVERY
from tests.families.cases import draws, raws

FAMILIES = ["normal", "student_t", "gamma", "beta", "poisson", "ZIP", "bernoulli"]
AWAY = np.array([8.0, 0.0, 0.0])


def chain(family="normal", **settings):
    """A short chain of five members."""
    return quick(family, **({"n_estimators": 50, "schedule": CosineCycle(length=10)} | settings))


@both
@pytest.mark.parametrize("name", FAMILIES)
def test_members_make_the_mixture_and_the_uncertainty(name, booster):
    X, y = spread_data(120)[0], response(name, 120)
    model = chain(name, booster=booster, mask=BernoulliMask(keep=0.6)).fit(X, y)
    members = model.members(X[:30])
    assert members.shape == (30, 5, model.family_.n_params)
    dist = model.predict_dist(X[:30])
    np.testing.assert_array_equal(dist.theta, members)
    means = model.family_.mean(members)
    np.testing.assert_allclose(model.predict(X[:30]), means.mean(axis=1))
    u = model.predict_uncertainty(X[:30])
    assert (u.knowledge > 0).all()
    np.testing.assert_allclose(u.knowledge + u.data, u.total)
    if not model.family_.classification:
        np.testing.assert_allclose(u.knowledge, means.var(axis=1), rtol=1e-9)
        np.testing.assert_allclose(u.data, model.family_.var(members).mean(axis=1), rtol=1e-9)


@pytest.mark.slow
@both
@pytest.mark.parametrize("family", EVERY, ids=[repr(family) for family in EVERY])
def test_chains_of_every_family_stay_near_the_data(family, booster):
    """Few rows, a flat likelihood in many a parameter: members neither run away nor break."""
    X = spread_data(150)[0]
    y = draws(family, np.tile(family.theta(raws(family, 1)), (150, 1)))
    model = chain(family, booster=booster, min_samples_leaf=15).fit(X, y)
    dist, u = model.predict_dist(X), model.predict_uncertainty(X)
    assert np.isfinite(dist.log_pdf(y)).all()
    assert np.isfinite(u.knowledge).all()
    assert (u.knowledge >= 0).all()
    if not family.classification:
        # Medians: the mean of a JSU grows like exp(1 / tau^2), whatever its middle does.
        middle = family.ppf(0.5, model.members(X))
        assert np.median(middle.var(axis=1)) < 2.0 * y.var()


@both
@pytest.mark.parametrize("name", ["normal", "gamma"])
def test_a_chain_follows_units_and_can_be_explained_saved_and_repeated(name, booster, tmp_path):
    X, y = spread_data(150)
    y = y if name == "normal" else np.exp(y)
    model = chain(name, booster=booster).fit(X, y)
    shares = model.contributions(X[:20])
    np.testing.assert_allclose(shares.sum(axis=1), model.predict_raw(X[:20]), atol=1e-6)
    np.testing.assert_allclose(model.feature_importances_.sum(axis=1), 1.0)
    members = model.members(X)
    model.save(tmp_path / "chain")
    for other in (
        DistributionalRegressor.load(tmp_path / "chain"),
        pickle.loads(pickle.dumps(model)),
        chain(name, booster=booster).fit(X, y),
    ):
        np.testing.assert_array_equal(other.members(X), members)
        assert other.n_rounds_ == [50]
    assert not np.array_equal(chain(name, booster=booster, random_state=1).fit(X, y).members(X), members)
    scale, shift = 1e6, 3e8 if name == "normal" else 0.0
    moved = chain(name, booster=booster).fit(X, scale * y + shift).members(X)
    np.testing.assert_allclose((moved[..., 0] - shift) / scale, members[..., 0], rtol=1e-4, atol=1e-4)


@both
def test_knowledge_grows_away_from_the_data_through_prior_functions(booster):
    X, y = spread_data(300)
    model = chain(booster=booster, n_estimators=100).fit(X, y)
    near, far = model.predict_uncertainty(X), model.predict_uncertainty(X + AWAY)
    assert far.knowledge.mean() > 20 * near.knowledge.mean()
    shares = model.contributions(X[:20])
    np.testing.assert_allclose(shares.sum(axis=1), model.predict_raw(X[:20]), atol=1e-6)
    silent = chain(booster=booster, n_estimators=100, prior=None).fit(X, y)
    assert silent.predict_uncertainty(X + AWAY).knowledge.mean() < far.knowledge.mean() / 20


@both
def test_hot_chains_disagree_more_than_cold_ones(booster):
    X, y = spread_data(200)
    knowledge = [
        chain(booster=booster, temperature=tau, prior=None).fit(X, y).predict_uncertainty(X).knowledge.mean()
        for tau in (0.2, 1.0, 20.0)
    ]
    assert knowledge[0] > knowledge[1] > knowledge[2]


@both
def test_folds_and_calibration_of_chains(booster):
    X, y = spread_data(200)
    model = chain(booster=booster, n_folds=2, calibration="scale").fit(X, y)
    assert model.members(X).shape == (200, 10, 2)
    assert model.calibration_.factor_ > 0
    with pytest.warns(UserWarning, match="rough"):
        chain(booster=booster, validation_fraction=0.1, calibration="conformal").fit(X, y)


@both
def test_categories_weights_and_nothing_to_learn(booster):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=200), "kind": rng.choice(["a", "b", "c"], 200)})
    y = frame["kind"].map({"a": 0.0, "b": 3.0, "c": -3.0}) + 0.1 * rng.normal(size=200)
    model = chain(booster=booster, n_estimators=100).fit(frame, y, sample_weight=rng.uniform(0.5, 2, 200))
    assert np.corrcoef(model.predict(frame), y)[0, 1] > 0.9
    with pytest.warns(UserWarning, match="best constant"):
        constant = chain(booster=booster).fit(frame, np.full(200, 3.0))
    np.testing.assert_allclose(constant.predict(frame), 3.0)
    assert constant.members(frame).shape == (200, 1, 2)


class LateJump(Constant):
    """A user's schedule without a length: its largest scale comes last."""

    def scale(self, iteration):
        return 1.0 if iteration < 5 else 50.0


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"schedule": LateJump()}, r"largest scale must be < 2, got 0.1 \* 50"),
        ({"schedule": CosineCycle(length=5), "l2": 1.0}, "l2 must be None with schedule"),
        ({"temperature": 1.0, "step": "fisher"}, "step must be None with temperature"),
        ({"temperature": np.inf}, "temperature must be a finite number"),
        ({"temperature": 0.0}, "temperature must be a finite number"),
        ({"shrink": 0.1}, "shrink belongs to a chain"),
        ({"prior": RandomPrior()}, "prior belongs to a chain"),
        ({"temperature": 1.0, "prior": "none"}, "prior must be 'auto', None or a RandomPrior"),
        ({"temperature": 1.0, "validation_fraction": 0.2, "early_stopping_rounds": 5}, "read at its cycles"),
        ({"temperature": 1.0, "learning_rate": 0.5}, "learning_rate times the schedule's largest scale"),
        (
            {"temperature": 1.0, "family": "gamma", "prior": RandomPrior()},
            "prior must be None for family gamma",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings, match):
    X, y = spread_data(50)
    with pytest.raises(ValueError, match=match):
        quick(**settings).fit(X, np.exp(y))


@both
def test_a_chain_knows_offsets(booster):
    """Counts over exposures: rates do not depend on them, predictions follow them."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    exposure = rng.uniform(-2.0, 3.0, 300)
    y = rng.poisson(np.exp(0.5 + 0.8 * X[:, 0] + exposure)).astype(float)
    model = chain("poisson", booster=booster).fit(X, y, offset=exposure)
    rate = model.predict(X)
    assert np.corrcoef(np.log(rate), X[:, 0])[0, 1] > 0.8
    assert abs(np.corrcoef(np.log(rate), exposure)[0, 1]) < 0.4
    np.testing.assert_allclose(model.predict(X, offset=np.full(300, 5.0)), rate * np.exp(5.0), rtol=1e-9)
    start = np.log(y.sum() / np.exp(exposure).sum())
    assert model.start_[0] == pytest.approx(start, abs=1e-6)
    blind = chain("poisson", booster=booster).fit(X, y)
    seen = model.predict_dist(X, offset=exposure).log_pdf(y).mean()
    assert seen > blind.predict_dist(X).log_pdf(y).mean() + 0.3


@both
def test_an_offset_of_a_location_is_taken_off_the_response(booster):
    """In units of one the chain on y - o is the chain on y with offset o, up to float32 labels."""
    X, y = spread_data(120)
    rng = np.random.default_rng(1)
    y = (y - y.mean()) / y.std()
    offset = rng.normal(size=120)
    inner = {"booster": booster, "prior": None}
    moved, plain = (chain(**inner) for _ in range(2))
    for model in (moved, plain):
        model.categorical_features_ = []
    family = get_family("normal")
    held = (np.zeros(120), y + offset), (None, y)
    found = [
        chains.train(model, family, X, response, None, off, 0)
        for model, off, response in ((moved, offset, held[0][1]), (plain, None, held[1][1]))
    ]
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-9)
    np.testing.assert_allclose(found[0][2].raw(X, 1), found[1][2].raw(X, 1), atol=2e-3)


@both
def test_a_chain_tells_the_score_of_held_out_rows(booster):
    """After its last member the history is the model's own score; nothing is stopped."""
    X, y = spread_data(200)
    weight = np.arange(50) % 3 + 1.0
    held = (X[150:], y[150:], weight)
    model = chain(booster=booster).fit(X[:150], y[:150], eval_set=held)
    assert [len(told) for told in model.history_] == [5]
    assert model.n_rounds_ == [50]
    assert model.history_[0][-1] == pytest.approx(-model.log_score(*held), rel=1e-9)
    assert model.calibration_ is None
    plain = chain(booster=booster).fit(X[:150], y[:150])
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    again = pickle.loads(pickle.dumps(model))
    assert again.history_ == model.history_
    offset = np.full(200, 3.0)
    crps = chain(booster=booster, metric="crps").fit(
        X[:150], y[:150] + 3.0, offset=offset[:150], eval_set=[(X[150:], y[150:] + 3.0, weight, offset[150:])]
    )
    score = crps.predict_dist(X[150:], offset=offset[150:]).crps(y[150:] + 3.0)
    assert crps.history_[0][-1] == pytest.approx(np.average(score, weights=weight), rel=1e-6)


@both
def test_auto_and_calibration_go_with_a_chain_an_offset_and_held_out_rows(booster):
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (160, 2))
    offset = 5.0 * rng.normal(size=160)
    y = X[:, 0] + offset + rng.normal(size=160)
    used, out = np.arange(120), np.arange(120, 160)
    model = chain("auto", booster=booster, calibration="scale").fit(
        X[used], y[used], offset=offset[used], eval_set=(X[out], y[out], None, offset[out])
    )
    assert model.selection_
    assert model.calibration_ is not None
    assert len(model.history_[0]) == 5
    dist = model.predict_dist(X[out], offset=offset[out])
    assert np.isfinite(dist.log_pdf(y[out])).all()
    assert np.corrcoef(dist.mean(), y[out])[0, 1] > 0.9


@both
def test_contributions_that_do_not_sum_are_refused(booster):
    """CatBoost's values do not sum for depth-wise trees; a wrong answer must not pass."""
    X, y = spread_data(300)
    model = quick(booster=booster, min_samples_leaf=20).fit(X, y)
    if booster == "catboost":
        with pytest.raises(ValueError, match="contributions must sum to the prediction"):
            model.contributions(X)
    else:
        np.testing.assert_allclose(model.contributions(X).sum(axis=1), model.predict_raw(X), atol=1e-9)
