"""``python -m boostplugins compare``: tables, shifted rows, going on, errors in one line."""

import re

import numpy as np
import pandas as pd
import pytest

from boostplugins.cli import compare as command
from boostplugins.cli.parser import run


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=90), "kind": rng.choice(["u", "v"], size=90)})
    table["year"] = rng.integers(2000, 2003, size=90)
    table["y"] = table["a"] + (table["kind"] == "u") + 0.3 * rng.normal(size=90)
    table["label"] = np.where(table["y"] > 0.5, "high", "low")
    table.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path


def _command(folder, *extra, target="y", models="linear,random-forest"):
    return [
        "compare", str(folder / "data.csv"), "--target", target, "--models", models,
        "--out", str(folder / "out"), "--cv", "3", *extra,
    ]  # fmt: skip


def test_regression_table(data, capsys):
    assert run(_command(data, "--shift-by", "year=2002")) == 0
    out, err = capsys.readouterr()
    table = pd.read_csv(data / "out" / "table.csv")
    assert set(table["model"]) == {"linear", "random-forest"}
    auc = table[(table["model"] == "linear") & (table["metric"] == "tu_auc")]["mean"].iloc[0]
    assert 0.3 < auc < 0.7  # the year says nothing of the other columns
    assert "rows with year=2002 are held out; year is no feature" in err
    assert "6 of 6" in err
    assert re.search(r"random-forest .*±", out)


def test_names_of_rows_are_no_feature(data, capsys):
    table = pd.read_csv(data / "data.csv")
    table.assign(who=[f"row {i}" for i in range(90)]).to_csv(data / "data.csv", index=False)
    assert run(_command(data, models="linear")) == 0
    assert "who is another text in each row; if it names them, use --id who" in capsys.readouterr().err
    assert run(_command(data, "--id", "who", models="linear")) == 0
    assert "another text" not in capsys.readouterr().err
    without = pd.read_csv(data / "out" / "table.csv")
    table.to_csv(data / "data.csv", index=False)
    assert run(_command(data, models="linear")) == 0
    timed = without["metric"].isin(["fit_cpu", "predict_cpu"])
    pd.testing.assert_frame_equal(without[~timed], pd.read_csv(data / "out" / "table.csv")[~timed])


def test_classes_are_found_by_their_text(data, capsys):
    assert run(_command(data, target="label", models="logistic,sglb-nope")) == 2
    assert run(_command(data, target="label", models="logistic")) == 0
    assert "accuracy" in capsys.readouterr().out


def test_a_second_run_finds_the_fits(data, capsys):
    assert run(_command(data)) == 0
    capsys.readouterr()
    assert run(_command(data)) == 0
    assert capsys.readouterr().err.count("kept from before") == 6


def test_a_failing_model_is_a_line(data, capsys):
    assert run(_command(data, models="linear,family:nonsense")) == 0
    out = capsys.readouterr().out
    assert re.search(r"^family:nonsense: fold 0: .*nonsense", out, re.MULTILINE)


def test_list(data, capsys):
    assert run(_command(data, "--list")) == 0
    assert "usnrt-ensemble" in capsys.readouterr().out.splitlines()
    assert not (data / "out").exists()


def test_interruption_says_that_fits_are_kept(data, capsys, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "compare", interrupted)
    assert run(_command(data)) == 130
    assert "finished fits are kept in" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--target", "nope"], "has no column 'nope'"),
        (["--cv", "1"], "--cv must be at least 2"),
        (["--cv", "1000"], "--cv must be at most the 90 rows"),
        (["--seed", "-1"], "--seed must be at least 0"),
        (["--jobs", "0"], "--jobs must not be 0"),
        (["--id", "who"], "has no column 'who' for --id; columns"),
        (["--models", "linaer"], "unknown model 'linaer'; did you mean 'linear'"),
        (["--out", __file__], "is a file, not a folder"),
        (["--shift-by", "year"], "--shift-by must be COL=VALUE, got year"),
        (["--shift-by", "month=1"], "has no column 'month' to shift by"),
        (["--shift-by", "year=1999"], "--shift-by year=1999 marks 0 of 90 rows; values are"),
        (["--shift-by", "year=x"], "marks 0 of 90 rows"),
        (["--target", "kind", "--task", "regression"], "holds text; use --task classification"),
    ],
)
def test_bad_options_are_one_line_and_code_2(change, message, data, capsys):
    assert run(_command(data, *change)) == 2
    err = capsys.readouterr().err.strip().splitlines()
    assert len(err) == 1 or err[0].startswith("90 rows")
    assert message in err[-1]


def test_numbers_match_as_numbers(data):
    assert run(_command(data, "--shift-by", "year=2002.0")) == 0


def test_the_list_needs_no_file(capsys):
    assert run(["compare", "--list"]) == 0
    said = capsys.readouterr().out
    assert "regression:" in said
    assert "sglb-lightgbm" in said
    assert run(["compare"]) == 2
    assert "compare needs DATA.csv and --target COL" in capsys.readouterr().err


def test_a_table_that_cannot_be_written(data, capsys):
    (data / "out" / "table.csv").mkdir(parents=True)
    assert run(_command(data)) == 2
    assert re.search("cannot write: .*table.csv.*; finished fits are kept in", capsys.readouterr().err)
