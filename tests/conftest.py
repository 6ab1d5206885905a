"""Fixtures and settings that all tests share."""

from __future__ import annotations

import os

# Boosters and BLAS spin when threads outnumber cores; results never depend on the count.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import numba
import pytest

from boostplugins.datasets import load_staged, staged_folder

# What compiled code does without a word and plain NumPy warns of: a hash of counters runs over by
# design, and a ratio beyond float32 is infinite, which its caller looks for. All else stays an error.
_MEANT_OVERFLOWS = (
    "ignore:overflow encountered in scalar:RuntimeWarning:boostplugins.usnrt.kernels",
    "ignore:overflow encountered in exp:RuntimeWarning:boostplugins.hbart.log_linear",
)


def pytest_configure(config):
    """Let kernels run as plain Python under ``NUMBA_DISABLE_JIT=1``."""
    if numba.config.DISABLE_JIT:
        for line in _MEANT_OVERFLOWS:
            config.addinivalue_line("filterwarnings", line)


@pytest.fixture(scope="session")
def staged_data():
    """Loader of staged data sets: ``staged_data(name) -> X, y, meta``."""
    if staged_folder() is None:
        pytest.skip("staged data absent: set BOOSTPLUGINS_DATA")

    def load(name):
        return load_staged(name)[:3]

    return load
