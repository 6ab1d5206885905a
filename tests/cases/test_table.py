"""The table of users' troubles names tests that are there, and leaves out none of the troubles."""

from __future__ import annotations

import json
import re

import pytest

from boostplugins.datasets import staged_folder
from tests.cases.table import TABLE, TITLES, tests_of_cases

REMEDY = "run python -m tests.cases.table"
tests_of_cases.__test__ = False


def rows():
    return dict(re.findall(r"^\| ([A-J]\d\d) \|(.*)$", TABLE.read_text(), flags=re.MULTILINE))


def test_every_line_names_tests_that_exist():
    found, table = tests_of_cases(), rows()
    assert list(table) == list(TITLES), REMEDY
    for case, line in table.items():
        named = re.findall(r"`([^`]+)::([^`]+)`", line)
        assert named, f"{case} has no test"
        there = {(file, name) for file, name, _ in found[case]}
        assert set(named) <= there, f"{case}: {set(named) - there}; {REMEDY}"


def test_every_report_is_in_the_table():
    folder = staged_folder()
    path = None if folder is None else folder.parent / "cases" / "user_reports.json"
    if path is None or not path.exists():
        # There is nothing to compare with; the table against the tests is checked without the reports.
        pytest.skip("the reports lie beside the staged data, which are absent here")
    assert {report["id"] for report in json.loads(path.read_text())} == set(TITLES)
