"""Bayesian trees at the ends of their arguments: extreme priors, collinear covariates, odd requests."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from boostplugins import BARTClassifier, BARTRegressor, HBARTRegressor, HBARTRegressorCV
from boostplugins.estimators._bart_base import MixingWarning
from tests.estimators.bart_cases import FEW, SHORT, build, data, each, quiet

pytestmark = quiet
HUGE = 10**400  # no float


@pytest.mark.parametrize(
    ("params", "rule"),
    [
        ({"k": 1e-300}, r"k must be a finite number in \[1e-09, inf\)"),
        ({"k": HUGE}, "k must be a finite number"),
        ({"nu": 1e-320}, "nu must be a finite number in"),
        ({"nu": -HUGE}, "nu must be a finite number"),
        ({"q": 1e-17}, "q must be a finite number in"),
        (
            {"gamma_prior_variance": 1e15},
            r"gamma_prior_variance must be a finite number in \[1e-09, 1e\+06\]",
        ),
        ({"gamma_prior_variance": 1e-320}, "gamma_prior_variance must be"),
        ({"variance": "forest", "variance_spread": 1e-300}, "variance_spread must be"),
        ({"variance": "forest", "variance_spread": 1e300}, "variance_spread must be"),
        ({"moves": (0.3, 0.3, np.nan)}, "moves must be three or four chances"),
        ({"moves": "abc"}, "moves must be three or four chances"),
        ({"moves": None}, "moves must be three or four chances"),
        ({"variance_features": 5}, "variance_features must be None, a list of columns or a function"),
        ({"variance_features": [0.5]}, "a column must be its number or its name, got 0.5"),
        ({"cat_features": 0}, r"cat_features must be a list of columns, got 0; write \[0\]"),
    ],
)
def test_arguments_beyond_what_floats_bear_are_refused(params, rule):
    X, y = data(30)
    with pytest.raises((ValueError, TypeError), match=rule):
        HBARTRegressor(**{**SHORT, **params}).fit(X, y)


@pytest.mark.parametrize(
    "params",
    [
        {"k": 1e-9},
        {"k": 1e300},
        {"nu": 1e-9},
        {"nu": 1e300},
        {"q": 1e-9},
        {"q": 1 - 1e-16},
        {"alpha": 1e-320},
        {"alpha": 1 - 1e-16, "beta": 0},
        {"beta": 1e300},
        {"min_samples_leaf": 10**30},
        {"gamma_prior_variance": 1e-9},
        {"gamma_prior_variance": 1e6},
        {"variance": "forest", "variance_spread": 1e-4},
        {"variance": "forest", "variance_spread": 1e4},
        {"moves": [1e-9, 1e-9, 1 - 2e-9]},
    ],
)
def test_arguments_at_their_ends_give_finite_predictions(params):
    X, y = data(60)
    with pytest.warns(UserWarning, match="y is constant"):
        constant = HBARTRegressor(**{**SHORT, **params}).fit(X, np.full(60, 3.0))
    np.testing.assert_allclose(constant.predict(X), 3.0, atol=1e-6)
    dist = HBARTRegressor(**{**SHORT, **params}).fit(X, y).predict_dist(X)
    assert np.isfinite(dist.interval(0.9)).all()
    assert (dist.std() > 0).all()


@pytest.mark.parametrize("variance", [1.0, 1000.0, 1e6])
def test_a_duplicate_of_a_variance_covariate_changes_no_prediction(variance):
    X, y = data(200, p=2)
    alone, twice = (
        HBARTRegressor(variance_features=features, gamma_prior_variance=variance, **FEW).fit(X, y)
        for features in ([1], [1, 1])
    )
    assert twice.acceptance_["gamma"] > 0.7
    # What the two do together is known, up to about 200 effective draws of each fit; and each by its prior.
    single, both = (model.posterior_draws()["gamma"] for model in (alone, twice))
    together = both.sum(axis=2)
    assert together.mean() == pytest.approx(single.mean(), abs=0.6 * single.std())
    assert together.std() == pytest.approx(single.std(), rel=0.4)
    unit = X[:, 1].std()
    assert np.subtract(*both.T).std() * unit == pytest.approx(np.sqrt(2 * variance), rel=0.4)
    ratio = twice.predict_dist(X).std() / alone.predict_dist(X).std()
    assert 0.8 < ratio.min() < ratio.max() < 1.25


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_effects_of_levels_are_told_against_the_average_level(missing):
    """The number that all levels' effects share is the prior's alone, and has no effect."""
    rng = np.random.default_rng(0)
    level = rng.choice(3, 400, p=[0.5, 0.3, 0.2])
    X = pd.DataFrame({"a": rng.normal(size=400), "c": np.array(list("uvw"), dtype=object)[level]})
    y = np.exp(0.5 * level) * rng.normal(size=400)
    X.loc[rng.random(400) < missing, "c"] = None
    model = HBARTRegressor(**FEW).fit(X, y)
    names = ["a", "c=u", "c=v", "c=w", *(["c missing"] if missing else [])]
    assert list(model.variance_names_) == names
    gamma = model.posterior_draws()["gamma"]
    share = [
        X["c"].isna().mean() if name == "c missing" else (X["c"] == name[2:]).mean() for name in names[1:]
    ]
    np.testing.assert_allclose(gamma[:, :, 1:] @ share, 0.0, atol=1e-9)
    assert gamma.std(axis=(0, 1)).max() < 0.5  # it was 35
    noise = np.log(model.posterior_draws(X.assign(a=0.0))["noise"])
    of_u, of_w = (noise[:, :, np.flatnonzero(X["c"] == name)[0]] for name in "uw")
    np.testing.assert_allclose(2 * (of_w - of_u), gamma[:, :, 3] - gamma[:, :, 1], atol=1e-6)


def test_proposals_that_are_never_accepted_are_told_and_slices_always_move():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 80)), rng.normal(size=100)
    with pytest.warns(
        MixingWarning, match=r"R-hat of gamma\[x0\] is inf.*gamma_proposal='slice' always moves"
    ):
        stuck = HBARTRegressor(**SHORT).fit(X, y)
    assert stuck.acceptance_["gamma"] == 0
    moving = HBARTRegressor(gamma_proposal="slice", **SHORT).fit(X, y)
    assert moving.acceptance_["gamma"] == 1
    assert np.isfinite(moving.predict_dist(X).std()).all()


@pytest.mark.parametrize("kind", ["BART", "forest"])
def test_a_single_level_tells_by_its_being_missing(kind):
    rng = np.random.default_rng(0)
    there = rng.random(200) < 0.5
    X = pd.DataFrame({"note": np.where(there, "yes", None)})
    y = 3.0 * there + np.where(there, 0.5, 0.1) * rng.normal(size=200)
    dist = build(kind, **FEW).fit(X, y).predict_dist(pd.DataFrame({"note": ["yes", None, "new"]}))
    np.testing.assert_allclose(dist.mean(), [3.0, 0.0, 0.0], atol=0.2)
    if kind == "forest":
        yes, missing, new = dist.std()
        assert yes > 2 * missing
        assert missing == new


@each
def test_only_ratios_of_weights_count_and_their_sum_is_finite(kind):
    X, y = data(40)
    weight = np.linspace(0.5, 1.0, 40)
    for size in (1e-300, 1e300):
        one, other = (build(kind, **SHORT).fit(X, y, w).predict(X) for w in (weight, size * weight))
        np.testing.assert_allclose(other, one, rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match="sample_weight must have a finite sum, got infinity"):
        build(kind, **SHORT).fit(X, y, 1.7e308 * weight)


def test_a_fit_that_fails_leaves_the_earlier_one_whole():
    X = pd.DataFrame({"c": list("ab") * 20})
    y = np.arange(40.0)
    model = BARTRegressor(**SHORT).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="y must be finite"):
        model.fit(X.assign(c=list("bz") * 20), np.full(40, np.nan))
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("model", [HBARTRegressor(), BARTClassifier()])
@pytest.mark.parametrize("method", ["inclusion_proportions", "interaction_counts", "posterior_draws"])
def test_no_draws_before_the_fit(model, method):
    with pytest.raises(NotFittedError):
        getattr(model, method)()


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.random(80), "c": rng.choice(list("ab"), 80)})
    return HBARTRegressor(**SHORT).fit(X, 5 * X["x"] + (X["c"] == "b")), X


def test_grids_of_levels_by_name_and_of_one_number(fitted):
    model, X = fitted
    by_name = model.partial_dependence(X, "c", grid=["b", "a"])
    np.testing.assert_array_equal(by_name["mean"], model.partial_dependence(X, "c", grid=[1, 0])["mean"])
    assert model.partial_dependence(X, "x", grid=0.5)["mean"].shape == (1,)
    assert model.partial_dependence(X, "c", grid=np.nan)["mean"].shape == (1,)


@pytest.mark.parametrize(
    ("feature", "grid", "rule"),
    [
        ("c", ["z"], r"grid must hold levels of 'c', \['a', 'b'\], or their numbers, got \['z'\]"),
        ("c", [70_000], "grid must hold levels of 'c'"),
        ("c", [0.5], "grid must hold levels of 'c'"),
        ("x", [], "grid must be a number or have shape"),
        ("x", [[0.1, 0.2]], r"grid must be a number or have shape \(n_grid,\), got \(1, 2\)"),
        (0.7, None, "a column must be its number or its name"),
        (True, None, "a column must be its number or its name"),
    ],
)
def test_odd_grids_are_refused(fitted, feature, grid, rule):
    model, X = fitted
    with pytest.raises((ValueError, TypeError), match=rule):
        model.partial_dependence(X, feature, grid=grid)


def test_requests_that_do_not_fit_the_rows_are_refused(fitted):
    model, X = fitted
    with pytest.raises(ValueError, match="grid must be given for 'x', of which X has no value"):
        model.partial_dependence(X.assign(x=np.nan), "x")
    with pytest.raises(ValueError, match="X must have at least one row"):
        model.predict(X[:0])
    with pytest.raises(ValueError, match="X and y must have as many rows, got 9 and 80"):
        model.log_score(X[:9], np.zeros(80))
    with pytest.raises(ValueError, match="sample_weight must be >= 0"):
        model.log_score(X, np.zeros(80), -np.ones(80))
    for q in ([], [[0.1, 0.2]]):
        with pytest.raises(ValueError, match="q must be a number or have shape"):
            model.predict_quantiles(X, q)


def test_infinity_and_dictionaries_of_arrow_as_categories():
    y = np.arange(40.0)
    X = np.where(np.arange(40) % 2, np.inf, 1.0)[:, None]
    assert BARTRegressor(cat_features=[0], **SHORT).fit(X, y)._columns.levels == (("1", "inf"),)
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    kind = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    table = pd.DataFrame({"c": list("ab") * 20})
    np.testing.assert_array_equal(
        BARTRegressor(**SHORT).fit(table.astype(kind), y).predict(table.astype(kind)),
        BARTRegressor(**SHORT).fit(table, y).predict(table),
    )


@pytest.mark.parametrize(
    ("y", "rule"),
    [
        (np.array(["a", None] * 10, dtype=object), "y must have a label in every row, got missing ones"),
        (pd.Series(["a", None] * 10, dtype="string"), "y must have a label in every row"),
        (pd.Series([True, None, False, True] * 5, dtype="boolean"), "y must have a label in every row"),
        (np.array(["a", 1] * 10, dtype=object), r"y must hold labels of one type, got \['int', 'str'\]"),
        (np.eye(20, 2, dtype=int), r"y must have shape \(n_samples,\), got \(20, 2\)"),
    ],
)
def test_labels_that_are_none_are_refused(y, rule):
    with pytest.raises(ValueError, match=rule):
        BARTClassifier(**SHORT).fit(np.zeros((20, 1)), y)


def test_rows_of_weight_0_are_in_no_fold():
    X, y = data(40)
    weight = np.repeat([0.0, 1.0], 20)
    small = HBARTRegressor(n_trees=3, n_burn=10, n_draws=10, n_chains=1, random_state=0)
    all_rows, some = (HBARTRegressorCV(small, {"k": [1.0, 3.0]}, cv=2) for _ in range(2))
    all_rows.fit(X, y, weight)
    some.fit(X[20:], y[20:])
    assert all_rows.cv_results_ == some.cv_results_
    np.testing.assert_array_equal(all_rows.predict(X), some.predict(X))
    with pytest.raises(TypeError, match="estimator must be an HBARTRegressor, got 'k'"):
        HBARTRegressorCV("k").fit(X, y)


def test_a_function_of_other_covariates_than_in_training_is_refused():
    X, y = data(40)
    model = HBARTRegressor(variance_features=lambda X: X[:, : 1 + (len(X) > 9)], **SHORT).fit(X, y)
    with pytest.raises(ValueError, match="must return as many covariates as in training, 2, got 1"):
        model.predict_dist(X[:9])


@pytest.mark.parametrize("k", ["sample", 3.0])
def test_draws_tell_of_the_fit_whatever_is_set_after_it(k):
    X, y = data(40)
    model = BARTRegressor(k=k, **SHORT).fit(X, y).set_params(k=2.0 if k == "sample" else "sample")
    assert ("k" in model.posterior_draws()) == (k == "sample")
