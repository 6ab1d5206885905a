"""Every public estimator goes through scikit-learn's checks, on the oldest supported versions too."""

from __future__ import annotations

import ast
from pathlib import Path

from sklearn.base import BaseEstimator

import boostplugins

ROOT = Path(__file__).resolve().parents[2]


def _checked(path):
    """Names within the calls of `parametrize_with_checks` in a file."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    calls = [call for call in calls if getattr(call.func, "id", None) == "parametrize_with_checks"]
    return {node.id for call in calls for node in ast.walk(call) if isinstance(node, ast.Name)}


def _estimators():
    public = ((name, getattr(boostplugins, name)) for name in boostplugins.__all__)
    return {name for name, item in public if isinstance(item, type) and issubclass(item, BaseEstimator)}


def test_every_public_estimator_is_checked():
    assert len(_estimators()) >= 15
    assert _estimators() <= set().union(*map(_checked, (ROOT / "tests").rglob("test_*.py")))


def test_the_job_of_the_oldest_versions_holds_every_file_of_checks():
    job = ROOT / ".ci" / "oldest"
    if not job.is_file():  # an installed source archive has no jobs
        return
    said = job.read_text()
    for path in (ROOT / "tests").rglob("test_*.py"):
        if _checked(path):
            assert path.stem.removeprefix("test_") in said, path.name
