"""Laws of one soft tree: path weights, values, hard decisions."""

from __future__ import annotations

import numpy as np
import pytest

from boostplugins.soft_trees.tree import SoftTree
from tests.naive.soft_tree import naive_path_weight, naive_value


def full_tree(depth, n_features, seed=0, steep=1.0):
    rng = np.random.default_rng(seed)
    tree = SoftTree.stump(rng.normal(), n_features)
    level = [0]
    for _ in range(depth):
        below = []
        for node in level:
            below += [len(tree.beta), len(tree.beta) + 1]
            tree = tree.split(node, rng.normal(), steep * rng.normal(size=n_features), rng.normal(size=2))
        level = below
    return tree


@pytest.mark.parametrize("depth", [1, 3, 12])
@pytest.mark.parametrize("size", [1.0, 1e9])
def test_path_weights_of_a_level_sum_to_one(depth, size):
    tree = full_tree(depth, 2)
    x = size * np.random.default_rng(1).normal(size=(40, 2))
    weights, depths = tree.path_weights(x), tree.depths
    for level in range(depth + 1):
        np.testing.assert_allclose(weights[:, depths == level].sum(axis=1), 1.0, atol=1e-12)


def test_g06_path_weights_stay_positive_in_log_space_and_hard_mode_has_few_values():
    for depth in (3, 12):
        tree = full_tree(depth, 3)
        x = np.random.default_rng(2).normal(size=(200, 3))
        log_weights = tree.log_path_weights(x)
        assert np.isfinite(log_weights).all()
        np.testing.assert_allclose(np.exp(log_weights[:, tree.leaves]).sum(axis=1), 1.0, atol=1e-12)
        hard = tree.harden(x)
        assert 1 < len(np.unique(hard)) <= 2**depth
        leaf_values = tree.leaf_values()
        assert np.isin(np.round(hard, 9), np.round(leaf_values, 9)).all()
        soft = tree.value(x)
        assert soft.min() >= leaf_values.min() - 1e-12
        assert soft.max() <= leaf_values.max() + 1e-12
    deep = full_tree(1, 1)
    for _ in range(14):
        deep = deep.split(int(deep.leaves[-1]), 300.0, np.array([0.0]), np.zeros(2))
    assert deep.path_weights(np.zeros((1, 1))).min() < 1e-300
    assert np.isfinite(deep.log_path_weights(np.zeros((1, 1)))).all()


def test_hard_mode_is_the_limit_of_steep_gates():
    tree = full_tree(4, 3, steep=1e6)
    x = np.random.default_rng(3).normal(size=(100, 3))
    np.testing.assert_allclose(tree.value(x), tree.harden(x), atol=1e-9)


def test_value_and_weights_equal_the_naive_recursion():
    tree = full_tree(3, 2)
    x = np.random.default_rng(4).normal(size=(25, 2))
    np.testing.assert_allclose(tree.value(x), [naive_value(tree, row) for row in x], rtol=1e-12)
    weights = tree.path_weights(x)
    for node in range(len(tree.beta)):
        np.testing.assert_allclose(
            weights[:, node], [naive_path_weight(tree, row, node) for row in x], rtol=1e-10
        )
    np.testing.assert_allclose(tree.value(x), weights @ tree.beta, rtol=1e-10)


def test_sort_is_adasort_with_inner_coefficients_zero():
    tree = full_tree(3, 2)
    sort = tree.push_down()
    assert not sort.beta[sort.node].any()
    assert sort.beta[sort.leaves].any()
    x = np.random.default_rng(5).normal(size=(50, 2))
    np.testing.assert_allclose(sort.value(x), tree.value(x), atol=1e-12)


def test_a_row_does_not_depend_on_its_neighbours():
    tree = full_tree(4, 5)
    x = np.random.default_rng(6).normal(size=(101, 5))
    whole = tree.value(x)
    assert all(tree.value(x[i : i + 1])[0] == whole[i] for i in range(len(x)))


def test_saturated_gates_give_no_nan():
    tree = full_tree(3, 1, steep=1e300)
    assert np.isfinite(tree.value(np.array([[1e5], [-1e5], [0.0]]))).all()
