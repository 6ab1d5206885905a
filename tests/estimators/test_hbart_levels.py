"""Levels of few rows in the log-linear variance: sane widths, and warnings that name them."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from boostplugins import HBARTRegressor
from boostplugins.estimators._bart_base import MixingWarning
from boostplugins.hbart.design import VarianceDesign
from tests.estimators.bart_cases import FEW, SHORT, quiet


def many_levels(n=200, n_levels=40, seed=0):
    """A number, and levels of 90 down to 1 rows, of no effect on the noise, which is 1."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, n_levels + 1) ** 1.2
    level = rng.choice(n_levels, n, p=share / share.sum())
    X = pd.DataFrame({"a": rng.random(n), "c": [f"l{number:02d}" for number in level]})
    return X, 2.0 * X["a"] + rng.standard_normal(n)


@quiet
def test_levels_of_few_rows_have_widths_as_others_have():
    X, y = many_levels()
    model = HBARTRegressor(**FEW).fit(X, y)
    width = np.diff(model.predict_interval(X.assign(a=0.5)))[:, 0]
    rows = X["c"].map(X["c"].value_counts())
    assert (rows < 3).any()
    assert width[rows < 3].max() < 2 * width[rows > 30].max()
    noise = model.posterior_draws(X)["noise"]
    assert 0.2 < noise.min() < noise.max() < 5


@quiet
def test_a_level_that_data_tell_of_keeps_its_effect():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"c": rng.choice(["calm", "wild"], 300)})
    y = np.where(X["c"] == "wild", 20.0, 1.0) * rng.standard_normal(300)
    noise = HBARTRegressor(**FEW).fit(X, y).posterior_draws(X)["noise"].mean(axis=(0, 1))
    assert noise[X["c"] == "wild"].mean() / noise[X["c"] == "calm"].mean() == pytest.approx(20, rel=0.25)


@quiet
def test_the_prior_of_a_level_is_the_same_however_rare_it_is():
    X, y = many_levels()
    X.loc[:2, "a"] = np.nan
    narrow = {"level_spread": 1e-3, "variance_features": ["c"]}
    model = HBARTRegressor(**narrow, **SHORT).fit(X, y)
    design = model._variance_design
    assert (design.scale == 0.5).all()
    np.testing.assert_allclose(model._runs[0].chain.linear.tight, 1.0 / (0.5 * 1e-3) ** 2)
    whole = HBARTRegressor(**SHORT).fit(X, y)._variance_design
    assert whole.names[:2] == ("a", "a missing")
    assert list(whole.indicators(model._columns)) == [False] + [True] * (len(whole.names) - 1)
    assert whole.scale[0] == pytest.approx(X["a"].std(ddof=0))


@quiet
def test_less_prior_variance_shrinks_levels_too():
    X, y = many_levels(80)
    gammas = [
        HBARTRegressor(**settings, **SHORT).fit(X[["c"]], y).posterior_.gamma
        for settings in ({"gamma_prior_variance": 1e-6}, {"level_spread": 2e-3})
    ]
    np.testing.assert_array_equal(*gammas)
    assert np.abs(gammas[0]).max() < 1e-2


def test_numbers_of_a_function_are_no_indicators():
    X, y = many_levels(60)
    design = VarianceDesign((), (False, False), lambda X: X, (), np.empty(0), np.empty(0))
    assert not design.indicators(None).any()
    with pytest.raises(ValueError, match="level_spread must be"):
        HBARTRegressor(level_spread=0.0, **SHORT).fit(X, y)


@pytest.fixture
def advised(monkeypatch):
    """What the warning says of a fit whose chains disagree so."""
    X, y = many_levels(80)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HBARTRegressor(**SHORT).fit(X, y)
    names = list(model.variance_names_)
    for method in ("_run", "_finish"):
        monkeypatch.setattr(model, method, lambda *args: None)

    def advised(worst, rhat, accepted):
        model.rhat_of_ = f"gamma[{names.index(worst)}]" if worst in names else worst
        model.rhat_, model.acceptance_ = rhat, {"gamma": accepted}
        with pytest.warns(MixingWarning) as caught:
            model.sample_more(1)
        return str(caught[0].message)

    return advised


def test_warnings_name_the_level_and_advise_what_helps(advised):
    rare = advised("c=l35", 2808687056776366.0, 0.5)
    assert rare == (
        "chains disagree: the split R-hat of gamma[c=l35] is 2.809e+15, above 1.05; it has 1 row: "
        "a lower level_spread, or variance='forest', asks less of so few"
    )
    stuck = advised("c=l35", np.inf, 0.01)
    assert "1.0% of gamma's proposals were accepted: gamma_proposal='slice' always moves" in stuck
    assert "lower gamma_prior_variance" in stuck
    assert "n_burn" not in stuck
    for worst in ("c=l00", "a", "f"):
        more = advised(worst, 1.2, 0.5)
        assert more.endswith("1.2, above 1.05; raise n_burn and n_draws, or draw on with sample_more")
    assert "sample_more. 1.0% of gamma's proposals" in advised("f", 1.2, 0.01)
