"""Compiled chain gradients: loss, schedule, mask, weights and noise in one pass over the rows."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from boostplugins._jit import njit
from boostplugins.losses.normal import _MAX_SQUARE
from boostplugins.noise import GROUP, fill

# Numbers of the compiled losses (`Loss.kernel`).
SQUARED_ERROR, LOGISTIC, SOFTMAX, NORMAL = 0, 1, 2, 3
ROWS_A_THREAD = 50_000  # fewer take less time than to start a thread
LARGEST_LOG = 300.0  # of a standard deviation, so that its square stays finite


class Step(NamedTuple):
    """What one iteration of a chain asks of every row.

    Attributes
    ----------
    gain : float
        Gradient scale alpha.
    size : float
        Standard deviation of the noise, 0 for none.
    sigma : float
        Noise scale of a squared error.
    scale : float
        Scale s of the scores: F = s * score + shift.
    factor : float
        Factor of the result.
    seed : uint64
        Seed of the noise.
    iteration, stream, first_row : int
        Place of the first row's noise among all draws.
    low, high : float
        Range of the log standard deviation of a Normal likelihood.
    """

    gain: float
    size: float
    sigma: float
    scale: float
    factor: float
    seed: np.uint64
    iteration: int
    stream: int
    first_row: int
    low: float = -LARGEST_LOG
    high: float = LARGEST_LOG


class Rows(NamedTuple):
    """The rows of a chain; empty arrays stand for weights of 1, no mask, no random function.

    Attributes
    ----------
    y : ndarray of shape (n,)
        Responses.
    weight : ndarray of shape (n,) or (0,)
        Weights.
    kept : ndarray of shape (n,) or (0,), dtype bool
        Rows that the mask keeps.
    shift : ndarray of shape (n_outputs,)
        Constant part of the raw scores.
    offset : ndarray of shape (n_outputs, n) or (n_outputs, 0)
        Random function of the cycle.
    """

    y: np.ndarray
    weight: np.ndarray
    kept: np.ndarray
    shift: np.ndarray
    offset: np.ndarray


def all_outputs(
    kernel: int, step: Step, rows: Rows, scores: np.ndarray, out: np.ndarray, threads: int = 1
) -> None:
    """Write factor * (gain * w * mask * direction + sqrt(w) * size * noise_scale * zeta) for K raw scores.

    `scores` and `out` have shape (K, n). Rows are worked on a batch at a time, with the draws that
    `boostplugins.noise.normals` gives for them: every array of n numbers is passed over once. Threads
    take neighbouring stretches of rows, with the same bits for any number of them.

    Parameters
    ----------
    kernel : int
        Number of the compiled loss.
    step : Step
        What the iteration asks of every row.
    rows : Rows
        The rows.
    scores : ndarray of shape (n_outputs, n)
        Raw scores.
    out : ndarray of shape (n_outputs, n)
        Where the result goes.
    threads : int, default=1
        Threads.
    """
    n = scores.shape[1]
    threads = max(1, min(threads, n // ROWS_A_THREAD))
    if threads == 1:
        some_rows(kernel, step, rows, scores, out, 0, n)
        return
    cuts = [n * part // threads for part in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        parts = [
            pool.submit(some_rows, kernel, step, rows, scores, out, first, last)
            for first, last in pairwise(cuts)
        ]
        for part in parts:
            part.result()


@njit(error_model="numpy")
def some_rows(kernel, step, rows, scores, out, first, last):  # type: ignore[no-untyped-def]
    """Do so for the rows from `first` to before `last`."""
    n_outputs = len(scores)
    zeta, raw = np.zeros((n_outputs, GROUP)), np.empty((n_outputs, GROUP))
    d, spread = np.empty((n_outputs, GROUP)), np.ones((n_outputs, GROUP))
    if kernel == SQUARED_ERROR:
        spread[:] = step.sigma
    while first < last:
        place = step.first_row + first
        skip = place % GROUP
        count = min(GROUP - skip, last - first)
        end = first + count
        draw(step, place // GROUP, zeta)
        for k in range(n_outputs):
            part, given, shift = raw[k], scores[k, first:end], rows.shift[k]
            for j in range(count):
                part[j] = step.scale * given[j] + shift
            if rows.offset.shape[1]:
                for j in range(count):
                    part[j] += rows.offset[k, first + j]
        directions(kernel, step, rows.y[first:end], raw, d, spread)
        weigh(step, rows, first, d, spread, zeta[:, skip : skip + count], out)
        first = end


@njit(error_model="numpy")
def bad_rows(out):  # type: ignore[no-untyped-def]
    """Count the rows, columns of `out`, that are not finite, without an array of flags."""
    total = 0
    for k in range(len(out)):
        for i in range(out.shape[1]):
            if not np.isfinite(out[k, i]):
                total += 1
    if total and len(out) > 1:
        total = 0
        for i in range(out.shape[1]):
            total += not np.isfinite(out[:, i]).all()
    return total


@njit(error_model="numpy")
def draw(step, group, zeta):  # type: ignore[no-untyped-def]
    """Fill `zeta` with the normals of one group of rows."""
    if step.size > 0.0:
        seed = np.uint64(step.seed)
        key = (seed & np.uint64(0xFFFFFFFF), seed >> np.uint64(32))
        for k in range(len(zeta)):
            counter = ((np.uint64(step.stream) << np.uint64(16)) | np.uint64(k), np.uint64(step.iteration))
            fill(zeta[k], np.uint64(group), counter, key, True)


@njit(error_model="numpy")
def weigh(step, rows, first, d, spread, zeta, out):  # type: ignore[no-untyped-def]
    """Apply schedule, weights, mask and noise to the directions of a batch of rows."""
    count = min(d.shape[1], zeta.shape[1], out.shape[1] - first)
    for k in range(len(d)):
        step_d, step_spread, draws, result = d[k], spread[k], zeta[k], out[k, first : first + count]
        if len(rows.kept):
            for j in range(count):
                if not rows.kept[first + j]:
                    step_d[j] = 0.0
        if len(rows.weight):
            for j in range(count):
                w = np.float64(rows.weight[first + j])
                noise = math.sqrt(w) * step.size * step_spread[j] * draws[j]
                result[j] = step.factor * (step.gain * w * step_d[j] + noise)
        else:
            for j in range(count):
                noise = step.size * step_spread[j] * draws[j]
                result[j] = step.factor * (step.gain * step_d[j] + noise)


@njit(error_model="numpy")
def directions(kernel, step, y, raw, d, spread):  # type: ignore[no-untyped-def]
    """Write the downhill directions of a batch into `d`, and noise scales that vary into `spread`."""
    if kernel == SQUARED_ERROR:
        for j in range(len(y)):
            d[0, j] = np.float64(y[j]) - raw[0, j]
    elif kernel == LOGISTIC:
        for j in range(len(y)):
            d[0, j] = np.float64(y[j]) - 1.0 / (1.0 + math.exp(-raw[0, j]))
    elif kernel == SOFTMAX:
        top, total = spread[0], spread[1]  # room to work in: both are 1 again at the end
        top[:] = raw[0]
        total[:] = 0.0
        for k in range(1, len(raw)):
            for j in range(len(y)):
                top[j] = max(top[j], raw[k, j])
        for k in range(len(raw)):
            for j in range(len(y)):
                d[k, j] = math.exp(raw[k, j] - top[j])
                total[j] += d[k, j]
        for k in range(len(raw)):
            for j in range(len(y)):
                d[k, j] = -d[k, j] / total[j]
        for j in range(len(y)):
            d[np.int64(y[j]), j] += 1.0
        top[:] = 1.0
        total[:] = 1.0
    else:
        for j in range(len(y)):
            sigma = math.exp(min(max(raw[1, j], step.low), step.high))
            spread[0, j] = sigma
            residual = np.float64(y[j]) - raw[0, j]
            d[0, j] = residual
            d[1, j] = min((residual / sigma) ** 2, _MAX_SQUARE) - 1.0
