"""Fixtures and settings that all tests share."""

from __future__ import annotations

import os

# Boosters and BLAS spin when threads outnumber cores; results never depend on the count.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest

from boostplugins.datasets import load_staged, staged_folder


@pytest.fixture(scope="session")
def staged_data():
    """Loader of staged data sets: ``staged_data(name) -> X, y, meta``."""
    if staged_folder() is None:
        pytest.skip("staged data absent: set BOOSTPLUGINS_DATA")

    def load(name):
        return load_staged(name)[:3]

    return load
