"""Prior functions: their variance, silence at the anchors, purity and travel."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest

from boostplugins import CosineCycle, SGLBRegressor
from boostplugins.losses import SquaredError
from boostplugins.priors import FittedPrior, RandomPrior


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 4)) * [1.0, 10.0, 0.1, 3.0] + [0.0, 5.0, 100.0, -2.0]
    X[rng.random(X.shape) < 0.05] = np.nan
    return X


@pytest.fixture(scope="module")
def prior(rows):
    return RandomPrior(scale=2.0, n_anchors=300, random_state=3).fit(rows)


def mean_square(values):
    """Mean square over cycles and outputs, (n,)."""
    return np.mean(values**2, axis=(0, 2))


def test_far_variance_is_the_scale_squared(rows, prior):
    far = np.nan_to_num(rows[:6]) + 500.0
    squares = mean_square(prior.values_of(range(400), far, n_outputs=2))
    # 800 squares of normals: relative standard error 5 %; 5 of them at 6 points: false alarm < 1e-4
    # (chi-square tail), and the seed is fixed.
    assert np.abs(squares / 4.0 - 1.0).max() < 0.25
    np.testing.assert_allclose(prior.variance(far), 4.0)


def test_variance_over_cycles_is_the_conditional_variance(rows, prior):
    between = np.nan_to_num(rows[300:400]) * 1.5
    squares = mean_square(prior.values_of(range(300), between, n_outputs=3))
    # 900 squares a point, heavier than normal because frequencies are redrawn; 100 points average out.
    assert abs(np.mean(squares / prior.variance(between)) - 1.0) < 0.1


def test_conditional_variance_equals_the_textbook_formula(rows, prior):
    X = np.nan_to_num(rows[:50]) * 1.3
    coordinates = (X - prior.mean) @ prior.projection

    def kernel(a, b):
        return np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(axis=2))

    covariance = kernel(prior.anchors, prior.anchors) + prior.noise * np.eye(len(prior.anchors))
    cross = kernel(coordinates, prior.anchors)
    expected = 4.0 * (1.0 - np.sum(cross * np.linalg.solve(covariance, cross.T).T, axis=1))
    np.testing.assert_allclose(prior.variance(X), expected, rtol=1e-6, atol=1e-8)


def test_nearly_zero_at_the_anchors(rows):
    prior = RandomPrior(scale=2.0, n_anchors=len(rows), noise=1e-3).fit(rows)
    values = prior.values_of(range(20), rows, n_outputs=2)
    # The variance left at an anchor is below nu scale**2: sd 2 sqrt(1e-3) = 0.063.
    assert np.sqrt(mean_square(values)).mean() < 0.063


def test_default_scale_leaves_what_in_domain_allows(rows):
    prior = RandomPrior(in_domain=0.4, n_anchors=350).fit(rows)
    order = np.random.Generator(np.random.Philox(key=0)).permutation(len(rows))
    left = np.sqrt(prior.variance(rows[order[350:]]).mean())
    assert left == pytest.approx(0.4, rel=0.1)  # held-out anchors against rows that never were anchors
    assert RandomPrior(in_domain=50.0, max_scale=7.0).fit(rows).scale == 7.0


def test_same_bits_for_any_cut_and_order(rows, prior):
    whole = prior.values_of([0, 1, 2], rows, n_outputs=3)
    for cut in (slice(0, 1), slice(3, 300), slice(255, 258), slice(690, 700)):
        for cycle in (2, 0):
            assert (prior.values(cycle, rows[cut], n_outputs=3) == whole[cycle, cut]).all()
    order = np.random.default_rng(1).permutation(len(rows))
    assert (prior.values(1, np.asfortranarray(rows[order]), 3) == whole[1, order]).all()


def test_an_output_does_not_depend_on_their_number(rows, prior):
    assert (prior.values(5, rows, 2) == prior.values(5, rows, 4)[:, :2]).all()


def test_cycles_outputs_and_seeds_are_independent(rows, prior):
    far = np.random.default_rng(2).normal(size=(400, 4)) * 3e3
    other = RandomPrior(scale=2.0, n_anchors=300, random_state=4).fit(rows)
    columns = np.column_stack([prior.values(0, far, 2), prior.values(1, far, 2), other.values(0, far, 1)])
    correlations = np.corrcoef(columns.T) - np.eye(5)
    # About 400 far apart, hence independent points: standard error .05, ten pairs.
    assert np.abs(correlations).max() < 0.2


def test_state_travels_bit_for_bit(rows, prior):
    expected = prior.values(4, rows, 2)
    copy = pickle.loads(pickle.dumps(prior))
    read = FittedPrior.from_dict(json.loads(json.dumps(prior.to_dict())))
    assert (copy.values(4, rows, 2) == expected).all()
    assert (read.values(4, rows, 2) == expected).all()
    assert "_factor" not in copy.__getstate__()
    setting = RandomPrior(in_domain=0.3, random_state=9)
    assert RandomPrior(**json.loads(json.dumps(setting.to_dict()))) == setting


def test_units_of_the_loss_multiply_the_functions(rows, prior):
    measured = prior.in_units([3.0, 0.0])
    np.testing.assert_array_equal(measured.values(2, rows, 2), prior.values(2, rows, 2) * [3.0, 0.0])
    again = FittedPrior.from_dict(json.loads(json.dumps(measured.to_dict())))
    assert (again.values(2, rows, 2) == measured.values(2, rows, 2)).all()


def test_units_and_duplicated_columns_do_not_matter(rows):
    base = RandomPrior(scale=1.0, floor=1e-6).fit(rows)
    scaled = RandomPrior(scale=1.0, floor=1e-6).fit(rows * [100.0, 0.1, 3.0, 1.0] + 7.0)
    probe = np.nan_to_num(rows[:40]) + 1.0
    moved = probe * [100.0, 0.1, 3.0, 1.0] + 7.0
    np.testing.assert_allclose(base.variance(probe), scaled.variance(moved), rtol=1e-4, atol=1e-8)


def test_a_broken_correlation_is_seen():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 1))
    X = np.hstack([x, x + 0.05 * rng.normal(size=x.shape)])
    prior = RandomPrior(scale=1.0).fit(X)
    apart = np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert prior.variance(apart).min() > 0.5 > 0.05 > prior.variance(np.array([[1.0, 1.0]]))[0]


def test_missing_values_count_as_the_mean(rows, prior):
    X = rows[:30].copy()
    X[:, 1] = np.nan
    filled = X.copy()
    filled[:, 1] = prior.mean[1]
    assert (prior.values(0, X) == prior.values(0, filled)).all()


def test_odd_columns_stay_finite():
    X = np.column_stack([np.full(60, 3.0), np.full(60, np.nan), np.arange(60.0), np.zeros(60)])
    prior = RandomPrior(scale=1.0).fit(X)
    assert prior.variance(X).max() < 0.2
    changed = X.copy()
    changed[:, 0] += 5.0
    assert prior.variance(changed).min() > 0.5  # a column that was constant has moved
    wild = np.array([[np.inf, -np.inf, 1e300, np.nan]])
    assert np.isfinite(prior.values(0, wild, 2)).all()
    assert prior.variance(wild)[0] == pytest.approx(1.0)
    assert np.isfinite(RandomPrior().fit(np.ones((1, 2))).values(0, np.ones((3, 2)))).all()
    assert np.isfinite(RandomPrior().fit(np.ones((50, 2))).scale)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"scale": 0.0}, "scale must be"),
        ({"in_domain": -1.0}, "in_domain must be"),
        ({"lengthscale": 0.0}, "lengthscale must be"),
        ({"n_anchors": 0}, "n_anchors must be"),
        ({"noise": 0.0}, "noise must be"),
        ({"floor": 2.0}, "floor must be"),
    ],
)
def test_bad_settings_are_named(setting, message):
    with pytest.raises(ValueError, match=message):
        RandomPrior(**setting)


def test_bad_rows_are_named(prior):
    with pytest.raises(ValueError, match="4 features as in fit, got 3"):
        prior.values(0, np.zeros((2, 3)))
    with pytest.raises(ValueError, match="n_samples, n_features"):
        prior.values(0, np.zeros(4))
    with pytest.raises(ValueError, match="at least one row"):
        RandomPrior().fit(np.zeros((0, 3)))


@pytest.mark.parametrize("kind", ["frame", "objects"])
def test_some_columns_only(kind):
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(80, 2))
    mixed = np.empty((80, 3), dtype=object)
    mixed[:, [0, 2]], mixed[:, 1] = numbers, "text"
    rows = pd.DataFrame(mixed) if kind == "frame" else mixed
    plain, chosen = RandomPrior().fit(numbers), RandomPrior().fit(rows, columns=[0, 2])
    np.testing.assert_array_equal(chosen.values(4, rows, 2), plain.values(4, numbers, 2))
    np.testing.assert_array_equal(chosen.variance(rows), plain.variance(numbers))
    again = FittedPrior.from_dict(json.loads(json.dumps(chosen.to_dict())))
    np.testing.assert_array_equal(again.values(4, rows, 2), plain.values(4, numbers, 2))
    with pytest.raises(ValueError, match=r"X must have the columns \[0, 2\], got 2 columns"):
        chosen.values(0, numbers)


@pytest.mark.slow
@pytest.mark.parametrize("booster", ["lightgbm", "catboost"])
def test_members_of_a_chain_spread_as_the_prior_where_there_are_no_data(booster):
    """Squared error: variance over members is the prior's far from all rows, and small among them.

    200 members at five places beyond all correlation are 1000 normal draws: the relative standard error of
    their variance is sqrt(2 / 1000) = 0.045. A leaf of 20 rows or more adds at most 0.05 / 4 of the prior's
    variance. Beyond 0.25 comes by chance once in a million runs.
    """
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(120, 1))
    y = X[:, 0] + 0.3 * rng.normal(size=120)
    far = np.array([[-25.0], [-15.0], [15.0], [25.0], [35.0]])
    settings = {
        "booster": booster,
        "schedule": CosineCycle(length=5, max_scale=1.0),
        "n_estimators": 1000,
        "learning_rate": 0.5,
        "depth": 2,
        "min_samples_leaf": 20,
        "shrink": 0.0,
        "n_jobs": 1,
    }
    found = {}
    for prior in (None, RandomPrior(scale=2.0)):
        model = SGLBRegressor(SquaredError(0.09), prior=prior, **settings).fit(X, y)
        variance = model.members(np.vstack([far, X]))[..., 0].var(axis=1)
        found[prior is None] = variance[:5].mean(), variance[5:].mean()
    assert found[False][0] == pytest.approx(2.0**2 * 0.09, rel=0.25)
    assert found[False][1] < 0.1 * 2.0**2 * 0.09
    assert found[True][0] < 0.1 * 2.0**2 * 0.09
