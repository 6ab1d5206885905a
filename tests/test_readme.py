"""The README: its examples run, its tables are the results, its commands are there."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_examples_run_in_their_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    held: dict = {"__name__": "readme"}
    for block in BLOCKS:
        exec(compile(block, "README.md", "exec"), held)
    assert held["auc"] > 0.6
    assert held["share"] > 0.05
    X = held["X_new"]
    assert (held["again"].predict(X) == held["classifier"].predict(X)).all()
    assert "pruned after 100" in capsys.readouterr().out


def test_tables_are_the_results():
    spec = importlib.util.spec_from_file_location("readme_tables", ROOT / "benchmarks" / "readme_tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.refreshed(README) == README, "run python benchmarks/readme_tables.py"
    assert README.count("<!-- results:") >= 5


@pytest.mark.parametrize("command", ["main", "tests"])
def test_commands_are_one_line(command):
    script = ROOT / ".ci" / "readme_command.py"
    done = subprocess.run([sys.executable, str(script), command], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("python3 -m venv .venv && .venv/bin/pip install")
    assert len(done.stdout.strip().splitlines()) == 1
