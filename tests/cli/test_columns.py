"""Columns of files: numbers, kinds, empty cells, and cells that are neither; files of other forms."""

import os
import re
import shlex
import sys
import threading

import numpy as np
import pandas as pd
import pytest

from boostplugins.cli.errors import UsageError
from boostplugins.cli.parser import run
from boostplugins.cli.tables import read_table

CELLS = {3: "n/a?", 10: "unknown", 20: "-"}


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"num": rng.normal(size=60).round(3), "code": rng.integers(1, 5, size=60)})
    table["y"] = table["num"] + (table["code"] == 2) + 0.1 * rng.normal(size=60)
    table.to_csv(tmp_path / "train.csv", index=False)
    table.drop(columns="y").to_csv(tmp_path / "new.csv", index=False)
    return tmp_path


def change(path, column, cells):
    table = pd.read_csv(path).astype({column: object})
    for row, cell in cells.items():
        table.loc[row, column] = cell
    table.to_csv(path, index=False)


def predict(folder, *extra, new="new.csv"):
    command = ["uncertainty", str(folder / "train.csv"), str(folder / new), "--target", "y"]
    out = folder / "out.csv"
    code = run([*command, "--out", str(out), "--trees", "10", "--booster", "lightgbm", *extra])
    return pd.read_csv(out) if code == 0 else code


def test_a_few_words_do_not_make_categories_of_numbers(files, capsys):
    expected = predict(files)
    change(files / "train.csv", "num", CELLS)
    assert predict(files) == 2
    message = capsys.readouterr().err.strip().splitlines()[-1]
    assert "column 'num' of " in message
    assert (
        "but for 'n/a?' in row 5, 'unknown' in row 12, '-' in row 22; mend them, or use --missing" in message
    )
    named = predict(files, "--missing", "n/a?, unknown,-")
    change(files / "train.csv", "num", dict.fromkeys(CELLS))
    empty = predict(files)
    pd.testing.assert_frame_equal(named, empty)
    assert np.abs(named["prediction"] - expected["prediction"]).mean() < 0.1
    change(files / "train.csv", "num", CELLS)
    kinds = predict(files, "--categories", "num")
    assert not np.allclose(kinds["prediction"], empty["prediction"])


def test_few_whole_numbers_with_a_word_are_kinds_and_it_is_said(files, capsys):
    change(files / "train.csv", "code", {4: "other"})
    assert len(predict(files)) == 60
    assert "code is taken for categories, since it holds 'other' in row 6" in capsys.readouterr().err


def test_numbers_that_name_kinds(files, capsys):
    plain = predict(files)
    kinds = predict(files, "--categories", "code")
    assert not np.allclose(kinds["prediction"], plain["prediction"])
    # The same kinds under other texts are the same model.
    for name in ("train.csv", "new.csv"):
        table = pd.read_csv(files / name)
        table.assign(code=[f"kind {code}" for code in table["code"]]).to_csv(files / name, index=False)
    pd.testing.assert_frame_equal(predict(files), kinds)
    capsys.readouterr()
    assert predict(files, "--categories", "nope") == 2
    assert "has no feature 'nope' for --categories; columns: ['num', 'code']" in capsys.readouterr().err


def test_texts_stay_texts_in_new_rows_that_look_like_numbers(files):
    table = pd.read_csv(files / "train.csv")
    table["code"] = np.where(table["code"] == 1, "none", "0" + table["code"].astype(str) + ".50")
    table.to_csv(files / "train.csv", index=False)
    rows = table.drop(columns="y")
    rows.to_csv(files / "new.csv", index=False)
    expected = predict(files)
    numbers = rows["code"] != "none"
    rows[numbers].to_csv(files / "some.csv", index=False)
    found = predict(files, new="some.csv")
    np.testing.assert_array_equal(found["prediction"], expected["prediction"][numbers.to_numpy()])


def test_words_among_numbers_to_predict_are_named(files, capsys):
    change(files / "new.csv", "num", CELLS)
    assert predict(files) == 2
    message = capsys.readouterr().err
    assert "new.csv must be numbers as in training, got 'n/a?' in row 5, 'unknown' in row 12" in message
    assert len(predict(files, "--missing", "n/a?,unknown,-")) == 60
    change(files / "new.csv", "num", {**dict.fromkeys(CELLS), 7: "inf"})
    assert predict(files) == 2
    assert "column 'num' of " in (message := capsys.readouterr().err)
    assert "holds inf in row 9; write numbers, or leave the cells empty" in message


def test_names_of_rows_are_written_as_they_are(files):
    table = pd.read_csv(files / "new.csv")
    names = [f"00{10**24 + row}" for row in range(60)]
    table.assign(who=names).to_csv(files / "new.csv", index=False)
    predict(files, "--id", "who")
    assert pd.read_csv(files / "out.csv", dtype=str)["who"].tolist() == names


def test_columns_that_may_name_rows_are_told(files, capsys):
    table = pd.read_csv(files / "train.csv")
    table.assign(text=[f"{cell:.2f}%" for cell in table["num"]]).to_csv(files / "train.csv")  # with its index
    table = pd.read_csv(files / "train.csv")
    table.drop(columns="y").to_csv(files / "new.csv", index=False)
    assert len(predict(files)) == 60
    told = capsys.readouterr().err
    assert "Unnamed: 0 is a count of the rows; if it names them, use --id 'Unnamed: 0'" in told
    assert f"text is {table['text'].nunique()} different texts in 60 rows; if it names them" in told
    assert "num is" not in told
    assert "row" not in predict(files, "--id", "Unnamed: 0")
    assert "count of the rows" not in capsys.readouterr().err


def test_numbers_of_any_length_are_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n1000000000000000000000000;1,5\n2;\n;2,5\n")
    table = read_table(tmp_path / "t.csv")
    np.testing.assert_array_equal(table["a"], [1e24, 2.0, np.nan])
    np.testing.assert_array_equal(table["b"], [1.5, np.nan, 2.5])


def test_truth_values_beside_empty_cells(files):
    table = pd.read_csv(files / "train.csv")
    table["flag"], table["y"] = table["num"] > 0, table["y"] > 0
    table = table.astype({"flag": object, "y": object})
    table.loc[3, "flag"] = table.loc[4, "y"] = None
    table.to_csv(files / "train.csv", index=False)
    table.drop(columns="y").to_csv(files / "new.csv", index=False)
    assert set(predict(files)["prediction"]) <= {True, False}
    table.drop(columns="y").assign(flag="True").to_csv(files / "new.csv", index=False)
    assert len(predict(files)) == 60


@pytest.mark.parametrize("content", ["a,a\n1,2\n", "a;b;a\n1;2;3\n"])
def test_columns_of_one_name(content, tmp_path):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(UsageError, match=r"t.csv has several columns called 'a'"):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings(encoding, tmp_path):
    (tmp_path / "t.csv").write_text("größe\tb\n1\tü\n2\tö\n", encoding=encoding)
    assert read_table(tmp_path / "t.csv").to_dict("list") == {"größe": [1, 2], "b": ["ü", "ö"]}


def test_another_encoding_is_named(tmp_path):
    (tmp_path / "t.csv").write_text("größe,b\n1,ü\n", encoding="latin-1")
    with pytest.raises(UsageError, match="is no CSV file in UTF-8: .*; save it as UTF-8"):
        read_table(tmp_path / "t.csv")


# `os.mkfifo` does not exist on Windows; ordinary files are read and written everywhere.
@pytest.mark.skipif(sys.platform == "win32", reason="pipes are POSIX")
@pytest.mark.parametrize("sep", [",", ";"])
def test_a_pipe_is_read_once(sep, tmp_path):
    rows = pd.DataFrame({"a": np.arange(100_000), "b": "text"})  # more than one read takes
    os.mkfifo(tmp_path / "pipe")
    content = rows.to_csv(index=False, sep=sep)
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=(content,))
    writer.start()
    table = read_table(tmp_path / "pipe")
    writer.join()
    pd.testing.assert_frame_equal(table, rows, check_dtype=False)


# `os.mkfifo` does not exist on Windows; ordinary files are read and written everywhere.
@pytest.mark.skipif(sys.platform == "win32", reason="pipes are POSIX")
def test_results_go_through_a_pipe(files, capsys):
    expected = predict(files)
    os.mkfifo(files / "pipe")
    found = []
    reader = threading.Thread(target=lambda: found.append(pd.read_csv(files / "pipe")))
    reader.start()
    capsys.readouterr()
    command = ["uncertainty", str(files / "train.csv"), str(files / "new.csv"), "--target", "y"]
    assert run([*command, "--out", str(files / "pipe"), "--trees", "10", "--booster", "lightgbm"]) == 0
    reader.join()
    pd.testing.assert_frame_equal(found[0], expected)
    assert capsys.readouterr().out == ""  # nothing between the rows, were it the standard output


def test_comparisons_know_the_same_options(files, capsys):
    change(files / "train.csv", "num", CELLS)
    command = ["compare", str(files / "train.csv"), "--target", "y", "--models", "linear", "--cv", "2"]
    command += ["--out", str(files / "out")]
    assert run(command) == 2
    assert "is nearly all numbers, but for 'n/a?' in row 5" in capsys.readouterr().err
    assert run([*command, "--missing", "n/a?,unknown,-", "--categories", "code"]) == 0


@pytest.mark.parametrize("cell", ["--", "-missing-", " ? ", "n/a, unknown", 'so "what"'])
@pytest.mark.parametrize("column", ["num", "-a", "height, cm"])
def test_the_advice_works_as_it_is_given(cell, column, files, capsys):
    """Pasted into a shell, it leads on, whatever the cell and the column are called."""
    for name in ("train.csv", "new.csv"):
        pd.read_csv(files / name).rename(columns={"num": column}).to_csv(files / name, index=False)
    change(files / "train.csv", column, {3: cell})
    assert predict(files) == 2
    said = capsys.readouterr().err
    assert "different texts" not in said  # a number with a bad cell names no row
    advice = re.search(
        r"or use (--missing .*) for cells without a value, or (--categories .*) for kinds", said
    )
    assert len(predict(files, *shlex.split(advice[1]))) == 60
    assert len(predict(files, *shlex.split(advice[2]))) == 60


def test_one_type_a_column_however_long(tmp_path):
    """Pandas reads long files in pieces, and would guess each one's types anew."""
    cells = ["7"] * 300_000 + ["x"]
    (tmp_path / "long.csv").write_text("\n".join(["k,l", *(f"{cell},{cell}" for cell in cells)]))
    assert read_table(tmp_path / "long.csv")["k"].unique().tolist() == ["7", "x"]
