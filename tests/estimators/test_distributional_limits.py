"""DistributionalRegressor on cut families: units, offsets, scores."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score

from boostplugins import CosineCycle, SoftBoostingRegressor, SoftForestRegressor, SoftTreeRegressor
from boostplugins.estimators._units import Units
from boostplugins.families import Censored, IntervalCensored, Normal, Truncated, Weibull
from tests.estimators.distributional_data import both, quick, spread_data


@both
@pytest.mark.parametrize("kind", [Censored, Truncated])
@pytest.mark.parametrize("chain", [False, True], ids=["boosted", "chain"])
def test_limits_follow_the_units_of_the_response(booster, kind, chain):
    X, y = spread_data(200)
    y = y - np.quantile(y, 0.2)
    X, y = (X, np.maximum(y, 0.0)) if kind is Censored else (X[y > 0], y[y > 0])
    offset = np.linspace(0.0, 0.2, len(y))
    more = {"schedule": CosineCycle(length=5)} if chain else {}
    told = []
    for a in (1.0, 1e-3, 1e3):
        family = kind(Normal(), low=0.0, high=a * 50.0)
        model = quick(family, booster=booster, n_estimators=10, **more).fit(
            X[40:], a * y[40:], offset=a * offset[40:], eval_set=(X[:40], a * y[:40], None, a * offset[:40])
        )
        assert model.family_ == family
        value = model.log_score(X[:40], a * y[:40], offset=a * offset[:40])
        assert model.history_[0][-1] == pytest.approx(-value, rel=1e-6)
        told.append((model.predict(X, offset=a * offset) / a, model.predict_raw(X)[:, 0] / a))
    for other in told[1:]:
        np.testing.assert_allclose(other[0], told[0][0], rtol=1e-6)
        np.testing.assert_allclose(other[1], told[0][1], rtol=1e-6, atol=1e-9)


def test_responses_beside_a_limit_stay_beside_it():
    units = Units(2.0, 3.0)
    y = np.array([0.0, 1e-30, 1.0, 5.0 - 1e-15, 5.0])
    family = Censored(Truncated(Normal(), low=-1.0), low=0.0, high=5.0)
    inner = units.standard(family)
    assert isinstance(inner, Censored)
    np.testing.assert_array_equal(inner.observed(units.inward(family, y)), family.observed(y))
    assert inner.base == Truncated(Normal(), low=-2.0)


def test_scores_and_quantiles_take_the_offset():
    X, y = spread_data(120)
    offset = np.where(np.arange(120) % 2, 3.0, 0.0)
    model = quick("normal").fit(X, y + offset, offset=offset)
    dist = model.predict_dist(X, offset=offset)
    weight = np.arange(120) % 3 + 1.0
    np.testing.assert_array_equal(
        model.predict_quantiles(X, [0.1, 0.5], offset=offset), np.column_stack([dist.ppf(0.1), dist.ppf(0.5)])
    )
    given = {"sample_weight": weight, "offset": offset}
    mean = np.average(dist.log_pdf(y + offset), weights=weight)
    assert model.log_score(X, y + offset, **given) == pytest.approx(mean)
    r2 = r2_score(y + offset, dist.mean(), sample_weight=weight)
    assert model.score(X, y + offset, **given) == pytest.approx(r2)
    assert model.score(X, y + offset) < r2 - 0.1
    with pytest.raises(ValueError, match="offset must have 120 rows"):
        model.log_score(X, y, offset=offset[:5])


def test_pairs_have_a_log_score_only():
    X, y = spread_data(60)
    pairs = np.column_stack([y, np.where(np.arange(60) % 2, y, np.inf)])
    model = quick(IntervalCensored(Normal()), n_estimators=3).fit(X, pairs)
    with pytest.raises(ValueError, match="use log_score"):
        model.score(X, pairs)
    assert model.score(X, y) <= 1.0
    events = pd.DataFrame({"event": np.arange(60) % 2, "time": y})
    for call in (model.log_score, model.fit):
        with pytest.raises(ValueError, match="must name its two columns 'lower' and 'upper'"):
            call(X, events)
    with pytest.raises(ValueError, match="the likelihood has no maximum"):
        model.fit(X, np.column_stack([y, np.full(60, np.inf)]))


@pytest.mark.parametrize("kind", [SoftTreeRegressor, SoftForestRegressor, SoftBoostingRegressor])
def test_soft_trees_refuse_pairs(kind):
    X, y = spread_data(30)
    model = kind(family=IntervalCensored(Weibull()))
    for given in (y, np.column_stack([y, y])):
        with pytest.raises(ValueError, match="soft trees do not take limits of each row"):
            model.fit(X, given)
