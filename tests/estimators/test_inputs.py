"""Tables, targets and held-out rows of unusual kinds: taken as meant, or refused in one line."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from catboost import Pool
from sklearn.base import clone

from boostplugins import (
    BARTClassifier,
    BARTRegressor,
    DistributionalRegressor,
    MCDropoutRegressor,
    SGLBClassifier,
    SGLBRegressor,
    SoftBoostingRegressor,
    SoftTreeClassifier,
    SoftTreeRegressor,
    USNRTRegressor,
)

QUICK = {"n_estimators": 10, "n_jobs": 1}
REGRESSORS = [
    SGLBRegressor(booster="lightgbm", **QUICK),
    DistributionalRegressor(**QUICK),
    BARTRegressor(),
    SoftTreeRegressor(),
    USNRTRegressor(),
]
CLASSIFIERS = [SGLBClassifier(booster="lightgbm", **QUICK), BARTClassifier(), SoftTreeClassifier()]
BOOSTED = [REGRESSORS[0], CLASSIFIERS[0], REGRESSORS[1]]


def named(model):
    return type(model).__name__


regressors = pytest.mark.parametrize("model", REGRESSORS, ids=named)
every = pytest.mark.parametrize("model", [*REGRESSORS, *CLASSIFIERS], ids=named)
boosted = pytest.mark.parametrize("model", BOOSTED, ids=named)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    return X, (X["a"] > 0).astype(float)


@every
def test_columns_of_one_name_are_refused(model, rows):
    X, y = rows
    with pytest.raises(ValueError, match=r"columns of different names, got \['a'\] more than once; rename"):
        model.fit(X.set_axis(["a", "a"], axis=1), y)


@every
def test_times_are_no_target(model, rows):
    times = pd.Series(pd.date_range("2020-01-01", periods=60))
    for y in (times, times.to_numpy(), times - times[0]):
        with pytest.raises(ValueError, match=r"y must hold numbers or labels, got .*days since a date"):
            model.fit(rows[0], y)


@every
def test_complex_columns_and_targets_are_refused(model, rows):
    X, y = rows
    with pytest.raises(ValueError, match="column 'b' must be real, got complex128"):
        model.fit(X.assign(b=X["b"] + 0j), y)
    with pytest.raises(ValueError, match="y must be real, got complex128"):
        model.fit(X, y.to_numpy() + 0j)


@boosted
def test_decimals_are_numbers(model, rows):
    X, y = rows
    exact = X.round(3)
    decimal = exact.assign(b=[Decimal(f"{value:.3f}") for value in exact["b"]])
    plain = model.fit(exact, y).predict(exact)
    np.testing.assert_array_equal(model.fit(decimal, y).predict(decimal), plain)
    if model is not CLASSIFIERS[0]:
        np.testing.assert_array_equal(model.fit(exact, [Decimal(int(v)) for v in y]).predict(exact), plain)
    decimal.loc[3, "b"] = None
    assert model.fit(decimal, y).predict(decimal).shape == (60,)


@boosted
def test_held_out_rows_come_as_a_tuple_or_a_list_with_one(model, rows):
    X, y = rows
    model = clone(model).set_params(early_stopping_rounds=5)
    plain = model.fit(X, y, eval_set=(X, y)).predict(X)
    for eval_set in ([(X, y)], [X, y], (X, y, np.ones(60)), (X.to_numpy().tolist(), y.tolist())):
        if isinstance(eval_set[0], list):
            model.fit(X.to_numpy(), y, eval_set=eval_set)
        else:
            np.testing.assert_array_equal(model.fit(X, y, eval_set=eval_set).predict(X), plain)


@boosted
def test_other_held_out_rows_are_refused(model, rows):
    X, y = rows
    for eval_set, found in (
        ([(X, y), (X, y)], "2 held-out sets"),
        (Pool(X, y), "a Pool"),
        (X, "a DataFrame"),
        ((X,), "1 parts"),
        ((X, y, None, None, None), "5 parts"),
    ):
        with pytest.raises(
            ValueError, match=rf"eval_set must be \(X, y\) or .*of one held-out set; got {found}"
        ):
            model.fit(X, y, eval_set=eval_set)
    with pytest.raises(ValueError, match="sample_weight of eval_set must have shape"):
        model.fit(X, y, eval_set=(X, y, np.ones(3)))
    for few in (y[:3], np.resize(y, 61)):
        with pytest.raises(ValueError, match=r"X and y of eval_set must .* 60 and"):
            model.fit(X, y, eval_set=(X, few))


@pytest.mark.filterwarnings("ignore:training stopped after")  # with few members
@pytest.mark.parametrize("model", [BOOSTED[0], BOOSTED[2]], ids=named)
def test_weights_of_held_out_rows_count(model, rows):
    X, y = rows
    rng = np.random.default_rng(1)
    noisy = y + rng.normal(size=60) * (X["b"] > 0)
    model = clone(model).set_params(n_estimators=60, early_stopping_rounds=10)
    seen = []
    for weight in (np.where(X["b"] > 0, 1.0, 1e-6), np.where(X["b"] > 0, 1e-6, 1.0)):
        seen.append(model.fit(X, noisy, eval_set=(X, y, weight)).predict(X))
    assert np.abs(seen[0] - seen[1]).max() > 0


@pytest.mark.filterwarnings("ignore:chains disagree")  # of so few draws
@pytest.mark.parametrize(
    "model",
    [
        SGLBRegressor(booster="lightgbm", **QUICK),
        DistributionalRegressor("normal", **QUICK),
        BARTRegressor(n_trees=3, n_burn=4, n_draws=4),
        SoftBoostingRegressor(n_estimators=3, subsample=0.5),
        MCDropoutRegressor(hidden=(3,), max_epochs=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_generators_seed_every_estimator(model, rows, tmp_path):
    """Generators in one state give one model, which can be saved."""
    X, y = rows
    X = X[["b"]]
    noisy = y + np.random.default_rng(1).normal(size=60)
    first, second, third = (
        clone(model).set_params(random_state=np.random.default_rng(seed)).fit(X, noisy) for seed in (5, 5, 6)
    )
    np.testing.assert_array_equal(first.predict(X), second.predict(X))
    assert not np.array_equal(first.predict(X), third.predict(X))
    first.save(tmp_path / "model")
    np.testing.assert_array_equal(type(model).load(tmp_path / "model").predict(X), first.predict(X))


@pytest.mark.parametrize("model", [DistributionalRegressor(**QUICK), SoftBoostingRegressor(n_estimators=2)])
def test_weights_of_scores_are_checked(model, rows):
    X, y = rows
    model = clone(model).fit(X, y)
    weight = np.repeat([1.0, 0.0], 30)
    assert model.log_score(X, y, weight) == pytest.approx(model.log_score(X[:30], y[:30]))
    with pytest.raises(ValueError, match="sample_weight must be >= 0"):
        model.log_score(X, y, -weight)
    with pytest.raises(ValueError, match="sample_weight must have shape"):
        model.log_score(X, y, weight[:3])


def test_impossible_responses_without_weight_leave_scores_alone(rows):
    X, _ = rows
    y = np.random.default_rng(0).gamma(2.0, size=len(X))
    model = DistributionalRegressor("gamma", **QUICK).fit(X, y)
    weight, seen = np.ones(len(y)), y.copy()
    weight[7], seen[7] = 0.0, -1.0
    kept = weight > 0
    assert model.log_score(X, seen, weight) == pytest.approx(model.log_score(X[kept], y[kept]))
    assert model.log_score(X, seen) == -np.inf
