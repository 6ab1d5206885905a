"""The package as a whole: docstrings, floors' outside, optional boosters, public names."""

import dataclasses
import importlib
import inspect
import pkgutil
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest
from numpydoc.validate import validate

import boostplugins

ROOT = Path(__file__).resolve().parents[1]
CHECKS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["numpydoc_validation"]["checks"])


def _modules():
    for module in pkgutil.walk_packages(boostplugins.__path__, "boostplugins."):
        if not any(part.startswith("_") for part in module.name.split(".")):
            yield module.name


def _public(module_name):
    """Public functions, classes and methods that a module defines itself, with the checks they need."""
    module = importlib.import_module(module_name)
    for name, item in vars(module).items():
        if name.startswith("_") or getattr(item, "__module__", None) != module_name:
            continue
        if inspect.isfunction(item):
            yield f"{module_name}.{name}", CHECKS
        elif inspect.isclass(item):
            # Fields of a data class may stand under Attributes; an inherited __init__ is its base's.
            protocol = getattr(item, "_is_protocol", False)
            if protocol:  # implementations say more
                continue
            own_arguments = "__init__" in vars(item) and not dataclasses.is_dataclass(item)
            yield f"{module_name}.{name}", CHECKS if own_arguments else CHECKS - {"PR01"}
            for method, inner in vars(item).items():
                if method.startswith("_") or not (
                    inspect.isfunction(inner) or isinstance(inner, classmethod)
                ):
                    continue
                inherited = inspect.getdoc(getattr(item, method)) and not inner.__doc__
                if not inherited:
                    yield f"{module_name}.{name}.{method}", CHECKS


@pytest.mark.parametrize("module_name", sorted(_modules()))
def test_docstrings_follow_numpydoc(module_name):
    faults = [] if importlib.import_module(module_name).__doc__ else [f"{module_name}: no docstring"]
    for name, checks in _public(module_name):
        found = [(code, text) for code, text in validate(name)["errors"] if code in checks]
        faults += [f"{name}: {code} {text}" for code, text in found]
    assert not faults, "\n".join(faults)


def test_public_names_are_there_and_documented():
    for name in boostplugins.__all__:
        assert inspect.getdoc(getattr(boostplugins, name)), name
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        boostplugins.nonsense  # noqa: B018


def test_dir_lists_public_names_only():
    names = [name for name in dir(boostplugins) if not name.startswith("__")]
    assert set(boostplugins.__all__) <= set(names)
    for name in set(names) - set(boostplugins.__all__):
        assert importlib.import_module(f"boostplugins.{name}") is getattr(boostplugins, name)


@pytest.mark.parametrize(("absent", "present"), [("catboost", "lightgbm"), ("lightgbm", "catboost")])
def test_b13_either_booster_may_be_absent(absent, present):
    code = f"""
        import sys
        sys.modules[{absent!r}] = None
        import boostplugins
        from boostplugins import BernoulliMask, CosineCycle, Predictive, SGLBRegressor
        from boostplugins.{present} import CyclicalSGLB
        CyclicalSGLB("RMSE")
        try:
            import boostplugins.{absent}
        except ImportError as error:
            assert "pip install {absent}" in str(error), error
        else:
            raise SystemExit("imported")
        import numpy as np
        X = np.random.default_rng(0).normal(size=(60, 2))
        SGLBRegressor(booster={present!r}, n_estimators=5, n_jobs=1).fit(X, X[:, 0])
        try:
            SGLBRegressor(booster={absent!r}, n_estimators=5).fit(X, X[:, 0])
        except ImportError as error:
            assert "pip install {absent}" in str(error), error
    """
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_h09_importing_is_quick_and_compiles_nothing():
    code = (
        "import sys, boostplugins; "
        "heavy = {'catboost', 'lightgbm', 'numba', 'sklearn', 'pandas', 'matplotlib'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_tree_names_no_machine():
    """No absolute path of one machine in code, tests, documents."""
    faults = []
    for folder in ("boostplugins", "tests", "benchmarks", ".ci"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md", ".txt", ".json") or path.name == "run":
                text = path.read_text(errors="ignore")
                faults += [
                    f"{path.name}: {word}"
                    for word in ("/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/")
                    if word in text
                ]
    assert not faults
