"""The command line: the demonstration, a user's files, errors in one line."""

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from boostplugins.cli.errors import UsageError
from boostplugins.cli.parser import run
from boostplugins.cli.tables import read_table
from boostplugins.estimators.sglb import SGLBRegressor


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    train = pd.DataFrame({"num": rng.normal(size=150), "cat": rng.choice(["a", "b"], size=150)})
    train.loc[::9, "num"] = np.nan
    train["y"] = train["num"].fillna(0) + (train["cat"] == "a") + 0.1 * rng.normal(size=150)
    train.to_csv(tmp_path / "train.csv", index=False)
    label = np.where(train["y"] > 0.5, "high", "low")
    train.drop(columns="y").assign(label=label).to_csv(tmp_path / "classes.csv", index=False)
    new = train.drop(columns="y").head(20)
    new.loc[0, "cat"] = "never seen"
    new.to_csv(tmp_path / "new.csv", index=False)
    return tmp_path


def _command(folder, *extra, target="y", train="train.csv"):
    return [
        "uncertainty",
        str(folder / train),
        str(folder / "new.csv"),
        "--target",
        target,
        "--out",
        str(folder / "out.csv"),
        "--trees",
        "40",
        *extra,
    ]


@pytest.mark.parametrize("booster", ["catboost", "lightgbm"])
def test_regression_file(booster, files, capsys):
    assert run(_command(files, "--booster", booster, "--save", str(files / "model.zip"))) == 0
    out = pd.read_csv(files / "out.csv")
    assert list(out.columns) == ["row", "prediction", "knowledge", "data", "total", "lower", "upper"]
    assert out["row"].tolist() == list(range(1, 21))
    assert len(out) == 20
    assert np.isfinite(out.to_numpy()).all()
    np.testing.assert_allclose(out["total"], out["knowledge"] + out["data"])
    assert ((out["lower"] < out["prediction"]) & (out["prediction"] < out["upper"])).all()
    assert "iteration 40 of 40" in capsys.readouterr().err
    model = SGLBRegressor.load(files / "model.zip")
    np.testing.assert_allclose(model.predict(pd.read_csv(files / "new.csv")), out["prediction"])


def test_rows_keep_their_names(files, capsys):
    table = pd.read_csv(files / "train.csv")
    table.assign(who=np.arange(150)).to_csv(files / "train.csv", index=False)
    names = [f"row {i}" for i in range(20)]
    pd.read_csv(files / "new.csv").assign(who=names).to_csv(files / "new.csv", index=False)
    assert run(_command(files, "--id", "who", "--booster", "lightgbm")) == 0
    assert "in the order of" in capsys.readouterr().out
    out = pd.read_csv(files / "out.csv")
    assert out["who"].tolist() == names
    assert "row" not in out
    again = pd.read_csv(files / "new.csv").sample(frac=1.0, random_state=0)
    again.to_csv(files / "new.csv", index=False)
    assert run(_command(files, "--id", "who", "--booster", "lightgbm")) == 0
    np.testing.assert_array_equal(pd.read_csv(files / "out.csv").set_index("who").loc[names],
                                  out.set_index("who"))  # fmt: skip


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--id", "who"], "has no column 'who' for --id; columns: ['num', 'cat']"),
        (["--id", "total"], "--id total is a column of the output itself; rename it"),
    ],
)
def test_bad_names_of_rows(extra, message, files, capsys):
    if "total" in extra:
        pd.read_csv(files / "new.csv").assign(total=1).to_csv(files / "new.csv", index=False)
    assert run(_command(files, *extra)) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("sep", [";", "\t", "|"])
def test_other_separators_and_decimal_commas(sep, files, capsys):
    assert run(_command(files, "--booster", "lightgbm")) == 0
    plain = (files / "out.csv").read_text()
    for name in ("train.csv", "new.csv"):
        pd.read_csv(files / name).to_csv(files / name, index=False, sep=sep, decimal=",")
    capsys.readouterr()
    assert run(_command(files, "--booster", "lightgbm")) == 0
    assert (files / "out.csv").read_text() == plain
    assert f"train.csv is separated by {sep!r}, with decimal commas" in capsys.readouterr().err


def test_classification_file(files):
    assert run(_command(files, target="label", train="classes.csv")) == 0
    out = pd.read_csv(files / "out.csv")
    assert set(out["prediction"]) == {"high", "low"}
    np.testing.assert_allclose(out["proba_high"] + out["proba_low"], 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--target", "nope"], "has no column 'nope'"),
        (["--trees", "0"], "--trees must be at least 1"),
        (["--coverage", "1"], "--coverage must be between 0 and 1"),
        (["--seed", "-1"], "--seed must be at least 0"),
        (["--out", "missing/out.csv"], "the folder of missing/out.csv does not exist"),
        (["--task", "regression", "--target", "cat"], "holds text; use --task classification"),
    ],
)
def test_bad_options_are_one_line_and_code_2(change, message, files, capsys):
    assert run(_command(files, *change)) == 2
    err = capsys.readouterr().err.strip().splitlines()
    assert len(err) == 1
    assert message in err[0]
    assert not (files / "out.csv").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is no CSV file"),
        ("num,cat,y\n", "has no rows"),
        ('num,cat,y\n"1,2\n3,4', "is no CSV file"),
        ("num,other,y\n1,low,1\n2,low,2\n", r"lacks the columns \['other'\]"),
        ("y\n1\n2\n", "has no column besides 'y'"),
        ("num,cat,y\n1,a,\n2,b,\n", "column 'y' of .* is empty"),
    ],
)
def test_bad_training_files(content, message, files, capsys):
    (files / "train.csv").write_text(content)
    assert run(_command(files)) == 2
    err = capsys.readouterr().err.strip()
    assert len(err.splitlines()) == 1
    assert re.search(message, err)


def test_missing_files_and_columns(files, capsys):
    (files / "new.csv").write_text("num\n1.0\n")
    assert run(_command(files)) == 2
    assert "lacks the columns ['cat'" in capsys.readouterr().err
    (files / "new.csv").unlink()
    assert run(_command(files)) == 2
    assert "new.csv does not exist" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["train.csv", "new.csv"])
def test_the_files_read_are_never_overwritten(name, files, capsys):
    before = (files / name).read_text()
    assert run(_command(files, "--out", str(files / name))) == 2
    assert "would be lost; write to another" in capsys.readouterr().err
    assert (files / name).read_text() == before


@pytest.mark.parametrize(("kinds", "told"), [(3, True), (2, False)])
def test_numbers_taken_as_classes_are_told(kinds, told, files, capsys):
    """Counts, ratings and stages look alike: the user says what they are."""
    frame = pd.read_csv(files / "train.csv")
    frame.assign(y=np.arange(len(frame)) % kinds).to_csv(files / "counts.csv", index=False)
    options = ["--booster", "lightgbm", "--trees", "20"]
    assert run(_command(files, *options, train="counts.csv")) == 0
    assert ("taken as classes; --task regression" in capsys.readouterr().err) == told
    assert run(_command(files, *options, "--task", "regression", train="counts.csv")) == 0
    assert "taken as classes" not in capsys.readouterr().err


def test_a_bad_cell_does_not_make_classes_of_numbers(files, capsys):
    table = pd.read_csv(files / "train.csv").astype({"y": object})
    table.loc[3, "y"] = "abc"
    table.to_csv(files / "train.csv", index=False)
    assert run(_command(files)) == 2
    assert "nearly all numbers, but for 'abc' in row 5" in capsys.readouterr().err
    table["y"] = [f"label {i}" for i in range(len(table))]
    pd.concat([table, table.assign(y=table["y"] + "b")]).to_csv(files / "train.csv", index=False)
    assert run(_command(files)) == 2
    assert "holds 300 classes, at most 200 are taken" in capsys.readouterr().err


@pytest.mark.parametrize("sep", [",", ";"])
@pytest.mark.parametrize("rows", [["0.1,0.2,0.3,1"] * 3, ["0,a,1,", "1,b,2,"], ["1,a,1", "2,b,2,3"]])
def test_rows_longer_than_the_header(sep, rows, tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("\n".join(["num,cat,y", *rows]).replace(",", sep) + "\n")
    line = 2 if rows[0].count(",") == 3 else 3
    with pytest.raises(UsageError, match=f"long.csv: the header has 3 cells, but line {line} has 4"):
        read_table(path)


@pytest.mark.parametrize("sep", [",", ";"])
def test_a_separator_at_the_end_of_every_row(sep, tmp_path):
    (tmp_path / "t.csv").write_text("a,b,\n0,2.5,\n1,3.5,\n".replace(",", sep))
    assert read_table(tmp_path / "t.csv").to_dict("list") == {"a": [0, 1], "b": [2.5, 3.5]}


def test_a_text_keeps_its_comma_where_numbers_have_points(tmp_path):
    (tmp_path / "t.csv").write_text("a;text\n0.5;x\n1.5;1,2\n2;y\n")
    assert read_table(tmp_path / "t.csv").to_dict("list") == {"a": [0.5, 1.5, 2.0], "text": ["x", "1,2", "y"]}
    (tmp_path / "t.csv").write_text("a;text\n0,5;x\n1,5;1.2\n2;y\n")
    assert read_table(tmp_path / "t.csv").to_dict("list") == {"a": [0.5, 1.5, 2.0], "text": ["x", "1.2", "y"]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a;b\n0.5;1\n1,2;2\n2.5;3\n", "column 'a' of .* holds '1,2' in row 3, but .* have '.' before"),
        ("a;b\n0,5;1\n1.2;2\n2,5;3\n", "column 'a' of .* holds '1.2' in row 3, but .* have ',' before"),
        ("a;b\n0.5;1,5\n1.5;2,5\n", "column 'b' of .* holds '1,5' in row 2"),
        ("a;b\n0,5;1\n1.234,5;2\n2,5;3\n", "column 'a' of .* holds '1.234,5' in row 3"),
        ('a,b\n0.5,"1,5"\n1.5,"2,5"\n', "column 'b' of .* holds '1,5' in row 2"),
    ],
)
def test_numbers_do_not_become_text_for_their_decimal_marks(content, message, tmp_path):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(UsageError, match=message):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--save", "{}/out.csv"], "--out and --save are the same file"),
        (["--save", "{}/../{name}/out.csv"], "--out and --save are the same file"),
        (["--out", "{}"], "is a folder; give a file"),
        (["--out", "-"], "--out must be a file, got -; the standard output is /dev/stdout"),
        (["--save", "{}"], "is a folder; give a file"),
        (["--save", "{}/missing/model"], "does not exist; make it first"),
        (["--out", "{}/train.csv/out.csv"], "does not exist; make it first"),
        (["--out", "{}/" + "x" * 300], "cannot be written: "),
    ],
)
def test_places_that_cannot_be_written_are_found_before_any_work(change, message, files, capsys):
    option, place = change
    before = sorted(files.iterdir())
    assert run(_command(files, option, place.format(files, name=files.name))) == 2
    err = capsys.readouterr().err.strip()
    assert len(err.splitlines()) == 1
    assert message in err
    assert sorted(files.iterdir()) == before


def test_a_folder_without_permission(files, capsys, monkeypatch):
    def refused(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refused)  # root may write anywhere
    assert run(_command(files)) == 2
    assert "out.csv cannot be written: Permission denied" in capsys.readouterr().err


def test_a_file_is_no_folder_for_the_demonstration(files, capsys):
    for place in ("train.csv", "train.csv/demo"):
        assert run(["--out", str(files / place)]) == 2
        assert "train.csv is a file, not a folder" in capsys.readouterr().err


def test_an_earlier_result_survives_a_bad_run(files):
    (files / "out.csv").write_text("kept")
    (files / "new.csv").write_text("num\n1.0\n")
    assert run(_command(files)) == 2
    assert (files / "out.csv").read_text() == "kept"


@pytest.mark.slow
def test_the_main_job(tmp_path):
    command = [sys.executable, "-W", "error", "-m", "boostplugins", "--out", str(tmp_path / "demo")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    table = dict(
        line.rsplit(None, 1) for line in done.stdout.splitlines() if "AUC" in line or "accuracy" in line
    )
    assert float(table["accuracy, seen digits"]) > 0.93
    assert float(table["AUC of knowledge uncertainty, new against seen"]) > 0.8
    assert (tmp_path / "demo" / "digits.png").stat().st_size > 10_000
    rows = pd.read_csv(tmp_path / "demo" / "digits.csv")
    assert rows["seen"].sum() == 380
    assert len(rows) == 913
