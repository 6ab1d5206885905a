"""Limits as they are given: names, types, rows that tell nothing, limits that are no numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from boostplugins.families import Beta, Censored, Exponential, IntervalCensored, Normal, Truncated, Weibull
from boostplugins.predictive import Predictive

TIME, EVENT = np.array([2.0, 5.0, 0.5]), np.array([True, False, True])
PAIRS = np.column_stack([TIME, np.where(EVENT, TIME, np.inf)])


def structured(event, kind, names=("event", "time")):
    y = np.empty(len(event), dtype=[(names[0], kind), (names[1], float)])
    y[names[0]], y[names[1]] = event, TIME
    return y


@pytest.mark.parametrize(
    "y",
    [
        structured(EVENT, bool),
        structured(EVENT, bool, ("cens", "days")),
        structured(EVENT, np.int64),
        structured(EVENT, np.uint8, ("Status", "days")),
        pd.DataFrame(PAIRS, columns=["lower", "upper"]),
        pd.DataFrame(PAIRS[:, ::-1], columns=["upper", "lower"]),
        pd.DataFrame(PAIRS),
    ],
    ids=["bool", "named-bool", "int", "status", "frame", "swapped", "unnamed"],
)
def test_forms_that_mean_the_same(y):
    family = IntervalCensored(Weibull())
    np.testing.assert_array_equal(family.responses(y), family.responses(PAIRS))


@pytest.mark.parametrize(
    "y",
    [
        pd.DataFrame({"event": EVENT.astype(int), "time": TIME}),
        pd.DataFrame({"event": EVENT, "time": TIME}),
        pd.DataFrame({"low": TIME, "high": TIME}),
        structured([0, 1, 2], int),
        structured(EVENT, int, ("left", "right")),
        structured(EVENT, float),
    ],
    ids=["frame-int", "frame-bool", "frame-names", "not-0-1", "left-right", "float"],
)
def test_names_whose_meaning_would_be_a_guess_are_refused(y):
    family = IntervalCensored(Weibull())
    with pytest.raises(ValueError, match=r"must name its two columns 'lower' and 'upper'.*np\.column_stack"):
        family.responses(y)
    with pytest.raises(ValueError, match="must name its two columns"):
        Predictive(family, np.ones((3, 2))).log_pdf(y)


@pytest.mark.parametrize("kind", [complex, "datetime64[s]", "timedelta64[s]"])
def test_types_without_an_order_of_numbers_are_refused(kind):
    family = IntervalCensored()
    whole = np.array([[1, 2], [3, 4]]).astype(kind)
    for y in (whole, whole[:, 0], pd.DataFrame(whole, columns=["lower", "upper"])):
        with pytest.raises(ValueError, match="must be numeric"):
            family.responses(y)


@pytest.mark.parametrize(
    ("base", "y", "side"),
    [
        (Weibull(), [[1.0, np.inf], [2.0, np.inf]], "above"),
        (Exponential(), [[-np.inf, 1.0], [0.0, 2.0]], "below"),
        (Normal(), [[-np.inf, 1.0], [-np.inf, 2.0]], "below"),
        (Beta(), [[0.0, 1.0], [0.0, 1.0]], "above"),
    ],
)
def test_rows_that_bound_nothing_on_one_side_have_no_best_constant(base, y, side):
    family = IntervalCensored(base)
    rows = family.responses(y)
    with pytest.raises(ValueError, match=f"finite limit {side}.*the likelihood has no maximum"):
        family.init(rows)
    known = family.responses([*y, [0.5, 0.5]])
    with pytest.raises(ValueError, match="no maximum"):
        family.init(known, np.array([1.0, 1.0, 0.0]))
    assert np.isfinite(family.init(known)).all()


@pytest.mark.parametrize("kind", [Censored, Truncated])
@pytest.mark.parametrize("low", [np.array([0.0, 1.0]), [0.0], "0", None, True])
def test_limits_are_single_numbers(kind, low):
    remedy = "limits of each row's own use IntervalCensored" if kind is Censored else ""
    with pytest.raises(ValueError, match=f"low must be one number, the same for all rows, got .*{remedy}"):
        kind(Normal(), low=low)
    with pytest.raises(ValueError, match="low must be below high"):
        kind(Normal(), low=2, high=np.float32(1.0))
