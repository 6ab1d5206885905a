"""The chain samples the posterior: conjugate toys in closed form."""

import math

import numpy as np
import pytest
from catboost import CatBoost, CatBoostRegressor

from boostplugins.catboost import CyclicalSGLB
from boostplugins.losses import SquaredError

QUIET = {"verbose": False, "allow_writing_files": False, "thread_count": 1}


def _one_leaf_states(temperature, shrink, variance, eps=0.1, n=100, iterations=4000, unit=1.0, seed=0):
    """States of a chain whose feature splits 100 rows from 100 others: two leaves, each conjugate."""
    rng = np.random.default_rng(0)
    X = np.repeat([0.0, 1.0], n)[:, None]
    y = unit * rng.normal(size=2 * n)
    chain = CyclicalSGLB(SquaredError(variance), temperature=temperature, shrink=shrink, random_state=seed)
    model = CatBoostRegressor(
        loss_function=chain,
        eval_metric="RMSE",
        iterations=iterations,
        learning_rate=eps,
        depth=1,
        metric_period=iterations,
        **QUIET,
        **chain.catboost_params(),
    )
    model.fit(X, y, callbacks=[chain.callback()])
    walk = np.array([state[[0, n]] for state in model.staged_predict(X)])
    step, rate = float(np.float32(eps)), float(np.float32(shrink))
    walk = walk / (1 - rate * step) ** np.arange(iterations - 1, -1, -1)[:, None]
    return walk[200:], y


@pytest.mark.slow
@pytest.mark.parametrize(
    ("temperature", "shrink", "variance", "unit"),
    [(1.0, 0.0, 1.0, 1.0), (4.0, 0.0, 1.0, 1.0), (1.0, 0.5, 1.0, 1.0), (1.0, 0.0, 1e6, 1e3)],
)
def test_conjugate_leaf(temperature, shrink, variance, unit):
    """Stationary variance sigma^2 / (tau n (1 + gamma)), up to the discretisation of the step.

    The exact stationary variance of the linear recursion is (2 eps / (tau n)) sigma^2 / (1 - a^2)
    with a = 1 - eps (1 + gamma). A variance estimated from N states with autocorrelation a has a
    relative sd of sqrt(2 (1 + a^2) / (N (1 - a^2))) or so; the band is four of them over both leaves.
    """
    eps, n = 0.1, 100
    states, y = _one_leaf_states(temperature, shrink, variance, eps=eps, unit=unit)
    a = 1 - eps * (1 + shrink)
    exact = 2 * eps * variance / (temperature * n) / (1 - a**2)
    assert exact == pytest.approx(variance / (temperature * n * (1 + shrink)), rel=0.1)
    band = 4 * math.sqrt((1 + a**2) / (len(states) * (1 - a**2)))
    assert states.var(axis=0).mean() == pytest.approx(exact, rel=band)
    centre = np.array([y[:n].mean(), y[n:].mean()]) / (1 + shrink)
    error = math.sqrt(exact * (1 + a) / (1 - a) / len(states))
    assert (np.abs(states.mean(axis=0) - centre) < 4.5 * error).all()


def _first_splits(seeds, **options):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.normal(size=300)
    found = []
    for seed in seeds:
        chain = CyclicalSGLB(SquaredError(1.0), random_state=seed, **options)
        model = CatBoost(
            dict(
                loss_function=chain,
                eval_metric="RMSE",
                iterations=2,
                learning_rate=0.1,
                depth=1,
                **QUIET,
                **chain.catboost_params(),
            )
        )
        model.fit(chain.pool(X, y), callbacks=[chain.callback()])
        found.append(model._get_tree_splits(1, model_pool(X))[0])
    return found


def model_pool(X):
    from catboost import Pool

    return Pool(X)


def test_noise_reaches_the_choice_of_splits():
    assert len(set(_first_splits(range(8)))) > 3
    assert len(set(_first_splits(range(3), noise="none"))) == 1


def test_structure_and_leaf_noise_are_independent():
    """The noise of the leaves is not the one that chose the split: their means do not follow it."""
    from boostplugins.noise import Stream, normals

    a = normals(0, 1, Stream.STRUCTURE, 100_000)
    b = normals(0, 1, Stream.LEAVES, 100_000)
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.016


def test_d11_noise_has_the_documented_size():
    """Leaf values of noise alone: variance eps^2 * 2 / (eps tau) / n_leaf."""
    n, eps, tau = 10_000, 0.2, 2.5
    X = np.random.default_rng(0).random((n, 10))
    chain = CyclicalSGLB(SquaredError(1.0), temperature=tau, random_state=1)
    model = CatBoostRegressor(
        loss_function=chain,
        eval_metric="RMSE",
        iterations=2,
        learning_rate=eps,
        depth=8,
        border_count=32,
        **QUIET,
        **chain.catboost_params(),
    )
    # A target that the start fits exactly leaves the noise alone in the first real tree.
    model.fit(X, np.r_[1e-12, np.zeros(n - 1)], callbacks=[chain.callback()])
    counts = model.get_tree_leaf_counts().astype(int)
    first = model.get_leaf_values()[counts[0] : counts[0] + counts[1]]
    size = model.get_leaf_weights()[counts[0] : counts[0] + counts[1]]
    z = first[size > 0] * np.sqrt(size[size > 0]) / np.sqrt(2 * eps / tau)
    # The sd of so many normals is off by 5 % or so: a factor of sqrt(2) in the noise would be seen.
    assert len(z) > 150
    assert 0.8 < z.std() < 1.2


def test_d11_infinitely_cold_is_plain_boosting_and_hot_is_worse():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=500)

    def fit(**options):
        chain = CyclicalSGLB(SquaredError(1.0), **options)
        model = CatBoostRegressor(
            loss_function=chain, eval_metric="RMSE", iterations=60, **QUIET, **chain.catboost_params()
        )
        return model.fit(X, y, callbacks=[chain.callback()]).predict(X)

    plain = fit(noise="none")
    assert np.array_equal(plain, fit(temperature=math.inf))
    assert np.mean((fit(temperature=0.01) - y) ** 2) > np.mean((plain - y) ** 2)
    with pytest.raises(ValueError, match="inverse temperature: use math.inf for boosting without noise"):
        CyclicalSGLB(temperature=0.0)
