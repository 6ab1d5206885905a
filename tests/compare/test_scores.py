"""Scores of forecasts against scikit-learn, the metrics of the package and sums by hand."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from boostplugins import Predictive
from boostplugins.compare import Forecast, compare, make_forecast, make_model, model_names
from boostplugins.compare.catalogue import DEFAULT
from boostplugins.compare.scores import CLASSIFICATION, MOST_MEMBERS, REGRESSION, thinned
from boostplugins.metrics import coverage, crps, ece, nll
from tests.compare.models import LabelsOnly, Mean, Shares


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 2))
    return X, X[:, 0] + rng.normal(size=90)


def test_regression_scores_are_those_of_the_metrics():
    rng = np.random.default_rng(0)
    theta = np.stack([rng.normal(size=(50, 4)), np.exp(rng.normal(size=(50, 4)))], axis=2)
    dist, y = Predictive("normal", theta), rng.normal(size=50)
    forecast = Forecast(dist.mean(), dist, total=dist.var())
    expected = {
        "log_score": -nll(y, dist),
        "crps": crps(y, dist),
        "ece": ece(y, dist),
        "coverage_50": coverage(y, dist.interval(0.5)),
        "width_90": np.ptp(dist.interval(0.9), axis=1).mean(),
    }
    for name, number in expected.items():
        assert REGRESSION[name].of(y, forecast) == pytest.approx(number, rel=1e-9), name


def test_ece_of_right_counts_is_small():
    # 4000 uniform values stay within 0.03 of the diagonal at every level: Kolmogorov, p < 0.002.
    y = np.random.default_rng(0).poisson(0.5, size=4000).astype(float)
    dist = Predictive("poisson", np.full((4000, 1), 0.5))
    assert REGRESSION["ece"].of(y, Forecast(dist.mean(), dist)) < 0.03


def test_infinite_variances_still_rank():
    dist = Predictive("student_t", np.array([[0.0, 1.0, 1.5], [0.0, 1.0, 8.0], [0.0, 1.0, 30.0]]))
    forecast = Forecast(np.zeros(3), dist, total=dist.var())
    assert np.isinf(dist.var()[0])
    assert REGRESSION["prr"].of(np.array([5.0, 1.0, 0.1]), forecast) == 1.0


def test_large_mixtures_are_thinned_evenly():
    theta = np.stack(np.broadcast_arrays(np.linspace(0.0, 1.0, 1001)[None], 1.0), axis=2)
    thin = thinned(Predictive("normal", theta))
    assert thin.n_members == MOST_MEMBERS
    assert thin.mean()[0] == pytest.approx(0.5, abs=1e-3)
    weighted = Predictive("normal", theta, weights=np.ones(1001))
    assert thinned(weighted) is weighted


def test_classification_scores_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    classes = np.array(["a", "b", "c"])
    proba, y = rng.dirichlet(np.ones(3), size=60), rng.choice(classes, 60)
    forecast = Forecast(classes[proba.argmax(axis=1)], proba=proba, classes=classes)
    score = {name: CLASSIFICATION[name].of(y, forecast) for name in CLASSIFICATION}
    assert score["log_score"] == pytest.approx(-log_loss(y, proba, labels=classes))
    assert score["accuracy"] == accuracy_score(y, forecast.point)
    assert score["brier"] == pytest.approx(((proba - (y[:, None] == classes)) ** 2).sum(axis=1).mean())
    sizes, inside = [], []
    for p, label in zip(proba, y):
        held, mass = [], 0.0
        for k in np.argsort(-p):
            if mass >= 0.9:
                break
            held.append(classes[k])
            mass += p[k]
        sizes.append(len(held))
        inside.append(label in held)
    assert score["width_90"] == np.mean(sizes)
    assert score["coverage_90"] == np.mean(inside)


def test_labels_a_model_never_saw():
    forecast = Forecast(np.array([1, 1]), proba=np.array([[0.2, 0.8]] * 2), classes=np.array([0, 1]))
    y = np.array([1, 7])
    assert CLASSIFICATION["coverage_90"].of(y, forecast) == 0.5
    assert CLASSIFICATION["accuracy"].of(y, forecast) == 0.5
    assert CLASSIFICATION["brier"].of(y, forecast) == pytest.approx((0.08 + 0.04 + 0.64 + 1.0) / 2)
    floor = np.log(np.finfo(float).eps)
    assert CLASSIFICATION["log_score"].of(y, forecast) == pytest.approx((np.log(0.8) + floor) / 2)


@pytest.mark.parametrize(
    "model",
    [
        BayesianRidge(),
        make_pipeline(StandardScaler(), BayesianRidge()),
        GridSearchCV(BayesianRidge(), {"alpha_1": [1e-6, 1e-3]}, cv=2),
        GaussianProcessRegressor(RBF() + WhiteKernel(), random_state=0),
    ],
    ids=["plain", "pipeline", "search", "process"],
)
def test_standard_deviations_make_a_normal(model, rows):
    X, y = rows
    forecast = make_forecast(model.fit(X, y), X)
    assert forecast.dist.family.name == "normal"
    np.testing.assert_allclose(forecast.total, forecast.dist.var())
    assert forecast.knowledge is None


def test_point_models(rows):
    X, y = rows
    forecast = make_forecast(RandomForestRegressor(5, random_state=0).fit(X, y), X)
    assert forecast.dist is None
    assert REGRESSION["crps"].of(y, forecast) == pytest.approx(np.abs(y - forecast.point).mean())
    assert make_forecast(Mean().fit(X, y), X).total is None


def test_classifiers(rows):
    X, y = rows
    labels = np.where(y > 0, "up", "down")
    table = compare(
        {"shares": Shares(), "labels": LabelsOnly(), "logistic": LogisticRegression()},
        X, labels, cv=3, shift=np.abs(X[:, 0]) > 1.5,
    )  # fmt: skip
    value = table.set_index(["model", "metric"])["mean"]
    assert value["shares", "ku_auc"] == pytest.approx(1.0)
    assert np.isnan(value["logistic", "ku_auc"])
    assert np.isfinite(value["logistic", "tu_auc"])
    assert np.isnan(value["labels", "log_score"])
    assert value["labels", "accuracy"] == pytest.approx(
        (labels == "down")[np.abs(X[:, 0]) <= 1.5].mean(), abs=0.02
    )
    assert value["logistic", "log_score"] > value["shares", "log_score"]


def test_bad_standard_deviations_are_an_error(rows):
    X, y = rows
    model = GaussianProcessRegressor(optimizer=None, alpha=1e-12).fit(X[:5], y[:5])
    model.predict = lambda X, return_std=False: (np.zeros(len(X)), np.zeros(len(X)))
    with pytest.raises(ValueError, match="standard deviations must be > 0"):
        make_forecast(model, X)


@pytest.mark.parametrize("classification", [False, True])
def test_every_default_is_known(classification):
    names = model_names(classification)
    task = "classification" if classification else "regression"
    assert set(DEFAULT[task]) <= set(names)
    for name in names:
        made = make_model(name, classification, random_state=3)
        assert not isinstance(made, Exception), made
        assert hasattr(made, "fit")


def test_families_by_name():
    model = make_model("family-catboost:gamma", random_state=5)
    assert (model.family, model.booster, model.random_state) == ("gamma", "catboost", 5)
    with pytest.raises(ValueError, match="unknown model 'family:gamma'"):
        make_model("family:gamma", classification=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("classification", [False, True])
def test_every_model_known_by_name_can_be_compared(classification):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = X[:, 0] + 0.5 * rng.normal(size=150)
    target = np.where(y > 0, "up", "down") if classification else y
    table = compare(model_names(classification), X, target, cv=2, shift=X + 4.0, quick=True)
    assert table["error"].isna().all(), table["error"].dropna().unique()
    spread = "accuracy" if classification else "rmse"
    assert table[table["metric"] == spread]["mean"].notna().all()
