"""Labels, tiny samples, threads and tuners: what users of any estimator ran into, on small networks."""

from __future__ import annotations

import threading
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from boostplugins.estimators.hnn import HNNRegressor
from boostplugins.estimators.mc_dropout import MCDropoutRegressor
from boostplugins.estimators.usnrt import USNRTRegressor
from boostplugins.usnrt.growth import hold_out

QUICK = {"max_epochs": 12, "patience": 4, "learning_rate_drops": 0}
ALL = [
    USNRTRegressor(n_members=2, min_samples_leaf=60, split_hidden=(8,), leaf_hidden=(6, 4), **QUICK),
    HNNRegressor(n_members=2, hidden=(8, 4), **QUICK),
    MCDropoutRegressor(n_draws=10, hidden=(12, 6), dropout=0.2, **QUICK),
]
each = pytest.mark.parametrize("model", ALL, ids=lambda m: type(m).__name__)


def steps(n=300, seed=0):
    """Noise that jumps with the first of three features."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 3))
    return X, X[:, 1] + rng.normal(size=n) * np.where(X[:, 0] < 0.5, 0.1, 1.0)


@each
def test_i08_labels_are_numbers_or_refused(model):
    X, y = steps()
    for labels in ([1, 2, 5], [-1, 1]):
        coded = np.array(labels)[np.digitize(y, np.quantile(y, [0.3, 0.6][: len(labels) - 1]))]
        fitted = clone(model).fit(X, coded)
        np.testing.assert_array_equal(fitted.predict(X), clone(model).fit(X, coded.astype(float)).predict(X))
        assert min(labels) - 1 < fitted.predict(X).mean() < max(labels) + 1
        assert np.isfinite(fitted.log_score(X, np.full(300, 9)))  # a value never seen is no error
    with pytest.raises(ValueError, match="y must be numeric"):
        clone(model).fit(X, np.where(y > 0, "b", "a"))
    # Folds of sorted labels lack one of them each.
    folds = cross_val_score(clone(model), X, np.sort(np.digitize(y, [-0.5, 1.0])), cv=3)
    assert np.isfinite(folds).all()


@each
def test_i09_tiny_data_leave_rows_to_train_and_to_check(model):
    for n in (2, 3, 5):
        for share in (0.01, 0.99):
            held_out = hold_out(n, share, 3, 0)
            assert (held_out.sum(axis=1) >= 1).all()
            assert (held_out.sum(axis=1) < n).all()
            X, y = steps(n)
            least = {"min_samples_leaf": 2} if isinstance(model, USNRTRegressor) else {}
            fitted = clone(model).set_params(validation_fraction=share, max_epochs=2, **least).fit(X, y)
            assert np.isfinite(fitted.predict_interval(X)).all()
    for share in (0.0, 1.0, -0.5):
        with pytest.raises(ValueError, match="validation_fraction"):
            clone(model).set_params(validation_fraction=share).fit(*steps(5))


def threads_now():
    """Threads of this process, those of libraries too where the system tells."""
    tasks = Path("/proc/self/task")
    return sum(1 for _ in tasks.iterdir()) if tasks.exists() else threading.active_count()


@pytest.mark.parametrize("jobs", [None, 1, 4])
def test_i10_threads_are_as_many_as_asked_for(jobs):
    X, y = steps()
    before, seen = threads_now(), []
    model = clone(ALL[0]).set_params(n_members=6, n_jobs=jobs)
    model.fit(X, y, callback=lambda _: seen.append(threads_now()))
    # joblib keeps three helper threads beside its workers, and every level of the tree has a pool of
    # its own, whose threads may still be ending when the next one starts.
    assert max(seen) <= before + (0 if jobs in (None, 1) else 2 * (jobs + 3))
    one_thread = clone(model).set_params(n_jobs=1).fit(X, y)
    np.testing.assert_array_equal(model.predict_dist(X).theta, one_thread.predict_dist(X).theta)


class Pruned(Exception):
    """What a tuner raises to end a hopeless fit."""


class Trial:
    """Stands for a tuner's trial: takes reports and prunes at the fifth."""

    def __init__(self):
        self.values = []

    def report(self, value):
        self.values.append(value)
        if len(self.values) == 5:
            raise Pruned


@each
@pytest.mark.parametrize("jobs", [1, 2])
def test_i12_pruning_reaches_the_tuner(model, jobs):
    X, y = steps()
    trial = Trial()
    with pytest.raises(Pruned):
        clone(model).set_params(n_jobs=jobs).fit(X, y, callback=lambda at: trial.report(at.loss))
    assert np.isfinite(trial.values).all()
    assert threading.active_count() < 10
    again = clone(model).fit(X, y)  # the next trial starts clean
    np.testing.assert_array_equal(again.predict(X), clone(model).fit(X, y).predict(X))


@each
def test_i12_refit_with_the_best_epochs_repeats_the_early_stopped_fit(model):
    X, y = steps()
    model = clone(model).set_params(max_epochs=400, patience=8)
    losses = defaultdict(list)

    def collect(at):
        losses[at.member, at.node, at.network].append((at.epoch, at.loss))

    first = clone(model).fit(X, y, callback=collect)
    runs = []  # a network trained in two rounds reports two runs of epochs
    for reports in losses.values():
        for epoch, loss in reports:
            if epoch == 0:
                runs.append([])
            runs[-1].append(loss)
    best = max(int(np.argmin(run)) for run in runs)
    assert 0 < best < 392  # every network stopped before the limit
    again = clone(model).set_params(max_epochs=best).fit(X, y)
    np.testing.assert_array_equal(again.predict_dist(X).theta, first.predict_dist(X).theta)
