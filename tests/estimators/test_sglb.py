"""SGLB estimators: scikit-learn's checks, labels, frames, early stopping, saving."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from boostplugins import BernoulliMask, CosineCycle, SGLBClassifier, SGLBRegressor
from boostplugins.losses import SquaredError

BOOSTERS = ["catboost", "lightgbm"]
SMALL = {"n_estimators": 20, "depth": 3, "n_jobs": 1}


def _known_differences(estimator):
    return {
        "check_sample_weight_equivalence_on_dense_data": (
            "noise is drawn for each row and features are binned by rows: a row of weight 2 and two rows are "
            "the same posterior, not the same draw"
        ),
    }


@parametrize_with_checks(
    [kind(booster=booster, **SMALL) for kind in (SGLBRegressor, SGLBClassifier) for booster in BOOSTERS],
    expected_failed_checks=_known_differences,
)
@pytest.mark.filterwarnings(
    "ignore:no feature varies", "ignore:the target does not", "ignore:A column-vector"
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, X[:, 0] + 0.3 * rng.normal(size=120)


@pytest.mark.parametrize("labels", [(3, 7), ("a", "b"), (False, True), (-1, 1), (1, 2, 5), ("x", "y", "z")])
@pytest.mark.parametrize("booster", BOOSTERS)
def test_a10_i08_labels_come_back(labels, booster):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.array(labels)[np.digitize(X[:, 0], np.linspace(-1, 1, len(labels) + 1)[1:-1])]
    model = SGLBClassifier(booster=booster, **SMALL).fit(X, y)
    assert model.classes_.tolist() == sorted(labels)
    assert set(model.predict(X)) <= set(labels)
    proba = model.predict_proba(X)
    assert proba.shape == (60, len(labels))
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert (model.predict(X) == y).mean() > 0.8


def test_a10_one_class_is_an_error():
    with pytest.raises(ValueError, match="y must hold at least 2 classes, got 1 class only"):
        SGLBClassifier(**SMALL).fit(np.zeros((5, 1)), ["a"] * 5)


def test_i08_unseen_class_in_the_eval_set(data):
    X, y = data
    model = SGLBClassifier(early_stopping_rounds=10, **SMALL)
    with pytest.raises(ValueError, match=r"eval_set must hold classes seen in training, got \[9\]"):
        model.fit(X, (y > 0).astype(int), eval_set=(X[:3], [0, 1, 9]))


@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.parametrize("scoring", ["r2", "neg_root_mean_squared_error"])
def test_d05_predictions_are_one_column(booster, scoring, data):
    X, y = data
    for loss in (None, "normal"):
        scores = cross_val_score(
            SGLBRegressor(loss, booster=booster, **SMALL), X[:90], y[:90], cv=3, scoring=scoring
        )
        assert np.isfinite(scores).all()


def test_d08_log_score_is_the_normal_density(data):
    X, y = data
    model = SGLBRegressor(SquaredError(0.2), schedule=CosineCycle(length=20), **SMALL).fit(X, y)
    expected = stats.norm.logpdf(y, model.members(X)[:, 0, 0], np.sqrt(0.2)).mean()
    assert model.log_score(X, y) == pytest.approx(expected, abs=1e-8)


def test_predictive_interface(data):
    X, y = data
    model = SGLBRegressor(n_estimators=60, depth=3, n_jobs=1).fit(X, y)
    assert model.predict_interval(X, 0.8).shape == (120, 2)
    q = model.predict_quantiles(X, [0.1, 0.5, 0.9])
    assert (np.diff(q, axis=1) >= 0).all()
    u = model.predict_uncertainty(X)
    np.testing.assert_allclose(model.predict_dist(X).var(), u.total, rtol=1e-9)
    assert model.n_members_ == 10


@pytest.mark.parametrize("booster", BOOSTERS)
def test_same_bits_for_a_seed_any_threads_and_global_state(booster, data):
    X, y = data
    settings = {"booster": booster, "n_estimators": 30, "depth": 3, "mask": BernoulliMask(0.5)}
    first = SGLBRegressor(n_jobs=1, **settings).fit(X, y).predict(X)
    np.random.seed(5)  # noqa: NPY002
    second = SGLBRegressor(n_jobs=2, **settings).fit(X, y).predict(X)
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, SGLBRegressor(random_state=1, n_jobs=1, **settings).fit(X, y).predict(X))


@pytest.mark.parametrize("booster", BOOSTERS)
def test_frames_categories_and_missing_values(booster):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"num": rng.normal(size=200), "cat": rng.choice(["a", "b", None], size=200)})
    frame["nullable"] = pd.array(rng.integers(0, 3, 200), dtype="Int64")
    frame.loc[::7, "num"] = np.nan
    frame.loc[::5, "nullable"] = pd.NA
    y = (frame["cat"] == "a") + frame["num"].fillna(0) + 0.1 * rng.normal(size=200)
    model = SGLBRegressor(booster=booster, n_estimators=60, depth=3, n_jobs=1).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["num", "cat", "nullable"]
    assert model.categorical_features_ == [1]
    assert model.score(frame, y) > 0.7
    new = frame.head(3).copy()
    new["cat"] = ["never seen", "b", None]
    assert np.isfinite(model.predict(new)).all()
    with pytest.raises(ValueError, match="feature names should match|same order"):
        model.predict(frame[["cat", "num", "nullable"]])
    shuffled = frame.sample(frac=1.0, random_state=0)
    np.testing.assert_allclose(model.predict(shuffled), model.predict(frame)[shuffled.index])


@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.parametrize("kind", ["float32", "fortran", "list", "readonly", "memmap", "strided", "polars"])
def test_kinds_of_input(booster, kind, data, tmp_path):
    X, y = np.round(data[0][:60], 3).astype(np.float32).astype(float), data[1][:60]
    model = SGLBRegressor(booster=booster, **SMALL).fit(X, y)
    expected = model.predict(X)
    if kind == "memmap":
        np.save(tmp_path / "x.npy", X)
        given = np.load(tmp_path / "x.npy", mmap_mode="r")
    elif kind == "readonly":
        given = X.copy()
        given.flags.writeable = False
    elif kind == "polars":
        polars = pytest.importorskip("polars", reason="polars is an optional kind of input")
        given = polars.DataFrame({str(i): X[:, i] for i in range(3)})
    else:
        given = {
            "float32": X.astype(np.float32),
            "fortran": np.asfortranarray(X),
            "list": X.tolist(),
            "strided": np.repeat(X, 2, axis=0)[::2],
        }[kind]
    again = SGLBRegressor(booster=booster, **SMALL).fit(given, y)
    np.testing.assert_allclose(again.predict(given), expected, atol=1e-5)


@pytest.mark.parametrize(
    "y", [[[1.0]] * 30, np.ones((30, 1)), pd.DataFrame({"y": np.ones(30)}), pd.Series(np.ones(30))]
)
@pytest.mark.filterwarnings("ignore:A column-vector")
def test_i06_i07_forms_of_a_constant_target(y):
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.warns(UserWarning, match="the target does not vary"):
        model = SGLBRegressor(**SMALL).fit(X, y)
    np.testing.assert_allclose(model.predict(X), 1.0, atol=1e-6)
    u = model.predict_uncertainty(X)
    assert np.isfinite(u.total).all()


@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.parametrize("X", [np.ones((100, 1)), np.zeros((1, 1)), np.full((20, 2), np.nan)])
def test_b09_i07_nothing_to_split(booster, X):
    y = np.random.default_rng(0).normal(size=len(X))
    with pytest.warns(UserWarning, match="no feature varies"):
        model = SGLBRegressor(booster=booster, **SMALL).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y.mean(), atol=1e-6)
    assert np.isfinite(model.predict_uncertainty(X).total).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"booster": "xgboost"}, "booster must be one of"),
        ({"n_estimators": 0}, "n_estimators must be an integer >= 1"),
        ({"learning_rate": 0.0}, "learning_rate must be a finite number"),
        ({"temperature": 0.0}, "temperature .*math.inf means no noise"),
        ({"temperature": -1.0}, "temperature"),
        ({"depth": 17}, "depth must be at most 16"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"early_stopping_rounds": 5}, r"early_stopping_rounds must be at least a cycle \(50\)"),
        ({"early_stopping_rounds": 100}, "early_stopping_rounds needs held-out rows"),
        ({"random_state": -1}, "random_state must be an integer >= 0"),
        ({"loss": "Logloss"}, "use SGLBClassifier"),
        ({"loss": "MAE"}, "loss must be one of"),
        ({"n_chains": 0}, "n_chains"),
        ({"schedule": CosineCycle}, "schedule must be an instance"),
        ({"mask": BernoulliMask}, "mask must be an instance"),
        ({"booster_params": ["depth"]}, "booster_params must be a dict"),
        ({"booster_params": {"metadata": {"a": "b"}}}, "booster_params must not hold metadata"),
        ({"booster_params": {"min_child_samples": 0}}, "min_data_in_leaf must be at least 1"),
        ({"booster_params": {"eta": 1.0}}, "learning_rate times the schedule's largest scale"),
        ({"cat_features": 0}, "cat_features must be a list"),
        ({"cat_features": "02"}, "cat_features must be a list"),
    ],
)
def test_bad_settings_are_named(settings, message, data):
    with pytest.raises((ValueError, TypeError), match=message):
        SGLBRegressor(**settings).fit(*data)


@pytest.mark.parametrize("jobs", [-1, -2])
def test_negative_jobs_are_all_cores(jobs, data):
    expected = SGLBRegressor(**SMALL).fit(*data).predict(data[0])
    model = SGLBRegressor(**{**SMALL, "n_jobs": jobs}).fit(*data)
    np.testing.assert_array_equal(model.predict(data[0]), expected)


@pytest.mark.parametrize("loss", ["squared_error", "normal"])
@pytest.mark.parametrize("booster", BOOSTERS)
def test_c03_units_of_the_response(booster, loss, data, capfd):
    X, y = data
    model = SGLBRegressor(loss, booster=booster, **SMALL).fit(X, y)
    for unit in (1e-17, 1e-9, 1e9):
        other = SGLBRegressor(loss, booster=booster, **SMALL).fit(X, y * unit)
        np.testing.assert_allclose(other.predict(X) / unit, model.predict(X), atol=1e-4)
        np.testing.assert_allclose(
            other.predict_uncertainty(X).total / unit**2, model.predict_uncertainty(X).total, rtol=1e-3
        )


@pytest.mark.filterwarnings("ignore:the target does not vary")
def test_a_constant_whose_computed_spread_is_rounding():
    y = np.full(30, 0.00087)
    assert 0.0 < np.std(y) < 1e-18
    fitted = SGLBRegressor(**SMALL).fit(np.arange(30.0)[:, None], y)
    np.testing.assert_allclose(fitted.predict([[1.0]]), y[0], rtol=1e-12)


@pytest.mark.parametrize("y", [1e-30 * np.arange(30.0), 1e300 * np.arange(30.0), np.full(30, 1e300)])
def test_units_out_of_range_are_named(y):
    with pytest.raises(ValueError, match="y must have a standard deviation of at least .* use another unit"):
        SGLBRegressor(**SMALL).fit(np.arange(30.0)[:, None], y)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_infinity_is_a_category_as_any(booster, data):
    X = data[0].copy()
    X[:, 0] = np.where(X[:, 0] > 0, np.inf, 1.0)
    model = SGLBRegressor(booster=booster, cat_features=[0], **SMALL).fit(X, data[1])
    assert np.isfinite(model.predict(X)).all()


def test_i11_weights(data):
    X, y = data
    for weight, message in (
        (np.r_[-1.0, np.ones(119)], "sample_weight must be >= 0"),
        (np.zeros(120), "sample_weight must have a positive sum"),
        (np.ones(3), r"sample_weight must have shape \(120,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            SGLBRegressor(**SMALL).fit(X, y, sample_weight=weight)
    alone = SGLBRegressor(SquaredError(1.0), **SMALL).fit(X, y, sample_weight=np.r_[np.zeros(119), 1.0])
    assert np.isfinite(alone.predict(X)).all()


def test_bad_targets(data):
    X, y = data
    with pytest.raises(ValueError, match="y must be finite"):
        SGLBRegressor(**SMALL).fit(X, np.r_[np.nan, y[1:]])
    with pytest.raises(ValueError, match="y must be numeric"):
        SGLBRegressor(**SMALL).fit(X, ["a"] * 120)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_i02_early_stopping_on_held_out_rows(booster):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = rng.normal(size=300)
    model = SGLBRegressor(
        SquaredError(1.0),
        booster=booster,
        n_estimators=400,
        schedule=CosineCycle(length=10),
        early_stopping_rounds=20,
        validation_fraction=0.3,
        n_jobs=1,
    )
    with pytest.warns(UserWarning, match="of 400 iterations with [1-4] members, too few for knowledge"):
        pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    assert 0 < pipeline[-1].n_iterations_ < 400
    patient = model.set_params(early_stopping_rounds=100, learning_rate=0.02)
    assert patient.fit(X, X[:, 0] + 0.1 * y).n_members_ >= 5  # a signal takes more rounds to learn


def test_i01_clone_and_search(data):
    X, y = data
    model = SGLBRegressor(mask=BernoulliMask(0.5), cat_features=None, **SMALL)
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(model, {"temperature": [1.0, 10.0], "learning_rate": [0.05, 0.1]}, cv=2).fit(
        X[:60], y[:60]
    )
    assert search.best_params_.keys() == {"temperature", "learning_rate"}
    nested = GridSearchCV(model, {"mask__keep": [0.5, 1.0]}, cv=2).fit(X[:60], y[:60])
    assert nested.best_estimator_.mask.keep in (0.5, 1.0)
    assert model.mask.keep == 0.5
    with pytest.raises(ValueError, match="mask has the settings"):
        model.set_params(mask__rate=0.5)


@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.parametrize("n_chains", [1, 2])
def test_save_load_and_pickle(booster, n_chains, tmp_path):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = SGLBClassifier(booster=booster, n_chains=n_chains, **SMALL).fit(X, names)
    path = tmp_path / "model.zip"
    model.save(path)
    again = SGLBClassifier.load(path)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).members(X), model.members(X))
    with pytest.raises(ValueError, match="holds a SGLBClassifier, not a SGLBRegressor"):
        SGLBRegressor.load(path)


def test_bad_files(tmp_path):
    path = tmp_path / "bad.zip"
    path.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match=r"bad\.zip is no saved model"):
        SGLBRegressor.load(path)
    with pytest.raises(FileNotFoundError):
        SGLBRegressor.load(tmp_path / "missing.zip")
    with pytest.raises(Exception, match="not fitted"):
        SGLBRegressor().save(tmp_path / "unfitted.zip")
    assert not (tmp_path / "unfitted.zip").exists()


def test_more_chains_give_more_members(data):
    X, y = data
    one = SGLBRegressor(SquaredError(0.1), n_estimators=40, depth=3, n_jobs=1).fit(X, y)
    two = SGLBRegressor(SquaredError(0.1), n_estimators=40, depth=3, n_chains=2, n_jobs=1).fit(X, y)
    assert two.members(X).shape == (120, 20, 1)
    np.testing.assert_array_equal(two.members(X)[:, :10], one.members(X))


@pytest.mark.parametrize("booster", BOOSTERS)
def test_far_targets_are_not_shrunk_away(booster):
    """Shrinkage goes to the start, so that y + c predicts c more, whatever c."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=300)
    settings = {"booster": booster, "n_estimators": 100, "depth": 3, "n_jobs": 1, "prior": None}
    near = SGLBRegressor(SquaredError(0.1), **settings).fit(X, y).predict(X)
    far = SGLBRegressor(SquaredError(0.1), **settings).fit(X, y + 1000.0).predict(X)
    np.testing.assert_allclose(far - 1000.0, near, atol=0.05)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_rare_classes_keep_their_share(booster):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2))
    y = rng.random(1000) < 0.03
    model = SGLBClassifier(booster=booster, n_estimators=100, depth=2, n_jobs=1).fit(X, y)
    assert abs(model.predict_proba(X)[:, 1].mean() - y.mean()) < 0.015


def test_normal_fit_is_silent(data, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SGLBRegressor(**SMALL).fit(*data)
    assert capfd.readouterr() == ("", "")


def test_members_do_not_depend_on_how_rows_are_cut():
    X, y = load_diabetes(return_X_y=True)
    model = SGLBRegressor(n_estimators=50, depth=3, n_jobs=1).fit(X, y)
    np.testing.assert_allclose(model.members(X)[100:101], model.members(X[100:101]), rtol=1e-12)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_the_start_does_not_fade_where_nothing_can_be_split(booster):
    X = (np.arange(300) < 5.0)[:, None].astype(float)
    y = 100 + np.random.default_rng(0).normal(size=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = SGLBRegressor(SquaredError(1.0), booster=booster, n_estimators=100, n_jobs=1, prior=None)
        model.fit(X, y)
    np.testing.assert_allclose(model.members(X)[..., 0], 100.0, atol=1.5)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_truth_values_are_numbers(booster):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=200), "flag": rng.random(200) > 0.5})
    model = SGLBRegressor(booster=booster, **SMALL).fit(frame, 3.0 * frame["flag"] + frame["a"])
    assert model.categorical_features_ == []
    np.testing.assert_array_equal(
        model.predict(frame), model.predict(frame.assign(flag=frame["flag"].astype(int)))
    )


def test_times_are_refused():
    frame = pd.DataFrame({"a": np.arange(50.0), "t": pd.date_range("2020", periods=50)})
    with pytest.raises(ValueError, match="column 't' must hold numbers or categories, got datetime64"):
        SGLBRegressor(**SMALL).fit(frame, np.arange(50.0))
