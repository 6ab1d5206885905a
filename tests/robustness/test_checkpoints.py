"""Long fits survive: killed anywhere, they go on to the bits of a fit that nobody killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import lightgbm as lgb
import numpy as np
import pytest
from sklearn.base import clone

import boostplugins
from boostplugins import catboost, checkpoints, lightgbm
from boostplugins.checkpoints import Checkpoint, fingerprint
from boostplugins.losses import SquaredError

from .killed_fit import LONGER, compared, settings
from .small_models import MAKERS, fitted, make, predictor, rows, target

SAMPLERS = ("bart_regressor", "bart_classifier", "hbart", "hbart_forest")
LIGHTGBM = ("sglb_classifier_lightgbm", "sglb_regressor_lightgbm")
CATBOOST = ("sglb_classifier_catboost", "sglb_regressor_catboost")
KEPT = (*SAMPLERS, *LIGHTGBM, *CATBOOST)
STOPPED = {"validation_fraction": 0.3, "early_stopping_rounds": 3}


class Killed(BaseException):
    """What no code of ours catches."""


def test_every_estimator_of_long_fits_has_checkpoints():
    named = {name for name in MAKERS if "checkpoint" in make(name).get_params(deep=False)}
    assert named == set(KEPT)


def kill_after(monkeypatch, n_saves):
    left = [n_saves]
    save = Checkpoint.save

    def save_and_die(self, *args, **options):
        save(self, *args, **options)
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    monkeypatch.setattr(Checkpoint, "save", save_and_die)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        *((name, {}) for name in (*SAMPLERS, *LIGHTGBM)),
        ("sglb_regressor_lightgbm", {"n_chains": 2, "n_estimators": 12, **STOPPED}),
        ("sglb_classifier_lightgbm", {"loss": "softmax", **STOPPED}),
        ("sglb_regressor_lightgbm", {"loss": "normal", "mask": boostplugins.BernoulliMask(0.6)}),
        ("sglb_regressor_lightgbm", {"temperature": 1e6, "booster_params": {"leaf_noise": "shared"}}),
    ],
)
def test_f07_a_fit_killed_after_any_checkpoint_goes_on_to_the_same_bits(name, more, tmp_path, monkeypatch):
    path = tmp_path / "checkpoint"
    expected = predictor(fitted(name, **more))(rows())
    for _ in range(2):
        with monkeypatch.context() as patch:
            kill_after(patch, 1)
            with pytest.raises(Killed):
                fitted(name, checkpoint=path, checkpoint_every=2, **more)
        assert path.exists()
    if name in SAMPLERS:
        started = []
        unpack = boostplugins.estimators._bart_base.unpack_runs
        monkeypatch.setattr(
            boostplugins.estimators._bart_base,
            "unpack_runs",
            lambda *args: started.append(unpack(*args)),
        )
    found = fitted(name, checkpoint=path, checkpoint_every=2, **more)
    if name in SAMPLERS:
        assert len(started) == 1
    np.testing.assert_array_equal(predictor(found)(rows()), expected)
    assert list(tmp_path.iterdir()) == []


class Stop(Exception):
    """Raised by a callback."""


class After:
    """Callback that ends a training, and counts."""

    def __init__(self, limit=None):
        self.seen, self.limit = [], limit

    def after_iteration(self, info):
        self.seen.append(info.iteration)
        if len(self.seen) == self.limit:
            raise Stop


@pytest.mark.parametrize(
    ("name", "more"),
    [
        *((name, {}) for name in CATBOOST),
        ("sglb_classifier_catboost", {"loss": "softmax", **STOPPED}),
        ("sglb_regressor_catboost", {"prior": boostplugins.RandomPrior(), "shrink": 0.1, **STOPPED}),
        ("sglb_regressor_catboost", {"cat_features": [1], "mask": boostplugins.BernoulliMask(0.6)}),
    ],
)
def test_f07_snapshots_of_catboost_go_on_to_the_same_bits(name, more, tmp_path):
    path = tmp_path / "checkpoint"
    more = {"n_chains": 1, **more}
    X = rows().round(1) if "cat_features" in more else rows()
    weight = 1.0 + (np.arange(len(X)) % 3)

    def fit(callback, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make(name, **more, **options).fit(X, target(name), weight, callbacks=[callback])

    expected = predictor(fit(After()))(X)
    kept = {"checkpoint": path, "checkpoint_every": 1}
    for limit in (2, 1):
        with pytest.raises(Stop):
            fit(After(limit), **kept)
    last = After()
    np.testing.assert_array_equal(predictor(fit(last, **kept))(X), expected)
    assert last.seen[0] == 4
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["hbart", "sglb_classifier_lightgbm", "sglb_classifier_catboost"])
def test_checkpoints_of_other_fits_and_damaged_ones_are_refused(name, tmp_path, monkeypatch):
    path = tmp_path / "checkpoint"
    kill_after(monkeypatch, 1)
    with pytest.raises(Killed):
        fitted(name, checkpoint=path, checkpoint_every=2)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="belongs to a fit of other data, settings or versions; remove"):
        fitted(name, checkpoint=path, random_state=7)
    with pytest.raises(ValueError, match="belongs to a fit of other data"):
        make(name, checkpoint=path).fit(rows() + 1e-9, target(name))
    content = path.read_bytes()
    path.write_bytes(content[:40] + b"?" + content[41:])
    with pytest.raises(ValueError, match="checkpoint is no saved model of boostplugins: its checksum"):
        fitted(name, checkpoint=path)


@pytest.mark.parametrize("name", ["hbart", "sglb_classifier_lightgbm"])
def test_settings_of_checkpoints_are_checked(name, tmp_path):
    with pytest.raises(ValueError, match="random_state must be an integer with checkpoint"):
        fitted(name, checkpoint=tmp_path / "a", random_state=None)
    with pytest.raises(ValueError, match="checkpoint must be a file in a folder that exists"):
        fitted(name, checkpoint=tmp_path / "none" / "a")
    with pytest.raises(ValueError, match="checkpoint_every must be an integer >= 1"):
        fitted(name, checkpoint=tmp_path / "a", checkpoint_every=0)
    assert list(tmp_path.iterdir()) == []


def test_draws_that_cannot_be_gone_on_with_are_refused(tmp_path):
    for more in ({"feature_fraction": 0.5}, {"subsample_freq": 1, "subsample": 0.5}, {"boosting": "dart"}):
        with pytest.raises(ValueError, match="must be at its default with checkpoint"):
            fitted("sglb_classifier_lightgbm", checkpoint=tmp_path / "a", booster_params=more)


def test_fingerprints_go_by_content(tmp_path):
    X = rows()
    assert fingerprint(X, "a") == fingerprint(X.copy(), "a") != fingerprint(X, "b")
    assert fingerprint([X, None]) != fingerprint([None, X])
    assert fingerprint(lambda x: x)  # no pickle, still a name
    assert checkpoints._version("no such package") == ""


def test_chosen_arguments_leave_their_folds_without_checkpoints(tmp_path):
    model = make("hbart_cv")
    model.set_params(estimator=clone(model.estimator).set_params(checkpoint=tmp_path / "a"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows(), target("hbart_cv"))
    assert list(tmp_path.iterdir()) == []
    model.save(tmp_path / "model")
    assert type(model).load(tmp_path / "model").best_params_ == model.best_params_


def wait_for_changes(child, folder, number):
    """Wait until files of a folder have changed so many times: moments of the fit, not of the clock."""
    seen = set()
    while len(seen) <= number and child.poll() is None:
        with contextlib.suppress(FileNotFoundError):
            seen.add(tuple((path.name, path.stat().st_mtime_ns) for path in sorted(folder.rglob("*"))))
        time.sleep(0.001)


@pytest.mark.slow
# Windows has no such signal; fits broken off by exceptions are tested everywhere.
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")
def test_f07_twenty_kills_at_random_moments(tmp_path):
    """Kill -9 the same three fits and a comparison until they end; they go on where they stood."""
    expected = {name: predictor(fitted(name, **settings(name)))(rows()) for name in LONGER}
    expected["compare"] = compared()
    command = [sys.executable, "-W", "ignore", "-m", "tests.robustness.killed_fit", str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(Path(boostplugins.__file__).parents[1])}
    rng = np.random.default_rng(0)
    kills, ends = 0, 0
    while kills < 20 or ends == 0:
        child = subprocess.Popen([*command, *expected], env=environment, stdout=subprocess.PIPE, text=True)
        with child:
            child.stdout.readline()  # imports are done
            if kills < 20:
                wait_for_changes(child, tmp_path, int(rng.integers(6)))
                time.sleep(float(rng.uniform(0.0, 0.02)))
                child.kill()
            ended = child.wait() == 0
        kills, ends = kills + (not ended), ends + ended
        for path in tmp_path.glob("*.npy"):
            np.testing.assert_array_equal(np.load(path), expected[path.stem], err_msg=path.stem)
            path.unlink()
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["fits"]


class Break:
    """Callback that breaks a fit off at a tree."""

    def __init__(self, tree):
        self.tree = tree

    def after_iteration(self, info):
        if info.iteration == self.tree:
            raise RuntimeError("broken off")
        return True


@pytest.mark.parametrize("tree", [1, 2, 5])
def test_a_catboost_fit_broken_off_at_its_first_trees(tree, tmp_path):
    """CatBoost's first snapshot is of the beginning, and holds no tree."""
    name = "sglb_regressor_catboost"
    alone = predictor(fitted(name))(rows())
    model = make(name).set_params(checkpoint=tmp_path / "a", checkpoint_every=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(RuntimeError, match="broken off"):
            model.fit(rows(), target(name), callbacks=[Break(tree)])
        model.fit(rows(), target(name))
    np.testing.assert_array_equal(predictor(model)(rows()), alone)


def _library(booster, prior=None):
    """A chain of ten iterations through the functions of a booster, and its data."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=60)
    schedule = boostplugins.CosineCycle(length=5)
    if booster == "lightgbm":
        chain = lightgbm.CyclicalSGLB(SquaredError(0.1), schedule, prior=prior)
        params = chain.lightgbm_params(verbosity=-1, num_threads=1)
        return chain, params, lgb.Dataset(X, y, free_raw_data=prior is None), (10,)
    chain = catboost.CyclicalSGLB(SquaredError(0.1), schedule, prior=prior)
    params = chain.catboost_params(
        loss_function=chain, eval_metric="RMSE", iterations=10, thread_count=1, verbose=False
    )
    return chain, params, chain.pool(X, y), ()


class _Breaks(After):
    """The same for LightGBM."""

    def __call__(self, env):
        self.after_iteration(env)


def test_data_sets_of_a_session_serve_until_the_end(tmp_path):
    """Broken off and called again with the same object, as in a notebook; it is left as it was."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    chain, params, data, _ = _library("lightgbm")
    whole = lgb.train({**params, "objective": chain}, data, 10, callbacks=[chain.callback()])
    again = _library("lightgbm")[2]
    kept = {"checkpoint_every": 1}
    for limit in (3, 2):
        with pytest.raises(Stop):
            lightgbm.train_with_checkpoints(
                chain, params, again, 10, tmp_path / "a", callbacks=[_Breaks(limit)], **kept
            )
        assert again.data is None  # LightGBM let the rows go
    model = lightgbm.train_with_checkpoints(chain, params, again, 10, tmp_path / "a", **kept)
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))
    assert again.get_init_score() is None
    after = lgb.train({**params, "objective": chain}, again, 10, callbacks=[chain.callback()])
    np.testing.assert_array_equal(after.predict(X), whole.predict(X))


@pytest.mark.parametrize("booster", ["catboost", "lightgbm"])
def test_a_fit_with_other_prior_functions_is_another(booster, tmp_path):
    module = {"catboost": catboost, "lightgbm": lightgbm}[booster]
    more = {"checkpoint_every": 1, "callbacks": [_Breaks(3)]}
    for prior, error in ((1.0, pytest.raises(Stop)), (5.0, pytest.raises(ValueError, match="another"))):
        chain, params, data, rounds = _library(booster, boostplugins.RandomPrior(scale=prior))
        with error:
            module.train_with_checkpoints(chain, params, data, *rounds, tmp_path / "a", **more)


def test_other_pools_have_no_checkpoints(tmp_path):
    chain, params, pool, _ = _library("catboost")
    with pytest.raises(TypeError, match=r"pool must be made by chain.pool\(X, y, ...\), got Pool"):
        catboost.train_with_checkpoints(chain, params, pool.slice(list(range(30))), tmp_path / "a")
