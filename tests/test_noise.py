"""Counter-based noise: published answers, laws, purity."""

import concurrent.futures

import numpy as np
import pytest
from scipy import stats

from boostplugins.noise import Stream, normals, philox, uniforms

# Random123's published known answers of philox4x32-10: counter, key, output.
KNOWN = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def _words(text):
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize(("counter", "key", "output"), KNOWN)
def test_known_answers(counter, key, output):
    found = philox(np.array([_words(counter)], dtype=np.uint32), tuple(_words(key)))
    assert found[0].tolist() == _words(output)


def test_normals_are_the_box_muller_transform_of_the_words():
    seed, iteration, n = 2**40 + 3, 9, 3000
    z = normals(seed, iteration, Stream.LEAVES, n, output=2)
    u = uniforms(seed, iteration, Stream.LEAVES, n + 1096, output=2)
    for row in (0, 1, 255, 256, 700, 1023, 1024, 2999):
        group, place = divmod(row, 1024)
        lane, i = divmod(place, 256)
        pair = 2 * (lane // 2)
        radius = np.sqrt(-2 * np.log(u[1024 * group + 256 * pair + i]))
        angle = 2 * np.pi * u[1024 * group + 256 * (pair + 1) + i]
        expected = radius * (np.cos(angle) if lane % 2 == 0 else np.sin(angle))
        assert z[row] == pytest.approx(expected, abs=1e-12)


def test_normal_law():
    z = normals(seed=1, iteration=0, stream=Stream.STRUCTURE, n_rows=1_000_000)
    # Fixed seed; for a random one each check would fail less than once in a thousand runs.
    assert stats.kstest(z, "norm").pvalue > 1e-3
    assert stats.kstest(z[:100_000] ** 2 + z[100_000:200_000] ** 2, stats.chi2(2).cdf).pvalue > 1e-3
    assert abs(np.corrcoef(z[:-1], z[1:])[0, 1]) < 0.004
    assert np.isfinite(z).all()
    assert np.abs(z).max() < 6.8


@pytest.mark.parametrize("change", [{"seed": 2}, {"iteration": 1}, {"stream": Stream.LEAVES}, {"output": 1}])
def test_streams_are_unrelated(change):
    base = {"seed": 1, "iteration": 0, "stream": Stream.STRUCTURE, "output": 0}
    a, b = (normals(n_rows=100_000, **settings) for settings in (base, base | change))
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.016  # 5 sd


def test_same_bits_for_any_cut_order_or_thread():
    whole = normals(seed=3, iteration=5, stream=Stream.LEAVES, n_rows=10_000)
    cuts = [(0, 1), (1, 499), (500, 500), (1000, 1025), (2025, 7975)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda cut: normals(3, 5, Stream.LEAVES, cut[1], cut[0]), cuts))
    assert np.array_equal(np.concatenate(parts), whole)


def test_global_generators_are_left_alone():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    normals(0, 0, Stream.LEAVES, 100)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_far_rows_reach_beyond_32_bits():
    far = 2**35
    z = normals(seed=1, iteration=0, stream=Stream.LEAVES, n_rows=5000, first_row=far)
    assert not np.array_equal(z, normals(seed=1, iteration=0, stream=Stream.LEAVES, n_rows=5000))
    assert abs(z.mean()) < 0.08
