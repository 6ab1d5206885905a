"""Studentised residuals, bounds beyond the training rows, and what both do to predicted spreads."""

from __future__ import annotations

import numpy as np
import pytest

from boostplugins.estimators.soft_tree import SoftTreeRegressor
from boostplugins.families import get_family
from boostplugins.soft_trees.objective import Block, Objective, Penalty, Predictor
from boostplugins.soft_trees.refine import update_coefficients
from boostplugins.soft_trees.structured import Linear
from boostplugins.soft_trees.studentize import collapses, refit_spread, studentized_scores
from boostplugins.soft_trees.tree import SoftTree

NORMAL = get_family("normal")


def line(n=40, seed=0, weight=None):
    """A straight line with a given deviation: a linear model, whose one Newton step is exact."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1))
    y = 1.0 + 2.0 * x[:, 0] + 0.5 * rng.normal(size=n)
    blocks = [Block(np.empty((n, 0)), x, np.zeros((1, 1))), Block.of_features(np.empty((n, 0)))]
    weight = np.ones(n) if weight is None else weight
    objective = Objective(NORMAL, y, weight, blocks, Penalty(1.0, 0.1))
    start = [Predictor(np.zeros(1), SoftTree.stump(0.0, 0)), Predictor(np.empty(0), SoftTree.stump(-0.7, 0))]
    return x, y, objective, update_coefficients(objective, start, steps=50, tolerance=0.0)


def test_residuals_are_studentised_as_in_least_squares():
    x, y, objective, model = line()
    design = np.column_stack([np.ones(len(y)), x])
    hat = design @ np.linalg.pinv(design)
    expected = (y - hat @ y) / np.sqrt(1.0 - np.diag(hat))
    np.testing.assert_allclose(y - studentized_scores(objective, model, 0), expected, atol=1e-5)


def test_a_weight_of_three_is_three_rows():
    weight = np.ones(40)
    weight[5] = 3.0
    x, y, weighted, model = line(weight=weight)
    rows = np.repeat(np.arange(40), weight.astype(int))
    blocks = [
        Block(np.empty((42, 0)), x[rows], np.zeros((1, 1))),
        Block.of_features(np.empty((42, 0))),
    ]
    repeated = Objective(NORMAL, y[rows], np.ones(42), blocks, Penalty(1.0, 0.1))
    first, second = (studentized_scores(o, model, 0) for o in (weighted, repeated))
    np.testing.assert_allclose(first[rows], second, rtol=1e-7)


def test_the_deviation_becomes_that_of_studentised_residuals():
    _, y, objective, model = line()
    refitted = refit_spread(objective, model, 100)
    residual = y - studentized_scores(objective, model, 0)
    expected = 0.5 * np.log(np.mean(residual**2))
    assert refitted[1].tree.beta[0] == pytest.approx(expected, abs=1e-4)
    assert refitted[0] is model[0]


def wide(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    return X, X[:, 0] + 0.5 * np.exp(0.3 * X[:, 1]) * rng.normal(size=n)


def test_new_rows_score_better_with_studentised_residuals():
    """Log score of new rows, mean of 3 data sets of 120 rows and 8 features."""
    gain = []
    for seed in range(3):
        X, y = wide(seed=seed)
        X_new, y_new = wide(2000, seed=100 + seed)
        with_it, without = (
            SoftTreeRegressor(ridge=1.0, max_leaves=6, studentize=flag).fit(X, y) for flag in (True, False)
        )
        gain.append(with_it.log_score(X_new, y_new) - without.log_score(X_new, y_new))
        np.testing.assert_array_equal(with_it.predict(X), without.predict(X))
    assert np.mean(gain) > 0.0


def test_gates_stay_where_they_were_without_joint_optimisation():
    X, y = wide()
    plain, refitted = (
        SoftTreeRegressor(ridge=1.0, max_leaves=6, criterion=None, joint=False, studentize=flag).fit(X, y)
        for flag in (False, True)
    )
    for before, after in zip(plain.model_.predictors, refitted.model_.predictors):
        np.testing.assert_array_equal(before.tree.omega, after.tree.omega)


def test_far_from_the_data_a_tree_stays_within_its_training_range():
    X, y = wide()
    model = SoftTreeRegressor(ridge=1.0, max_leaves=6, criterion=None).fit(X, y)
    seen = model.predict_raw(X)
    far = model.predict_raw(np.concatenate([50.0 * X, -50.0 * X]))
    low, high = seen.min(axis=0), seen.max(axis=0)
    room = 0.25 * (high - low) * [1.0, 0.0] + 1e-9
    assert (far >= low - room).all()
    assert (far <= high + room).all()
    assert far[:, 0].max() > high[0]  # a mean may go on a little
    parts = model.effects(50.0 * X, "sigma")
    np.testing.assert_allclose(sum(parts.values()), model.predict_raw(50.0 * X)[:, 1], atol=1e-9)


def test_a_linear_effect_goes_on_beyond_the_data():
    X, y = wide()
    model = SoftTreeRegressor(
        ridge=1.0, max_leaves=4, structured={"mu": [Linear(0)]}, features={"mu": [1], "sigma": [1]}
    ).fit(X, y)
    at = np.zeros((2, 8))
    at[:, 0] = 0.0, 100.0
    slope = model.coefficients("mu")[0]["estimate"]
    assert np.diff(model.predict(at))[0] == pytest.approx(100.0 * slope)


def test_a_file_keeps_the_bounds(tmp_path):
    X, y = wide()
    model = SoftTreeRegressor(ridge=1.0, max_leaves=4, criterion=None).fit(X, y)
    model.save(tmp_path / "m.npz")
    loaded = SoftTreeRegressor.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(loaded.predict_raw(100.0 * X), model.predict_raw(100.0 * X))


def test_sunspots_beyond_the_record_keep_a_bearable_log_score(staged_data):
    """The last fifth of the series goes beyond all that the first four held."""
    _, y, _ = staged_data("sunspots_yearly")
    values = y.to_numpy(dtype=float)
    X = np.stack([values[12 - j : len(values) - j] for j in range(1, 13)], axis=1)
    values, cut = np.sqrt(values[12:] + 0.001), len(X) * 4 // 5
    model = SoftTreeRegressor().fit(X[:cut], values[:cut])
    constant = NORMAL.log_pdf(values[cut:], [values[:cut].mean(), values[:cut].std()]).mean()
    assert model.log_score(X[cut:], values[cut:]) > constant


@pytest.mark.parametrize(("alone", "found"), [(2, True), (60, False)])
def test_a_spread_that_lives_on_rows_taken_up_by_the_mean(alone, found):
    """A gate gives the last rows a mean and a spread of their own: too many numbers for two rows."""
    x = np.concatenate([np.zeros(120 - alone), np.linspace(1.0, 2.0, alone)])[:, None]
    y = np.random.default_rng(0).normal(size=120)
    objective = Objective(NORMAL, y, np.ones(120), [Block.of_features(x)] * 2, Penalty(1e-6, 1e-6))
    gate = (0, -20.0, np.array([40.0]))
    mean = SoftTree.stump(0.0, 1).split(*gate, np.array([0.3, 0.0]))
    flat = SoftTree.stump(0.0, 1)
    low = flat.split(*gate, np.array([-0.5, 0.0]))
    model = [Predictor(np.empty(0), mean), Predictor(np.empty(0), low)]
    assert collapses(objective, model, 0.5) is found
    assert not collapses(objective, [model[0], Predictor(np.empty(0), flat)], 0.5)
