"""The README's examples of own families, schedules, masks, losses, metrics and boosters keep their word."""

import gc
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge

from boostplugins import Constant, CosineCycle, DistributionalRegressor, SGLBRegressor, VirtualEnsemble
from boostplugins.compare import compare
from boostplugins.families import family_from_dict
from boostplugins.losses import Logistic, SquaredError, check_loss, loss_from_dict
from boostplugins.masks import BernoulliMask
from boostplugins.schedules import GradientSchedule, schedule_from_dict
from tests.examples.booster import TreeChain
from tests.examples.family import Rayleigh
from tests.examples.loss import LogCosh
from tests.examples.mask import Stretches
from tests.examples.metric import worst_decile
from tests.examples.schedule import Sawtooth

BOOSTERS = ("catboost", "lightgbm")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    return X, X[:, 0] + 0.5 * rng.normal(size=80)


def trained(booster, rows, path, loss=None, **settings):
    """Train 40 iterations, store the model, and read its members from the file."""
    X, y = rows
    loss = SquaredError(0.25) if loss is None else loss
    if booster == "catboost":
        from catboost import CatBoost

        from boostplugins.catboost import CyclicalSGLB

        chain = CyclicalSGLB(loss, **settings)
        options = {"iterations": 40, "depth": 2, "verbose": False, "allow_writing_files": False}
        model = CatBoost(
            options | {"loss_function": chain, "eval_metric": "RMSE"} | chain.catboost_params(thread_count=1)
        )
        model.fit(X, y, callbacks=[chain.callback()])
        model.save_model(str(path))
        return VirtualEnsemble.from_catboost(CatBoost().load_model(str(path)))
    import lightgbm as lgb

    from boostplugins.lightgbm import CyclicalSGLB

    chain = CyclicalSGLB(loss, **settings)
    params = {"objective": chain.objective, "verbosity": -1, "num_threads": 1, **chain.lightgbm_params()}
    booster = lgb.train(params, lgb.Dataset(X, y), num_boost_round=40, callbacks=[chain.callback()])
    booster.save_model(path)
    return VirtualEnsemble.from_lightgbm(path)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_own_schedule_trains_is_stored_and_read(booster, rows, tmp_path):
    ensemble = trained(booster, rows, tmp_path / "model", schedule=Sawtooth(length=10, top=3.0))
    assert ensemble.schedule.to_dict() == {"kind": "sawtooth", "length": 10, "top": 3.0}
    assert ensemble.ends.tolist() == [10, 20, 30, 40]
    assert (ensemble.uncertainty(rows[0]).knowledge > 0).all()


@pytest.mark.parametrize("booster", BOOSTERS)
def test_own_schedule_in_an_estimator(booster, rows, tmp_path):
    X, y = rows
    model = SGLBRegressor(
        booster=booster, schedule=Sawtooth(length=10), n_estimators=40, n_jobs=1, prior=None
    )
    model.fit(X, y).save(tmp_path / "model.zip")
    again = SGLBRegressor.load(tmp_path / "model.zip")
    assert again.n_members_ == 4
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_own_schedule_shapes_the_gradient():
    saw = Sawtooth(length=10, top=5.0)
    assert [saw.scale(t) for t in (0, 5, 8, 9, 10)] == [5.0, 2.5, 1.0, 1.0, 5.0]
    assert [saw.exploring(t) for t in (7, 8)] == [True, False]
    assert saw.member_ends(35).tolist() == [10, 20, 30]
    assert saw.member_ends(35, n_members=2).tolist() == [20, 30]
    assert saw.member_ends(9).tolist() == []


@pytest.mark.parametrize("n", [1, 3, 40, 101])
def test_the_base_class_reads_members_as_the_schedules_of_the_package(n):
    @dataclass(frozen=True)
    class Flat(GradientSchedule):
        def scale(self, iteration):
            return 1.0

    @dataclass(frozen=True)
    class Seven(Flat):
        def cycle(self, iteration):
            return iteration // 7

    for members in (None, 1, 4):
        assert Flat().member_ends(n, members).tolist() == Constant().member_ends(n, members).tolist()
        expected = CosineCycle(length=7).member_ends(n, members).tolist()
        assert Seven().member_ends(n, members).tolist() == expected


def test_a_class_that_is_not_there_is_named(rows, tmp_path):
    def train():
        @dataclass(frozen=True)
        class Ghost(GradientSchedule):
            kind = "ghost"

            def scale(self, iteration):
                return 1.0

        return trained("lightgbm", rows, tmp_path / "model", schedule=Ghost())

    train()
    gc.collect()  # the class dies with its last instance
    with pytest.raises(
        ValueError, match=r"schedule kind .*got 'ghost'; a GradientSchedule of your own must be"
    ):
        VirtualEnsemble.from_lightgbm(tmp_path / "model")


def test_a_schedule_needs_a_kind_of_its_own():
    class Heir(CosineCycle):
        pass

    with pytest.raises(TypeError, match="Heir must be a data class with a `kind` of its own"):
        Heir().to_dict()

    @dataclass(frozen=True)
    class Twin(CosineCycle):
        kind = "cosine"

    with pytest.raises(ValueError, match=r"'cosine' must be one class, got .*CosineCycle and .*Twin; rename"):
        Twin().to_dict()
    del Twin
    gc.collect()
    assert schedule_from_dict(CosineCycle().to_dict()) == CosineCycle()


@pytest.mark.parametrize("booster", BOOSTERS)
def test_own_mask(booster, rows, tmp_path):
    mask = Stretches(2)
    assert mask.rows(1, 5).tolist() == [False, False, False, True, True]
    schedule = CosineCycle(length=10)
    masked = trained(booster, rows, tmp_path / "a", schedule=schedule, mask=mask)
    plain = trained(booster, rows, tmp_path / "b", schedule=schedule)
    assert np.abs(masked.members(rows[0]) - plain.members(rows[0])).max() > 0.01


def test_own_loss_obeys_the_law_of_losses():
    rng = np.random.default_rng(0)
    check_loss(LogCosh(0.7), rng.normal(size=30), 2 * rng.normal(size=(30, 1)))
    assert loss_from_dict(LogCosh(0.7).to_dict()).scale == 0.7
    with pytest.raises(ValueError, match="a Loss of your own must be defined or imported"):
        loss_from_dict({"name": "nowhere"})


@pytest.mark.parametrize("booster", BOOSTERS)
def test_own_loss_trains_is_stored_and_read(booster, rows, tmp_path):
    X, y = rows
    ensemble = trained(booster, rows, tmp_path / "model", LogCosh(0.3), schedule=CosineCycle(length=10))
    assert ensemble.loss.to_dict() == {"name": "log_cosh", "scale": 0.3}
    assert np.corrcoef(ensemble.predict(X), y)[0, 1] > 0.6


@pytest.mark.parametrize("booster", BOOSTERS)
def test_own_family_is_fitted_stored_and_read(booster, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 1))
    speed = np.exp(X[:, 0]) * rng.rayleigh(size=200)
    model = DistributionalRegressor(Rayleigh(), booster=booster, n_estimators=20, n_jobs=1).fit(X, speed)
    model.save(tmp_path / "model.zip")
    again = DistributionalRegressor.load(tmp_path / "model.zip")
    np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))
    with pytest.raises(ValueError, match="a Family of your own must be defined or imported"):
        family_from_dict({"name": "nowhere"})


def test_own_family_obeys_the_laws_of_families():
    family, rng = Rayleigh(), np.random.default_rng(0)
    raw = rng.normal(size=(50, 1))
    y = family.sample(family.theta(raw), 1, rng)[:, 0]
    score, fisher = family.score_and_fisher(y, raw)
    up, down = (family.log_pdf(y, family.theta(raw + step)) for step in (1e-5, -1e-5))
    np.testing.assert_allclose(score[:, 0], (up - down) / 2e-5, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(family.cdf(family.ppf(0.3, family.theta(raw)), family.theta(raw)), 0.3)
    many = family.sample(np.full((1, 1), 2.0), 100_000, rng)[0]
    # Six standard errors: false alarms once in 5e8 runs.
    assert abs(many.mean() - family.mean([[2.0]])[0]) < 6 * np.sqrt(family.var([[2.0]])[0] / 1e5)
    scores = family.score_and_fisher(many, np.full((100_000, 1), np.log(2.0)))[0]
    assert scores.var() == pytest.approx(fisher[0, 0], rel=0.1)


def test_own_metric_in_a_comparison(rows):
    X, y = rows
    table = compare([BayesianRidge()], X, y, cv=2, metrics=["rmse", worst_decile]).set_index("metric")
    assert table.loc["worst_decile", "better"] == "lower"
    assert table.loc["worst_decile", "mean"] > table.loc["rmse", "mean"]


def test_own_booster_samples_the_posterior():
    # One leaf of n rows, noise variance 1: states of an AR(1) chain with variance 1 / (n (1 - eps / 2)).
    n, eps = 10, 0.2
    X, y = np.zeros((n, 1)), np.random.default_rng(0).normal(size=n)
    chain = TreeChain(SquaredError(1.0), Constant(), learning_rate=eps).fit(X, y, n_iterations=3000)
    states = chain.states(X[:1], np.arange(100, 3001, 10))[0, :, 0]
    # 291 nearly independent draws: six standard errors are 6 sqrt(2 / 290) = 0.5.
    assert states.var() == pytest.approx(1 / (n * (1 - eps / 2)), rel=0.5)
    assert abs(states.mean() - y.mean()) < 6 / np.sqrt(n * 290)


def test_own_booster_is_read_by_the_ensemble(rows):
    X, y = rows
    mask, schedule = BernoulliMask(0.7), CosineCycle(length=10)
    chain = TreeChain(Logistic(), schedule, mask).fit(X, (y > 0).astype(float), 40, max_depth=2)
    ensemble = VirtualEnsemble(chain)
    assert ensemble.members(X).shape == (80, 4, 1)
    u = ensemble.uncertainty(X)
    assert (u.knowledge > 0).all()
    assert (ensemble.predict(X) == (y > 0)).mean() > 0.7


def test_own_booster_without_noise_is_plain_boosting(rows):
    X, y = rows
    chain = TreeChain(SquaredError(1.0), Constant(), temperature=np.inf).fit(X, y, 15, max_depth=2)
    raw = np.full(len(y), y.mean())
    for tree in chain.trees:
        np.testing.assert_allclose(tree.predict(X), tree.fit(X, y - raw).predict(X), atol=1e-12)
        raw += 0.1 * tree.predict(X)
    np.testing.assert_allclose(chain.states(X, [15])[:, 0, 0], raw)
