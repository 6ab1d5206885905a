"""The penalised likelihood: exact gradients for each family, growth that never lowers it."""

from __future__ import annotations

import numpy as np
import pytest

from boostplugins.families import families, get_family
from boostplugins.soft_trees.criteria import (
    degrees_of_freedom,
    effective_df,
    information_criterion,
    jacobian,
)
from boostplugins.soft_trees.growth import Growth, grow
from boostplugins.soft_trees.objective import Block, Objective, Penalty, Predictor
from boostplugins.soft_trees.refine import refine, update_coefficients
from boostplugins.soft_trees.tree import SoftTree
from tests.naive.soft_tree import brute_force_split, grow_by_brute_force


def settled(name):
    family = families()[name]
    try:
        return family(n_classes=3) if name == "categorical" else get_family(name)
    except (TypeError, ValueError):
        return None


def problem(family, n=30, splits=2, inner=True, seed=0):
    """Random data and a random model of every parameter, not at an optimum."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    theta = family.theta(np.tile(0.3 * np.ones(family.n_params), (n, 1)))
    y = family.sample(theta, 1, rng)[:, 0]
    family = family.ready(y)
    start = family.init(y)
    blocks = [Block(x, x[:, :1] ** 2, np.eye(1))] * family.n_params
    model = []
    for k in range(family.n_params):
        tree = SoftTree.stump(start[k], 2)
        for _ in range(splits):
            tree = tree.split(
                int(tree.leaves[-1]), rng.normal(), rng.normal(size=2), 0.1 * rng.normal(size=2)
            )
        model.append(Predictor(0.05 * rng.normal(size=1), tree if inner else tree.push_down()))
    weight = rng.uniform(0.5, 2.0, size=n)
    return Objective(family, y, weight, blocks, Penalty(0.7, 0.3), inner), model


# Families that cannot be made without settings of their own (wrappers of another) have none here.
@pytest.mark.parametrize("name", [name for name in sorted(families()) if settled(name) is not None])
def test_gradient_equals_finite_differences(name):
    family = settled(name)
    objective, model = problem(family)
    vector = objective.pack(model)
    value, grad = objective.loss_and_gradient(vector, model)
    assert np.isfinite(value)
    direction = np.random.default_rng(1).normal(size=(3, len(vector)))
    for d in direction:
        step = 1e-5
        up = objective.loss_and_gradient(vector + step * d, model)[0]
        down = objective.loss_and_gradient(vector - step * d, model)[0]
        assert (up - down) / (2 * step) == pytest.approx(grad @ d, rel=2e-4, abs=2e-4 * np.abs(grad).max())


def test_gradient_of_each_coordinate_and_of_a_sort():
    objective, model = problem(get_family("normal"), inner=False)
    vector = objective.pack(model)
    _, grad = objective.loss_and_gradient(vector, model)
    at = 0
    for p in model:
        frozen = at + 1 + p.tree.node[1:]
        assert (grad[frozen] == 0).all()
        for i in range(at, at + len(objective.pack([p]))):
            if i not in frozen:
                e = np.eye(len(vector))[i] * 1e-6
                up = objective.loss_and_gradient(vector + e, model)[0]
                down = objective.loss_and_gradient(vector - e, model)[0]
                assert (up - down) / 2e-6 == pytest.approx(grad[i], rel=1e-5, abs=1e-5)
        at += len(objective.pack([p]))


def test_jacobian_equals_finite_differences():
    objective, model = problem(get_family("normal"))
    columns = jacobian(model[0], objective.blocks[0])
    vector = objective.pack(model[:1])
    for i in range(len(vector)):
        e = np.eye(len(vector))[i] * 1e-6
        up = objective.unpack(vector + e, model[:1])[0].value(objective.blocks[0])
        down = objective.unpack(vector - e, model[:1])[0].value(objective.blocks[0])
        np.testing.assert_allclose((up - down) / 2e-6, columns[:, i], atol=1e-7)


def wave(n=300, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    y = np.sin(2 * x[:, 0]) + np.exp(0.5 * x[:, 1] - 1) * rng.normal(size=n)
    blocks = [Block.of_features(x)] * 2
    start = [Predictor(np.empty(0), SoftTree.stump(v, 2)) for v in get_family("normal").init(y)]
    return y, blocks, start


@pytest.mark.parametrize("inner", [True, False])
@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("rule", ["best", "each"])
def test_penalised_likelihood_never_falls_along_the_growth(inner, joint, rule):
    y, blocks, start = wave()
    objective = Objective(get_family("normal"), y, np.ones(len(y)), blocks, Penalty(1.0, 0.1), inner)
    growth = Growth(max_leaves=10, joint=joint, rule=rule, criterion=None, steps=15, final_steps=20)
    grown = grow(objective, start, growth)
    assert (np.diff(grown.path[:, 1]) > 0).all()
    assert len(grown.path) > 2
    assert grown.penalised >= grown.path[-1, 1] - 1e-9
    for p in grown.predictors:
        assert inner or not p.tree.beta[p.tree.node[1:]].any()


def test_both_parameters_get_splits_and_worsening_ones_are_removed():
    y, blocks, start = wave(600)
    objective = Objective(get_family("normal"), y, np.ones(len(y)), blocks, Penalty(1.0, 0.1))
    grown = grow(objective, start, Growth(criterion="bic", steps=20))
    assert all(p.tree.n_leaves > 1 for p in grown.predictors)
    best = grown.path[np.argmin(grown.path[:, 3])]
    assert sum(p.tree.n_leaves for p in grown.predictors) == best[0]
    assert grown.criterion <= best[3] + 1.0


@pytest.mark.slow
def test_one_split_is_as_good_as_brute_force():
    y, blocks, start = wave(120)
    objective = Objective(get_family("normal"), y, np.ones(len(y)), blocks, Penalty(0.5, 0.1))
    grown = grow(objective, start, Growth(max_leaves=3, criterion=None, steps=60, final_steps=200))
    angles = np.linspace(0, np.pi, 6, endpoint=False)
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    best = brute_force_split(objective, start, directions, (-0.8, 0.0, 0.8), (0.7, 1.5, 3.0))
    assert grown.penalised >= best


@pytest.mark.slow
def test_growth_keeps_up_with_a_twin_grown_by_brute_force():
    y, blocks, start = wave(80)
    objective = Objective(get_family("normal"), y, np.ones(len(y)), blocks, Penalty(0.5, 0.1))
    directions = [(1.0, 0.0), (0.7, 0.7), (0.0, 1.0)]
    naive, model = grow_by_brute_force(objective, start, 2, directions, (-0.7, 0.0, 0.7), (1.5, 4.0))
    assert naive[0] < naive[1] < naive[2]
    for joint in (True, False):
        growth = Growth(max_leaves=4, criterion=None, joint=joint)
        grown = grow(objective, start, growth)
        assert len(grown.path) == len(naive)
        assert grown.penalised >= naive[-1]
    assert sum(p.tree.n_leaves for p in model) == 4


def test_refinement_and_scoring_never_lower_the_objective():
    objective, model = problem(get_family("gamma"))
    before = objective.value(model)
    scored = update_coefficients(objective, model)
    assert objective.value(scored) > before
    assert objective.value(refine(objective, model, 5)) > before
    for old, new in zip(model, scored):
        np.testing.assert_array_equal(old.tree.omega, new.tree.omega)


def test_scoring_solves_ridge_regression_at_once():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 2))
    y = rng.normal(size=50)
    blocks = [Block.of_features(x)] * 2
    tree = SoftTree.stump(0.0, 2).split(0, 0.2, np.array([1.0, -1.0]), np.zeros(2))
    constant = SoftTree.stump(0.0, 2)
    objective = Objective(get_family("normal"), y, np.ones(50), blocks, Penalty(1.0, 0.4))
    model = [Predictor(np.empty(0), tree), Predictor(np.empty(0), constant)]
    fitted = update_coefficients(objective, model, steps=50, tolerance=0.0)
    sigma2 = np.exp(2 * fitted[1].tree.beta[0])
    N = tree.path_weights(x)
    S = 2 * 0.4 * np.diag([0.0, 1.0, 1.0])
    expected = np.linalg.solve(N.T @ N / sigma2 + S, N.T @ y / sigma2)
    np.testing.assert_allclose(fitted[0].tree.beta, expected, rtol=1e-4, atol=1e-6)


def test_degrees_of_freedom():
    objective, model = problem(get_family("normal"), n=400)
    leaves = sum(p.tree.n_leaves for p in model)
    assert degrees_of_freedom(objective, model, "leaves") == leaves + 2
    assert degrees_of_freedom(objective, model, "coefficients") == 2 * leaves - 2 + 2
    loose = Objective(objective.family, objective.y, objective.weight, objective.blocks, Penalty(0.0, 0.0))
    firm = Objective(objective.family, objective.y, objective.weight, objective.blocks, Penalty(1e9, 1e9))
    full = sum(len(loose.pack([p])) for p in model)
    # Node coefficients are redundant: each split's pair sums to its parent's weight.
    assert effective_df(firm, model) < effective_df(objective, model) < effective_df(loose, model) <= full
    assert effective_df(firm, model) >= 2 - 1e-6


def test_information_criteria():
    assert information_criterion("bic", -10.0, 2.0, 100.0) == pytest.approx(20 + 2 * np.log(100))
    assert information_criterion("aicc", -10.0, 2.0, 10.0) == pytest.approx(20 + 4 * 10 / 7)
    assert information_criterion("aicc", -10.0, 9.5, 10.0) == np.inf
