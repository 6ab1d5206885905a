"""The sorted scan against scipy's Levene test of every split."""

from __future__ import annotations

import numpy as np
import pytest

from boostplugins.usnrt.levene import scan_cuts, scan_subsets
from tests.naive import usnrt_levene as naive


def standard(e):
    e = e - e.mean()
    return e / np.sqrt(np.mean(e**2))


def scan(values, residual, least):
    order = np.argsort(values, kind="stable")
    rank = np.empty(len(values), dtype=np.int64)
    rank[np.argsort(residual, kind="stable")] = np.arange(len(values))
    out = np.empty(len(values) - 1)
    scan_cuts(values[order].astype(float), residual[order], rank[order], np.sort(residual), least, out)
    return out


@pytest.mark.parametrize("least", [2, 10])
@pytest.mark.parametrize("kind", ["distinct", "ties", "missing", "skewed", "equal residuals"])
def test_every_cut_equals_scipy(kind, least):
    rng = np.random.default_rng(3)
    n = 90
    x = rng.normal(size=n)
    e = rng.normal(size=n) * np.exp(x)
    if kind == "ties":
        x = np.round(2 * x)
    if kind == "missing":
        x[rng.random(n) < 0.3] = np.nan
    if kind == "skewed":
        e = rng.exponential(size=n) ** 2
    if kind == "equal residuals":
        e = np.round(e)
    e = standard(e)
    found, expected = scan(x, e, least), naive.all_cuts(x, e, least)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    assert (~np.isnan(found)).sum() > 1
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("least", [2, 15])
def test_every_bipartition_equals_scipy(least):
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 5, size=120)
    e = standard(rng.normal(size=120) * (1 + codes))
    out = np.empty(15)
    scan_subsets(codes, e, 5, least, out)
    expected = naive.all_subsets(codes, e, 5, least)
    np.testing.assert_array_equal(np.isnan(out), np.isnan(expected))
    assert (~np.isnan(out)).any()
    np.testing.assert_allclose(out, expected, rtol=1e-9)


def test_constant_spread_is_no_division_by_zero():
    x = np.arange(8.0)
    alike = scan(x, standard(np.tile([1.0, -1.0], 4)), 2)
    assert (alike[~np.isnan(alike)][[0, -1]] == 0).all()  # even cuts: |e - mean| = 1 on both sides
    apart = scan(x, standard(np.array([1.0, -1, 1, -1, 3, -3, 3, -3])), 4)
    assert apart[3] == -np.inf
