"""Staged benchmark data, from a small folder of the same form, and the literature's splits."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from boostplugins.datasets import load_staged, pbp_splits, staged_folder

ENTRY = {
    "categorical": ["kind"],
    "id_columns": ["id"],
    "extra_targets": ["other"],
    "exposure": "days",
    "domain_columns": ["year", "id"],
    "features": ["size", "kind"],
    "target": "y",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOSTPLUGINS_DATA", str(tmp_path))
    table = {"id": [1, 2], "year": [2001, 2002], "days": [3.0, 4.0], "other": [5, 6]}
    table |= {"size": [0.5, np.nan], "kind": ["NA", "b"], "y": [7.0, 8.0]}
    pd.DataFrame(table).to_csv(tmp_path / "table.csv", index=False)
    arrays = {"feature_names": np.array(["u", "v"]), "target_name": np.array("t")}
    np.savez(tmp_path / "arrays.npz", X=np.eye(2), y=np.arange(2), who=np.array([8, 9]), **arrays)
    sets = {"table": ENTRY | {"format": "csv", "file": "table.csv"}}
    sets["arrays"] = {"format": "npz", "file": "arrays.npz"}
    (tmp_path / "manifest.json").write_text(json.dumps({"datasets": sets}))
    return tmp_path


def test_tables_give_features_target_and_the_rest_apart(folder):
    assert staged_folder() == folder
    X, y, meta, extra = load_staged("table")
    assert list(X.columns) == ["size", "kind"]
    assert X["size"].dtype == np.float32
    assert X["kind"].tolist() == ["NA", "b"]  # a word, not a missing value
    assert isinstance(X["kind"].dtype, pd.CategoricalDtype)
    assert y.tolist() == [7.0, 8.0]
    assert meta["file"] == "table.csv"
    assert list(extra.columns) == ["id", "other", "days", "year"]


def test_arrays_keep_their_names(folder):
    X, y, _, extra = load_staged("arrays")
    assert list(X.columns) == ["u", "v"]
    assert y.name == "t"
    assert extra["who"].tolist() == [8, 9]


def test_what_is_absent_is_named(folder, monkeypatch):
    with pytest.raises(KeyError, match=r"unknown data set 'nope'; known: \['arrays', 'table'\]"):
        load_staged("nope")
    monkeypatch.setenv("BOOSTPLUGINS_DATA", str(folder / "missing"))
    assert staged_folder() is None
    with pytest.raises(FileNotFoundError, match="set BOOSTPLUGINS_DATA"):
        load_staged("table")


def test_splits_are_those_of_the_literature():
    splits = list(pbp_splits(506, n_splits=2))
    order = np.random.RandomState(1).choice(range(506), 506, replace=False)
    np.testing.assert_array_equal(np.concatenate(splits[0]), order)
    assert [len(part) for part in splits[0]] == [455, 51]
    assert not np.array_equal(splits[0][1], splits[1][1])
