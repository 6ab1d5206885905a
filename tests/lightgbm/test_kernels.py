"""The compiled pass over K raw scores, against the losses' own directions and the noise's own draws."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from boostplugins.lightgbm.settings import thread_count
from boostplugins.losses import Logistic, NormalLikelihood, Softmax, SquaredError, kernels
from boostplugins.losses.kernels import NORMAL, Rows, Step, all_outputs, bad_rows
from boostplugins.noise import Stream, normals

N = 2500  # rows of more than two batches


def one_pass(loss, part, first_row, seed, scores, y, weight, kept, offset, threads=1):
    """Run the compiled pass on a part of the rows."""
    k = len(scores)
    step = Step(
        gain=3.0,
        size=0.7,
        sigma=float(loss.noise_scale(np.zeros((1, k)))[0, 0]),
        scale=0.9,
        factor=-2.0,
        seed=np.uint64(seed),
        iteration=5,
        stream=int(Stream.LEAVES),
        first_row=first_row + part.start,
        low=-2.0,
        high=1.0,
    )
    out = np.empty((k, part.stop - part.start), dtype=np.float32)
    rows = Rows(y[part], weight[part], kept[part], np.arange(k) / 4.0, np.ascontiguousarray(offset[:, part]))
    number = NORMAL if isinstance(loss, NormalLikelihood) else loss.kernel
    all_outputs(number, step, rows, np.ascontiguousarray(scores[:, part]), out, threads)
    return out


@pytest.mark.parametrize("first_row", [0, 1500, 2**40 + 7])
@pytest.mark.parametrize("full", [False, True], ids=["bare", "weights-mask-offset"])
@pytest.mark.parametrize(
    "loss",
    [SquaredError(0.3), Logistic(), Softmax(4), NormalLikelihood(log_sigma_range=(-2.0, 1.0))],
    ids=lambda loss: loss.name,
)
def test_one_pass_is_the_formula(loss, full, first_row, monkeypatch):
    rng = np.random.default_rng(0)
    k = loss.n_outputs
    y = rng.integers(0, 4 if k == 4 else 2, N).astype(np.float32)
    scores = rng.normal(size=(k, N))
    weight = rng.uniform(0.0, 3.0, N if full else 0).astype(np.float32)
    kept = rng.uniform(size=N if full else 0) < 0.6
    offset = rng.normal(size=(k, N if full else 0))
    seed = 2**63 + 11
    arguments = (first_row, seed, scores, y, weight, kept, offset)
    found = one_pass(loss, slice(0, N), *arguments)

    raw = 0.9 * scores.T + np.arange(k) / 4.0 + (offset.T if full else 0.0)
    w = weight.astype(float)[:, None] if full else np.ones((N, 1))
    d = 3.0 * w * loss.direction(y.astype(float), raw)
    if full:
        d[~kept] = 0.0
    zeta = np.stack([normals(seed, 5, Stream.LEAVES, N, first_row, output) for output in range(k)], axis=1)
    d += np.sqrt(w) * 0.7 * loss.noise_scale(raw) * zeta
    np.testing.assert_allclose(found.T, -2.0 * d, rtol=1e-6, atol=1e-5)

    # Cut into parts anywhere, as on several machines, the bits are the same.
    cuts = [0, 1, 700, 1024, 2049, N]
    parts = [one_pass(loss, slice(a, b), *arguments) for a, b in itertools.pairwise(cuts)]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), found)

    # And so on several threads, where the passes of all of them are counted.
    monkeypatch.setattr(kernels, "ROWS_A_THREAD", 100)
    counted, plain = [], kernels.some_rows
    monkeypatch.setattr(kernels, "some_rows", lambda *args: counted.append(args[-2:]) or plain(*args))
    np.testing.assert_array_equal(one_pass(loss, slice(0, N), *arguments, threads=3), found)
    assert sorted(counted) == [(0, 833), (833, 1666), (1666, 2500)]


def test_bad_rows_are_counted_once():
    out = np.zeros((3, 10), dtype=np.float32)
    assert bad_rows(out) == 0
    out[0, 2] = out[2, 2] = np.nan
    out[1, 7] = -np.inf
    assert bad_rows(out) == 2
    assert bad_rows(out[:1]) == 1


def test_threads_are_lightgbms(monkeypatch):
    assert thread_count({"n_jobs": 3}) == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "5,2")
    assert thread_count({"num_threads": 0}) == thread_count({}) == 5
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr("os.cpu_count", lambda: 7)
    assert thread_count({"num_threads": -1}) == 7
