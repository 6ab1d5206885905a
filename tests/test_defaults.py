"""Defaults in docstrings are those of the code, for every public class and function of every module."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re

import pytest
from numpydoc.docscrape import ClassDoc, FunctionDoc

import boostplugins


def documented():
    """Public objects with the functions whose arguments they document."""
    for module in pkgutil.walk_packages(boostplugins.__path__, "boostplugins."):
        if any(part.startswith("_") for part in module.name.split(".")):
            continue
        for name, item in vars(importlib.import_module(module.name)).items():
            if name.startswith("_") or getattr(item, "__module__", None) != module.name:
                continue
            if inspect.isclass(item):
                yield f"{module.name}.{name}", item, ClassDoc(item)
                for method, inner in vars(item).items():
                    if not method.startswith("_") and inspect.isfunction(inner) and inner.__doc__:
                        yield f"{module.name}.{name}.{method}", inner, FunctionDoc(inner)
            elif inspect.isfunction(item) and item.__doc__:
                yield f"{module.name}.{name}", item, FunctionDoc(item)


def literal(text):
    try:
        return True, ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False, None


@pytest.mark.filterwarnings("ignore")
def test_defaults_in_prose_equal_the_code():
    faults, compared = [], 0
    for where, item, doc in documented():
        try:
            signature = inspect.signature(item)
        except ValueError:
            continue
        for parameter in doc["Parameters"]:
            stated = re.search(r"default\s*[=:]?\s*(.+)$", parameter.type)
            if not stated:
                continue
            given, value = literal(stated.group(1).strip().strip("`"))
            for name in re.split(r",\s*", parameter.name):
                known = signature.parameters.get(name)
                if not given or known is None:
                    continue
                compared += 1
                if known.default != value or isinstance(known.default, bool) != isinstance(value, bool):
                    faults.append(f"{where}({name}): documented {value!r}, is {known.default!r}")
    assert not faults, "\n".join(faults)
    assert compared > 200
