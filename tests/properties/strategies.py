"""Random inputs of bounded size; examples are derived from the tests, so that each run is the same."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.families.cases import CENTRES


def bounded(max_examples: int) -> settings:
    """Settings of every property: few examples, the same in each run, no clock."""
    return settings(
        derandomize=True,
        deadline=None,
        database=None,
        max_examples=max_examples,
        phases=[Phase.generate],  # the first failing example is small enough
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )


def floats(low, high):
    """Plain finite numbers."""
    return st.floats(low, high, allow_nan=False, allow_infinity=False)


def raw_scores(family, n=6, reach=4.0):
    """Raw scores about a family's centre, up to `reach` away."""
    centre = np.asarray(CENTRES.get(family.name, np.zeros(family.n_params)), dtype=float)
    return arrays(np.float64, (n, family.n_params), elements=floats(-reach, reach)).map(
        lambda moves: centre + moves
    )


@st.composite
def tables(draw, max_rows=24, max_columns=3):
    """Features and responses of odd kinds: types, orders, holes, scales, ties, few rows."""
    n, p = draw(st.integers(1, max_rows)), draw(st.integers(1, max_columns))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    X = rng.normal(size=(n, p)) * 10.0 ** draw(st.integers(-8, 8))
    if draw(st.booleans()):
        X = np.round(X / (np.abs(X).max() or 1.0) * 2)
    if draw(st.booleans()):
        X[rng.random((n, p)) < draw(st.sampled_from([0.1, 0.5, 1.0]))] = np.nan
    kind = draw(st.sampled_from(["normal", "constant", "two values", "outlier", "ties"]))
    y = {
        "normal": rng.normal(size=n),
        "constant": np.full(n, rng.normal()),
        "two values": rng.integers(0, 2, n).astype(float),
        "outlier": np.where(np.arange(n) == 0, 1e4, rng.normal(size=n)),
        "ties": np.round(rng.normal(size=n)),
    }[kind] * 10.0 ** draw(st.integers(-8, 8))
    X = X.astype(draw(st.sampled_from([np.float64, np.float32])))
    return np.asarray(X, order=draw(st.sampled_from("CF"))), y


@st.composite
def weights(draw, n):
    """Weights, some zero, of any size, with a positive sum."""
    whole = draw(arrays(np.int64, n, elements=st.integers(0, 3)))
    whole[draw(st.integers(0, n - 1))] = 1
    return whole * draw(st.sampled_from([1.0, 1e-6, 1e6]))
