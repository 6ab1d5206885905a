r"""Counter-based uniforms and normals: pure functions of (seed, iteration, stage, row, output).

The generator is Philox4x32-10 [1]_: a keyed permutation of a 128-bit counter. The key is the seed;
the counter holds the row's block (one block serves four rows), the output and use, and the
iteration. Nothing is carried from call to call, so draws do not depend on call order, thread count
or how rows are cut into blocks.

Normals come from the Box-Muller transform with 32-bit uniforms; logarithm, sine and cosine are
polynomials good to 1e-13, written without branches so that the compiler can vectorise them.

References
----------
.. [1] Salmon, Moraes, Dror, Shaw (2011), Parallel random numbers: as easy as 1, 2, 3. SC'11.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from boostplugins._jit import njit

_LANE = 256  # blocks worked on at a time: their words stay in the first-level cache
GROUP = 4 * _LANE  # rows that one such batch serves
_TWO_NEG_32 = 2.0**-32


class Stream(IntEnum):
    """What a draw is for; each use has its own part of the counter space."""

    STRUCTURE = 0
    LEAVES = 1
    MASK = 2
    PRIOR = 3


def philox(counter: np.ndarray, key: tuple[int, int]) -> np.ndarray:
    """Permute counters with Philox4x32-10.

    Parameters
    ----------
    counter : ndarray of shape (n, 4), dtype uint32
        Counters.
    key : tuple of two int
        Key words, 32 bits each.

    Returns
    -------
    ndarray of shape (n, 4), dtype uint32
        Random words.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.noise import philox
    >>> [f"{word:08x}" for word in philox(np.zeros((1, 4), dtype=np.uint32), (0, 0))[0]]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    words = np.ascontiguousarray(np.asarray(counter, dtype=np.uint32).T).astype(np.uint64)
    _permute(words, len(words[0]), np.uint64(key[0]), np.uint64(key[1]))
    return words.T.astype(np.uint32)


def uniforms(
    seed: int, iteration: int, stream: int, n_rows: int, first_row: int = 0, output: int = 0
) -> np.ndarray:
    """Draw uniforms on (0, 1), one a row.

    Parameters
    ----------
    seed : int
        Seed in [0, 2**64).
    iteration : int
        Iteration (or cycle) in [0, 2**32).
    stream : int
        What the draws are for, a `Stream`.
    n_rows : int
        Rows.
    first_row : int, default=0
        Number of the first row.
    output : int, default=0
        Number of the output, in [0, 2**16).

    Returns
    -------
    ndarray of shape (n_rows,)
        Multiples of 2**-32, plus half of that.
    """
    return _draw(seed, iteration, stream, n_rows, first_row, output, normal=False)


def normals(
    seed: int, iteration: int, stream: int, n_rows: int, first_row: int = 0, output: int = 0
) -> np.ndarray:
    """Draw standard normals, one a row.

    Parameters
    ----------
    seed : int
        Seed in [0, 2**64).
    iteration : int
        Iteration (or cycle) in [0, 2**32).
    stream : int
        What the draws are for, a `Stream`.
    n_rows : int
        Rows.
    first_row : int, default=0
        Number of the first row.
    output : int, default=0
        Number of the output, in [0, 2**16).

    Returns
    -------
    ndarray of shape (n_rows,)
        Standard normal draws, |z| < 6.8.

    Examples
    --------
    >>> from boostplugins.noise import Stream, normals
    >>> whole = normals(seed=7, iteration=3, stream=Stream.LEAVES, n_rows=10)
    >>> part = normals(seed=7, iteration=3, stream=Stream.LEAVES, n_rows=4, first_row=5)
    >>> bool((whole[5:9] == part).all())
    True
    """
    return _draw(seed, iteration, stream, n_rows, first_row, output, normal=True)


def _draw(
    seed: int, iteration: int, stream: int, n_rows: int, first_row: int, output: int, normal: bool
) -> np.ndarray:
    first_group = first_row // GROUP
    n_groups = -(-(first_row + n_rows) // GROUP) - first_group
    draws = np.empty(GROUP * n_groups)
    fill(draws, np.uint64(first_group), *_place(seed, iteration, stream, output), normal)
    skip = first_row - GROUP * first_group
    return draws[skip : skip + n_rows]


def _place(seed: int, iteration: int, stream: int, output: int) -> tuple[Any, Any]:
    """Words of the counter and of the key that all rows of a draw share."""
    counter = (np.uint64((int(stream) << 16) | output), np.uint64(iteration))
    return counter, (np.uint64(seed & 0xFFFFFFFF), np.uint64((seed >> 32) & 0xFFFFFFFF))


@njit(error_model="numpy")
def _permute(words, n, key0, key1):  # type: ignore[no-untyped-def]
    """Ten Philox rounds in place on words[0:4, 0:n], each a 32-bit value in a uint64."""
    low = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    multiplier0, multiplier1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
    weyl0, weyl1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
    k0, k1 = key0, key1
    for _ in range(10):
        for i in range(n):  # the inner loop runs over counters, so that it vectorises
            product0 = multiplier0 * words[0, i]
            product1 = multiplier1 * words[2, i]
            words[0, i] = (product1 >> shift) ^ words[1, i] ^ k0
            words[1, i] = product1 & low
            words[2, i] = (product0 >> shift) ^ words[3, i] ^ k1
            words[3, i] = product0 & low
        k0 = (k0 + weyl0) & low
        k1 = (k1 + weyl1) & low


@njit(error_model="numpy")
def fill(out, first_group, counter, key, normal):  # type: ignore[no-untyped-def]
    """Fill `out` with whole groups: the four words of each block go to the four quarters of its group."""
    low = np.uint64(0xFFFFFFFF)
    words = np.empty((4, _LANE), dtype=np.uint64)
    scratch = np.empty((3, _LANE))
    for group in range(len(out) // GROUP):
        for i in range(_LANE):
            block = (first_group + np.uint64(group)) * np.uint64(_LANE) + np.uint64(i)
            words[0, i] = block & low
            words[1, i] = counter[0]
            words[2, i] = counter[1]
            words[3, i] = block >> np.uint64(32)
        _permute(words, _LANE, key[0], key[1])
        quarters = out[group * GROUP : (group + 1) * GROUP].reshape(4, _LANE)
        if normal:
            _box_muller(words[0], words[1], scratch, quarters[0], quarters[1])
            _box_muller(words[2], words[3], scratch, quarters[2], quarters[3])
        else:
            for lane in range(4):
                for i in range(_LANE):
                    quarters[lane, i] = (np.float64(np.int64(words[lane, i])) + 0.5) * _TWO_NEG_32


@njit(error_model="numpy")
def _box_muller(word, turn_word, scratch, cosines, sines):  # type: ignore[no-untyped-def]
    """Turn pairs of words into pairs of normals: sqrt(-2 ln u) times cosine and sine of 2 pi v."""
    # The same memory read as floats and as bits, never both in one loop: the compiler vectorises a
    # loop only over arrays that cannot overlap.
    value, value_bits = scratch[0], scratch[0].view(np.int64)
    mantissa, mantissa_bits = scratch[1], scratch[1].view(np.int64)
    exponent, radius = scratch[2], scratch[0]
    for i in range(len(word)):
        value[i] = np.float64(np.int64(word[i])) + 0.5
    for i in range(len(word)):
        # value = mantissa * 2**exponent with the mantissa in [1/sqrt 2, sqrt 2).
        power = (value_bits[i] - np.int64(0x3FE6A09E667F3BCD)) >> np.int64(52)
        mantissa_bits[i] = value_bits[i] - (power << np.int64(52))
        exponent[i] = np.float64(power) - 32.0
    for i in range(len(word)):
        # ln of the mantissa m as the series of 2 artanh((m - 1) / (m + 1)).
        s = (mantissa[i] - 1.0) / (mantissa[i] + 1.0)
        q = s * s
        series = 1 / 13 + q * (1 / 15 + q * (1 / 17 + q * (1 / 19)))
        series = 1.0 + q * (1 / 3 + q * (1 / 5 + q * (1 / 7 + q * (1 / 9 + q * (1 / 11 + q * series)))))
        radius[i] = np.sqrt(np.abs(2.0 * (exponent[i] * 0.6931471805599453 + 2.0 * s * series)))
    for i in range(len(word)):
        # Angle in turns: the nearest quarter, and the rest x in [-1/8, 1/8] turns, in radians.
        turn = np.int64(turn_word[i])
        quarter = (turn + np.int64(1 << 29)) >> np.int64(30)
        x = (np.float64(turn - (quarter << np.int64(30))) + 0.5) * 1.4629180792671596e-09  # 2 pi / 2**32
        q = x * x
        sine = 1 / 362880 - q * (1 / 39916800 - q * (1 / 6227020800))
        sine = x * (1.0 - q * (1 / 6 - q * (1 / 120 - q * (1 / 5040 - q * sine))))
        cosine = 1 / 40320 - q * (1 / 3628800 - q * (1 / 479001600 - q * (1 / 87178291200)))
        cosine = 1.0 - q * (1 / 2 - q * (1 / 24 - q * (1 / 720 - q * cosine)))
        odd = (quarter & np.int64(1)) == 1
        cosines[i] = radius[i] * (sine if odd else cosine) * (1.0 - np.float64((quarter + 1) & np.int64(2)))
        sines[i] = radius[i] * (cosine if odd else sine) * (1.0 - np.float64(quarter & np.int64(2)))
