"""Every public estimator inside scikit-learn's tools, on tables of other libraries, on sparse features."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, StackingRegressor, VotingClassifier
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from boostplugins import HBARTRegressor, HBARTRegressorCV
from tests.cases.catalogue import ALL, CLASSIFIERS, REGRESSORS, answers, build, names, problem

each = pytest.mark.parametrize("name", names(ALL))
pytestmark = pytest.mark.filterwarnings("ignore::boostplugins.MixingWarning")
# A setting of each that a search may vary.
VARIED = {
    "SGLB": {"learning_rate": [0.05, 0.1]},
    "Distributional": {"learning_rate": [0.05, 0.1]},
    "SoftTree": {"max_leaves": [2, 3]},
    "SoftForest": {"max_leaves": [2, 3]},
    "SoftBoosting": {"learning_rate": [0.05, 0.1]},
    "USNRT": {"alpha": [0.01, 0.05]},
    "HNN": {"beta": [0.0, 0.5]},
    "MCDropout": {"dropout": [0.1, 0.2]},
    "BART": {"k": [1.0, 2.0]},
    "HBART": {"k": [1.0, 2.0]},
    "HBART-CV": {"estimator__k": [1.0, 2.0]},
}


def varied(name):
    return VARIED.get(name) or VARIED[name.split("-")[0]]


_CHAINS = {"n_trees": 5, "n_burn": 15, "n_draws": 15, "n_chains": 2, "random_state": 0}


@pytest.mark.filterwarnings("ignore:y is constant:UserWarning")
@parametrize_with_checks(
    [HBARTRegressorCV(HBARTRegressor(**_CHAINS), {"k": [2.0]}, cv=2)],
    expected_failed_checks=lambda estimator: {
        "check_sample_weight_equivalence_on_dense_data": "weights are precisions, and rows go to folds"
    },
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def mixed(name, n=60):
    X, y = problem(name, n=n)
    colour = np.array(["red", "green", "blue"])[np.digitize(X[:, 0], [-0.4, 0.4])]
    return pd.DataFrame({"colour": colour, "x": X[:, 1], "z": X[:, 2]}), y


@each
def test_i01_i02_d05_pipelines_searches_and_scores(name):
    """A pipeline with a ColumnTransformer under a grid search; scores of folds are finite."""
    frame, y = mixed(name)
    encoder = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    columns = ColumnTransformer([("words", encoder, ["colour"]), ("numbers", StandardScaler(), ["x", "z"])])
    pipeline = make_pipeline(columns.set_output(transform="pandas"), build(name))
    settings = {f"{pipeline.steps[-1][0]}__{key}": values for key, values in varied(name).items()}
    search = GridSearchCV(pipeline, settings, cv=2).fit(frame, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    model = search.best_estimator_[-1]
    assert list(model.feature_names_in_)[:2] == ["words__colour_blue", "words__colour_green"]
    assert len(search.predict(frame)) == 60
    copy = clone(model)
    assert repr(copy.get_params()) == repr(model.get_params())
    scoring = "neg_log_loss" if is_classifier(model) else "neg_root_mean_squared_error"
    assert np.isfinite(cross_val_score(pipeline, frame, y, cv=3, scoring=scoring)).all()


@pytest.mark.slow
@each
def test_f14_i10_b11_searches_in_two_processes(name):
    X, y = problem(name)
    search = GridSearchCV(build(name), varied(name), cv=2, n_jobs=2).fit(X, y)
    alone = GridSearchCV(build(name), varied(name), cv=2).fit(X, y)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(answers(search.best_estimator_, X), answers(alone.best_estimator_, X))


@pytest.mark.parametrize("name", names(CLASSIFIERS))
def test_calibration_and_votes_of_classifiers(name):
    X, y = problem(name)
    calibrated = CalibratedClassifierCV(build(name), cv=2).fit(X, y)
    proba = calibrated.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert (calibrated.predict(X) == y).mean() > 0.7
    votes = VotingClassifier([("one", build(name)), ("two", build(name))], voting="soft").fit(X, y)
    np.testing.assert_allclose(votes.predict_proba(X), build(name).fit(X, y).predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("name", names(REGRESSORS))
def test_regressors_inside_others(name):
    X, y = problem(name)
    scaled = TransformedTargetRegressor(build(name), transformer=StandardScaler()).fit(X, y)
    assert np.isfinite(scaled.predict(X)).all()
    stack = StackingRegressor([("it", build(name))], LinearRegression(), cv=2).fit(X, y)
    assert np.isfinite(stack.predict(X)).all()
    importance = permutation_importance(scaled, X, y, n_repeats=2, random_state=0).importances_mean
    assert np.isfinite(importance).all()


def test_bags():
    X, y = problem("SoftTree")
    bag = BaggingRegressor(build("SoftTree"), n_estimators=2, random_state=0).fit(X, y)
    assert bag.score(X, y) > 0.3


@each
def test_metadata_reach_fit_and_score(name):
    """Weights go through a pipeline under a cross-validation by scikit-learn's routing."""
    if name == "BART-classes":
        # Without the argument there is nothing for scikit-learn to route.
        pytest.skip("BARTClassifier.fit has no sample_weight: a latent normal has no precision to weight")
    X, y = problem(name)
    weight = np.linspace(0.5, 2.0, 60)
    with sklearn.config_context(enable_metadata_routing=True):
        model = build(name).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        scores = cross_val_score(pipeline, X, y, cv=2, params={"sample_weight": weight})
        assert np.isfinite(scores).all()
        routed = pipeline.fit(X, y, sample_weight=weight)
        silent = make_pipeline(StandardScaler(), build(name).set_fit_request(sample_weight=False))
        silent.fit(X, y)
    scaled = StandardScaler().fit_transform(X)
    by_hand = build(name).fit(scaled, y, sample_weight=weight)
    np.testing.assert_array_equal(answers(routed[-1], scaled), answers(by_hand, scaled))


def test_offsets_and_held_out_rows_are_routed():
    X, y = problem("Distributional-lightgbm")
    offset = np.full(60, 2.0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = build("Distributional-lightgbm").set_fit_request(offset=True).set_predict_request(offset=True)
        pipeline = make_pipeline(StandardScaler(), model).fit(X, y + 2.0, offset=offset)
        found = pipeline.predict(X, offset=offset)
        folds = cross_val_predict(pipeline, X, y, cv=2, params={"offset": offset})
    np.testing.assert_allclose(found, pipeline.predict(X) + 2.0)
    assert np.isfinite(folds).all()


@each
def test_i05_arrow_columns(name):
    pytest.importorskip("pyarrow", reason="pyarrow is an optional kind of column")
    X, y = problem(name, n=50)
    plain = pd.DataFrame(
        {"a": np.round(X[:, 0], 2), "b": np.round(3 * X[:, 1]).astype(int), "c": X[:, 2] > 0}
    )
    plain["d"] = np.where(X[:, 0] > 0, "left", "right")
    arrow = plain.convert_dtypes(dtype_backend="pyarrow")
    assert all("pyarrow" in str(kind) for kind in arrow.dtypes)
    expected = answers(build(name).fit(plain, y), plain)
    found = answers(build(name).fit(arrow, y), arrow)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    holes = arrow.copy()
    holes.iloc[::7, 0] = pd.NA
    assert np.isfinite(answers(build(name).fit(holes, y), holes)).all()


@each
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_features_are_one_clear_error(name, kind):
    X, y = problem(name)
    with pytest.raises(TypeError, match="[Ss]parse data was passed|[Ss]parse"):
        build(name).fit(kind(X), y)
    model = build(name).fit(X, y)
    with pytest.raises(TypeError, match="[Ss]parse"):
        model.predict(kind(X))


@each
def test_sparse_columns_of_a_frame_are_columns(name):
    X, y = problem(name)
    X = np.where(np.abs(X) < 0.3, 0.0, X)
    frame = pd.DataFrame(X, columns=list("abc"))
    thin = frame.astype(pd.SparseDtype("float64", 0.0))
    np.testing.assert_allclose(
        answers(build(name).fit(thin, y), thin), answers(build(name).fit(frame, y), frame)
    )
