"""Training of single networks and of pairs."""

from __future__ import annotations

import numpy as np
import pytest

from boostplugins.usnrt.kernels import Rows
from boostplugins.usnrt.network import Network, NetworkSpec, Training, thinned, train_network
from boostplugins.usnrt.pair import PairPlan, Sample, train_pair
from tests.naive import usnrt_networks as naive

F32 = np.float32


def wave(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 1)).astype(F32)
    y = (np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n)).astype(F32)
    return X, y, np.ones(n, dtype=F32)


def train(seed=0, **options):
    spec = NetworkSpec((16, 8))
    rows = Rows(*wave())
    training = Training(**{"max_epochs": 40, **options})
    return train_network(
        spec, rows, np.arange(480), np.arange(480, 600), training, np.random.default_rng(seed)
    )


def test_learns_a_wave_and_repeats_by_seed():
    network, history = train()
    X, y, _ = wave(400, seed=1)
    assert np.mean((network.predict(X) - y) ** 2) < 0.03  # noise 0.01, variance of y 0.5
    again, same = train()
    assert again.params.tobytes() == network.params.tobytes()
    assert same == history
    assert not np.array_equal(train(seed=1)[0].params, network.params)


def test_best_weights_are_restored_and_patience_stops():
    network, history = train(learning_rate=0.05, patience=3, max_epochs=300)
    assert len(history.loss) - 1 == history.best_epoch + 3 < 300
    assert history.best_loss == min(history.loss)
    X, y, _ = wave()
    held_out = np.mean((network.predict(X[480:]) - y[480:]) ** 2)
    assert held_out == pytest.approx(history.best_loss, rel=1e-5)


def test_drops_go_on_from_the_best_weights():
    plain = train(learning_rate=0.05, patience=3, max_epochs=300)[1]
    dropped = train(learning_rate=0.05, patience=3, max_epochs=300, drops=1)[1]
    assert dropped.loss[: len(plain.loss)] == plain.loss
    assert dropped.best_loss < plain.best_loss


def test_start_that_is_best_is_kept():
    rows = Rows(np.ones((30, 1), F32), np.zeros(30, F32), np.ones(30, F32))
    start = np.zeros(NetworkSpec((3,)).n_params(1), F32)
    start[0] = 1.0
    network, history = train_network(
        NetworkSpec((3,)),
        rows,
        np.arange(20),
        np.arange(20, 30),
        Training(5),
        np.random.default_rng(0),
        start,
    )
    assert history.best_epoch == 0
    np.testing.assert_array_equal(network.params, start)


def test_xavier_start_has_its_variance():
    start = NetworkSpec((200, 100)).start(50, np.random.default_rng(0), np.float64)
    first = start[: 50 * 200]
    assert (start[50 * 200 : 51 * 200] == 0).all()
    # False alarm below 1e-6: five standard errors of a variance from 10 000 normals.
    assert np.var(first) == pytest.approx(2 / 250, rel=5 * np.sqrt(2 / 10_000))


def test_prediction_of_a_row_does_not_depend_on_its_place():
    for spec in (NetworkSpec((9, 5)), NetworkSpec((9, 5), "tanh", "softplus", "variance", 1e-8)):
        rng = np.random.default_rng(3)
        network = Network(spec, 4, spec.start(4, rng, np.float64))
        X = rng.normal(size=(150, 4))
        whole = network.predict(X)
        single = np.concatenate([network.predict(X[i : i + 1]) for i in range(150)])
        np.testing.assert_allclose(whole, single, rtol=1e-13)
        np.testing.assert_allclose(network.predict(X[::-1])[::-1], whole, rtol=1e-13)
        twin = naive.outputs(network.params, [4, 9, 5, 1], X, spec.activation, spec.output)[-1]
        np.testing.assert_allclose(whole, twin[:, 0], rtol=1e-7, atol=1e-7)


def test_thinned_networks_average_to_the_whole_for_one_layer():
    rng = np.random.default_rng(4)
    spec = NetworkSpec((20,), keep=0.6)
    network = Network(spec, 2, spec.start(2, rng, np.float64))
    X = rng.normal(size=(5, 2))
    draws = np.stack([thinned(network, rng).predict(X) for _ in range(1000)])
    # One hidden layer: linear in the kept units, so exact in expectation; five standard errors.
    error = 5 * draws.std(axis=0) / np.sqrt(1000)
    assert (np.abs(draws.mean(axis=0) - network.predict(X)) < error).all()


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_pair_finds_mean_and_spread(beta):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, size=(3000, 1)).astype(F32)
    spread = np.where(X[:, 0] < 0, 0.05, 0.5)
    y = (X[:, 0] + spread * rng.normal(size=3000)).astype(F32)
    sample = Sample(X, y, np.ones(3000, F32))
    plan = PairPlan((12, 6), beta=beta)
    pair, histories = train_pair(
        plan,
        sample,
        np.arange(2400),
        np.arange(2400, 3000),
        Training(60, patience=10),
        np.random.default_rng(0),
    )
    assert len(histories) == 4
    mean, variance = pair.predict(X)
    assert (variance > 0).all()
    assert np.sqrt(np.mean((mean - X[:, 0]) ** 2)) < 0.06
    inner = np.abs(X[:, 0]) > 0.15
    assert np.median(np.abs(np.log(np.sqrt(variance[inner]) / spread[inner]))) < 0.15


def test_wrong_width_is_refused():
    network = Network(NetworkSpec((2,)), 3, np.zeros(11))
    with pytest.raises(ValueError, match=r"\(n_samples, 3\), got \(4, 2\)"):
        network.predict(np.zeros((4, 2)))
