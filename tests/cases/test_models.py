"""Fitted models that troubled users: seeds, copies, files, scores, silence (A06, C13, D, F03, H, I, J05)."""

from __future__ import annotations

import copy
import logging
import pickle
import warnings

import joblib
import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone, is_classifier
from sklearn.model_selection import cross_val_score
from sklearn.utils.validation import NotFittedError

from tests.cases.catalogue import ALL, CLASSIFIERS, REGRESSORS, answers, build, names, problem

each = pytest.mark.parametrize("name", names(ALL))
each_regressor = pytest.mark.parametrize("name", names(REGRESSORS))
each_classifier = pytest.mark.parametrize("name", names(CLASSIFIERS))
pytestmark = pytest.mark.filterwarnings("ignore::boostplugins.MixingWarning")


@each
def test_c13_f06_h04_a12_the_seed_is_enough(name):
    """Equal bits for a seed, whatever other random code and an earlier fit did; no trace in global state."""
    X, y = problem(name)
    model = build(name)
    settings = repr(model.get_params())
    first = answers(model.fit(X, y), X)
    np.random.seed(3)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    other = build(name).fit(X[::-1], y[::-1])
    np.testing.assert_array_equal(answers(other.fit(X, y), X), first)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    assert repr(model.get_params()) == settings


@each
def test_c13_other_kinds_of_seeds(name):
    if name == "HBART-CV":
        # Its estimator, HBARTRegressor, is one of the other names of this test.
        pytest.skip("HBARTRegressorCV has no random_state: the estimator that it searches holds the seed")
    X, y = problem(name, n=40)
    for seed in (None, np.random.RandomState(0)):
        assert np.isfinite(answers(build(name, random_state=seed).fit(X, y), X)).all()
    for bad in (-1, "seed"):
        with pytest.raises((ValueError, TypeError), match="random_state|seed"):
            build(name, random_state=bad).fit(X, y)


@each
def test_a06_fits_are_silent(name, capfd, caplog):
    X, y = problem(name)
    capfd.readouterr()
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        if "BART" in name:  # short chains are told to be short
            from boostplugins import MixingWarning

            warnings.simplefilter("ignore", MixingWarning)
        answers(build(name).fit(X, y), X)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


@each
def test_f03_h08_i04_b11_copies_and_files_are_the_model(name, tmp_path):
    X, y = problem(name)
    unfitted = pickle.loads(pickle.dumps(build(name)))
    model = build(name).fit(X, y)
    expected = answers(model, X)
    np.testing.assert_array_equal(answers(unfitted.fit(X, y), X), expected)
    joblib.dump(model, tmp_path / "model.joblib")
    model.save(tmp_path / "model")
    copies = {
        "pickle": pickle.loads(pickle.dumps(model)),
        "joblib": joblib.load(tmp_path / "model.joblib"),
        "deepcopy": copy.deepcopy(model),
        "file": type(model).load(tmp_path / "model"),
    }
    fitted = {key for key in vars(model) if key.endswith("_") and not key.startswith("_")}
    for kind, other in copies.items():
        np.testing.assert_array_equal(answers(other, X), expected, err_msg=kind)
        assert other.n_features_in_ == 3
        if kind != "file":
            assert fitted <= set(vars(other)), kind
    assert not [value for value in vars(model).values() if "numba" in type(value).__module__]
    assert len(pickle.dumps(model)) < 3_000_000


@each
def test_i01_clones_are_unfitted_and_equal(name):
    model = build(name)
    for other in (clone(model), clone(model.fit(*problem(name)))):
        assert repr(other.get_params()) == repr(model.get_params())
        with pytest.raises(NotFittedError):
            other.predict(np.zeros((1, 3)))
        with pytest.raises(NotFittedError):
            other.predict_uncertainty(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="Invalid parameter|has the settings|no_such"):
        model.set_params(no_such_setting=1)


@each_regressor
def test_d01_d05_d06_d08_one_predictive_tells_all(name):
    X, y = problem(name)
    model = build(name).fit(X, y)
    dist = model.predict_dist(X)
    np.testing.assert_allclose(model.predict(X), dist.mean(), rtol=1e-9)
    assert model.predict(X).shape == (60,)
    np.testing.assert_array_equal(model.predict_interval(X, 0.8), dist.interval(0.8))
    uncertainty = model.predict_uncertainty(X)
    np.testing.assert_allclose(uncertainty.total, dist.var(), rtol=1e-9)
    np.testing.assert_allclose(uncertainty.total, dist.std() ** 2, rtol=1e-9)  # variances, not deviations
    theta, weights = dist.theta, dist.weights
    if theta.ndim == 2:  # one member: all its uncertainty is the data's
        np.testing.assert_array_equal(uncertainty.knowledge, 0.0)
        theta = theta[:, None]
    elif weights is None:
        np.testing.assert_allclose(uncertainty.knowledge, theta[..., 0].var(axis=1), rtol=1e-8, atol=1e-10)
    if dist.family.name == "normal":
        density = stats.norm.pdf(y[:, None], theta[..., 0], theta[..., 1])
        by_hand = np.log(np.average(density, axis=1, weights=weights))
        np.testing.assert_allclose(dist.log_pdf(y), by_hand, atol=1e-8)
    assert model.log_score(X, y) == pytest.approx(dist.log_pdf(y).mean(), abs=1e-12)
    assert model.score(X, y) == pytest.approx(
        1 - np.sum((y - dist.mean()) ** 2) / np.sum((y - y.mean()) ** 2)
    )
    for scoring in ("r2", "neg_root_mean_squared_error"):
        assert np.isfinite(cross_val_score(model, X, y, cv=3, scoring=scoring)).all()


@each_regressor
def test_j05_quantiles_do_not_cross(name):
    X, y = problem(name)
    model = build(name).fit(X, y)
    levels = np.linspace(0.01, 0.99, 9)
    q = model.predict_quantiles(X, levels)
    assert (np.diff(q, axis=1) >= 0).all()
    dist = model.predict_dist(X)
    np.testing.assert_allclose(
        np.column_stack([dist.cdf(column) for column in q.T]), [levels] * 60, atol=1e-6
    )
    np.testing.assert_allclose(model.predict_interval(X, 0.98), q[:, [0, -1]])
    for bad in (0.0, 1.0, -0.1, np.nan):
        with pytest.raises(ValueError, match=r"coverage|\(0, 1\)"):
            model.predict_interval(X, bad)
    for bad in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="q must|probabilit|quantile"):
            model.predict_quantiles(X, [bad])


@each_classifier
def test_d06_d07_uncertainty_of_classes_is_in_nats(name):
    X, y = problem(name)
    model = build(name).fit(X, y)
    proba = model.predict_proba(X)
    uncertainty = model.predict_uncertainty(X)
    np.testing.assert_allclose(uncertainty.total, stats.entropy(proba.T), atol=1e-9)
    assert (uncertainty.total <= np.log(2) + 1e-12).all()
    if hasattr(model, "members"):
        logits = model.members(X)[..., 0]
        p = 1 / (1 + np.exp(-logits))
        data = stats.entropy(np.stack([p, 1 - p]), axis=0).mean(axis=1)
        np.testing.assert_allclose(uncertainty.data, data, atol=1e-9)


@each_regressor
def test_f07_training_rows_as_new_ones(name):
    """In-sample values are those of the same rows passed as new, in any order and copy."""
    X, y = problem(name)
    model = build(name).fit(X, y)
    order = np.random.default_rng(0).permutation(60)
    np.testing.assert_array_equal(answers(model, X.copy()[order]), answers(model, X)[order])
    np.testing.assert_array_equal(answers(model, X[[5, 5]])[0], answers(model, X[[5, 5]])[1])


@each
def test_h10_e01_bad_settings_are_found_before_any_work(name):
    """A setting of the wrong kind is one ValueError or TypeError that names it."""
    X, y = problem(name)
    model = build(name)
    if name == "HBART-CV":
        with pytest.raises(ValueError, match="n_trees"):
            build(name, param_grid={"n_trees": [0]}).fit(X, y)
        return
    for key, value in model.get_params(deep=False).items():
        if type(value) not in (int, float) or key in ("verbose", "checkpoint_every"):
            continue  # only said, or only used with a file
        for bad in ("much", np.nan):
            with pytest.raises(
                (ValueError, TypeError), match="seed|random_state" if key == "random_state" else key
            ):
                build(name, **{key: bad}).fit(X, y)
    if "n_jobs" in model.get_params():
        for bad in ("all", 0):
            with pytest.raises((ValueError, TypeError), match="n_jobs"):
                build(name, n_jobs=bad).fit(X, y)


def test_every_estimator_is_either():
    assert all(is_classifier(model) == (name in CLASSIFIERS) for name, model in ALL.items())
