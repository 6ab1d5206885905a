"""Numba's cache of compiled code: many processes at once, damaged files, no place to write."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import boostplugins

from .small_models import MAKERS, fitted, predictor, rows

KERNEL = """
import sys
import numpy as np
from boostplugins._jit import njit

@njit
def add(values):
    total = 0.0
    for value in values:
        total += 1.0 / (1.0 + value)
    return total

print(add(np.arange(9, dtype=sys.argv[1])))
"""
KINDS = ("float32", "float64", "int16", "uint8")


def run(script, kind, environment):
    command = [sys.executable, str(script), kind]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def outcomes(processes):
    ends = [(*process.communicate(timeout=300), process.returncode) for process in processes]
    assert {(err, code) for _, err, code in ends} == {("", 0)}
    return {out for out, _, _ in ends}


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    return path


@pytest.fixture
def environment(tmp_path):
    return os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": str(Path(boostplugins.__file__).parents[1]),
    }


def expected():
    return {f"{sum(1.0 / (1.0 + value) for value in range(9))}\n"}


@pytest.mark.slow
def test_h06_eight_processes_compile_at_once_on_an_empty_and_on_a_damaged_cache(
    script, environment, tmp_path
):
    """Two processes each for four types: numba may give two types' code one file name."""
    processes = [run(script, kind, environment) for kind in KINDS * 2]
    assert outcomes(processes) == expected()
    damages = [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content[:100] + bytes(300) + content[400:],
        lambda content: bytes([*content[: len(content) // 2], 255, *content[len(content) // 2 :]]),
        lambda content: content[:-40] + b"\x17" + content[-39:],
        lambda content: b"no pickle at all",
    ]
    files = sorted((tmp_path / "cache").rglob("*.nb?"))
    assert {path.suffix for path in files} == {".nbi", ".nbc"}
    for place, path in enumerate(files):
        path.write_bytes(damages[place % len(damages)](path.read_bytes()))
    processes = [run(script, kind, environment) for kind in KINDS * 2]
    assert outcomes(processes) == expected()


@pytest.mark.parametrize("kind", ["code", "index"])
def test_changed_code_is_compiled_anew(kind, script, environment, tmp_path):
    """A flipped bit in machine code, or an index that names the code of another type."""
    for name in ("float64", "int16"):
        assert outcomes([run(script, name, environment)]) == expected()
    codes = sorted((tmp_path / "cache").rglob("*.nbc"))
    assert len(codes) == 2
    if kind == "index":
        contents = [path.read_bytes() for path in codes]
        for path, content in zip(codes, reversed(contents)):
            path.write_bytes(content)
    else:
        for path in codes:
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 1
            path.write_bytes(content)
    assert outcomes([run(script, "int16", environment)]) == expected()


@pytest.mark.slow
def test_h06_a_package_nobody_may_write_to_and_no_home(tmp_path):
    """Files stand where the cache folders would: nothing can be written, whoever runs the test."""
    copy = tmp_path / "boostplugins"
    shutil.copytree(Path(boostplugins.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [copy, *(path for path in copy.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("")
    before = sorted(tmp_path.rglob("*"))
    code = (
        "import numpy as np, boostplugins, boostplugins.noise\n"
        "assert boostplugins.noise.normals(1, 2, 0, 3).shape == (3,)\n"
        "X = np.arange(120.0).reshape(60, 2)\n"
        "boostplugins.SGLBRegressor(n_estimators=3, n_jobs=1, prior=None).fit(X, X[:, 0] % 7)\n"
        "print(boostplugins.__file__)\n"
    )
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "XDG", "HOME"))
    }
    environment = kept | {"HOME": "/dev/null/nowhere", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).parent == copy
    assert sorted(tmp_path.rglob("*")) == before


def predictions(path, names, **environment):
    root = str(Path(boostplugins.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.robustness.predictions", str(path), *names],
        env=os.environ | {"PYTHONPATH": root} | environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with np.load(path) as file:
        return {name: file[name] for name in names}


@pytest.mark.slow
def test_h06_kernels_do_the_same_as_plain_python(tmp_path):
    """Without compilation an index beyond an array is an error, and integers do not run over in silence."""
    found = predictions(tmp_path / "plain.npz", MAKERS, NUMBA_DISABLE_JIT="1")
    for name, values in found.items():  # sums in float32 go in another order
        expected = predictor(fitted(name))(rows())
        np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.slow
def test_h06_kernels_stay_within_their_arrays(tmp_path):
    names = ("sglb_classifier_catboost", "sglb_regressor_lightgbm", "mc_dropout", "hnn")
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    found = predictions(tmp_path / "checked.npz", names, **checked)
    for name, values in found.items():
        np.testing.assert_allclose(
            values, predictor(fitted(name))(rows()), rtol=1e-4, atol=1e-5, err_msg=name
        )
