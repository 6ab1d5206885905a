"""Ctrl-C ends every fit soon, as what it is, and leaves no file and no thread behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import boostplugins

from .small_models import MAKERS

MOST_SECONDS = 5.0  # of CPU: a busy machine does not fail the test


@pytest.mark.slow
def test_f05_ctrl_c_ends_any_fit(tmp_path):
    root = str(Path(boostplugins.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "tests.robustness.interrupted_fits", *MAKERS],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *lines, threads = done.stdout.splitlines()
    found = {
        name: (outcome, float(seconds)) for name, outcome, seconds in (line.split("|") for line in lines)
    }
    assert {name: outcome for name, (outcome, _) in found.items()} == dict.fromkeys(MAKERS, "interrupted")
    assert max(seconds for _, seconds in found.values()) < MOST_SECONDS
    assert threads == "1 thread"
    assert list(tmp_path.iterdir()) == []
