"""Threads and processes: their number, their neighbours and how they were started change no bit."""

from __future__ import annotations

import multiprocessing
import os
import threading
import warnings

import joblib
import numpy as np
import pytest

from .small_models import MAKERS, fitted, make, predictor, rows, target

THREADED = [name for name in MAKERS if "n_jobs" in make(name).get_params(deep=False)]
# One of each kind of machinery: CatBoost, LightGBM, compiled trees, networks, samplers.
SOME = ("sglb_classifier_catboost", "distributional_lightgbm", "soft_forest", "hnn", "hbart_forest")


def digest(name, X, y, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return predictor(make(name, **more).fit(X, y))(X).tobytes()


def larger(name, n=2500):
    """Rows enough for boosters to share them out: CatBoost takes blocks of 1000."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 3))
    y = X[:, 0] + rng.normal(size=n)
    return X, (y > 0).astype(int) if "Classifier" in MAKERS[name][0] else y


@pytest.mark.parametrize("name", THREADED)
def test_h04_one_two_and_four_threads_give_the_same_bits(name):
    X, y = larger(name, 2500 if "sglb" in name or "distributional" in name else 60)
    assert len({digest(name, X, y, n_jobs=jobs) for jobs in (1, 2, 4)}) == 1


def test_estimators_without_threads_are_those_that_are_known():
    assert set(MAKERS) - set(THREADED) == {"soft_tree", "soft_boosting", "soft_classifier", "hbart_cv"}


@pytest.mark.parametrize("name", MAKERS)
def test_f11_two_fits_at_once_do_not_meet(name):
    """Each thread fits other rows; both must find what they find alone."""
    X, y = rows(), target(name)
    parts = [(X[:50], y[:50]), (X[10:], y[10:])]
    alone = [digest(name, *part) for part in parts]
    found = [b""] * len(parts)
    barrier = threading.Barrier(len(parts))

    def fit(place):
        barrier.wait()
        found[place] = digest(name, *parts[place])

    with warnings.catch_warnings():  # filters are the process's: both threads' own ones may end early
        warnings.simplefilter("ignore")
        threads = [threading.Thread(target=fit, args=(place,)) for place in range(len(parts))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == alone


def in_child(name):
    """Fit in another process."""
    return predictor(fitted(name))(rows()).tobytes()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn", "loky"])
def test_h05_children_of_a_process_that_has_fitted(method):
    """Children must neither hang on threads that they did not inherit nor find other numbers."""
    if method == "fork" and not hasattr(os, "fork"):
        # Windows cannot make such a child, and so nothing can go wrong in it.
        pytest.skip("this system has no fork: spawn and loky are tested")
    expected = [in_child(name) for name in SOME]
    if method == "loky":
        found = joblib.Parallel(n_jobs=2, backend="loky", timeout=300)(
            joblib.delayed(in_child)(name) for name in SOME
        )
    else:
        with multiprocessing.get_context(method).Pool(1) as pool:
            found = pool.map_async(in_child, SOME).get(timeout=300)
    assert found == expected
