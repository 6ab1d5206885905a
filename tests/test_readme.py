"""The README: its examples run, its tables and sources are what they show, its commands are there."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
# Mark above the block, if any, what it names, and the code; of the source whole files, no excerpts.
BLOCKS = re.findall(
    r"^(?:<!-- (needs|source): (\S+) -->\n|(?<!-->\n))```python\n(.*?)```",
    README,
    flags=re.DOTALL | re.MULTILINE,
)
FIRST = BLOCKS[0][2]
SCRIPT = 'if __name__ == "__main__":'


def _tables():
    spec = importlib.util.spec_from_file_location("readme_tables", ROOT / "benchmarks" / "readme_tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_examples_run_in_their_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    held: dict = {}
    for mark, what, code in BLOCKS:
        if SCRIPT in code or (mark == "needs" and importlib.util.find_spec(what) is None):
            continue
        # Classes taken from a file keep its name, so that they are the same classes and not twins.
        held["__name__"] = what.removesuffix(".py").replace("/", ".") if mark == "source" else "readme"
        exec(compile(code, "README.md", "exec"), held)
    assert held["auc"] > 0.6
    assert held["share"] > 0.05
    X = held["X_new"]
    assert (held["again"].predict(X) == held["classifier"].predict(X)).all()
    assert "stopped after 100" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("needed", ["distributed", "ray"])
def test_scripts_run_by_themselves(needed, tmp_path):
    pytest.importorskip(needed)
    (code,) = [
        code for _, _, code in BLOCKS if SCRIPT in code and re.search(rf"^(import|from) {needed}", code, re.M)
    ]
    (tmp_path / "recipe.py").write_text(FIRST + code)
    done = subprocess.run(
        [sys.executable, "recipe.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr


def test_generated_parts_are_as_they_would_be_now():
    module = _tables()
    assert module.refreshed(README) == README, "run python benchmarks/readme_tables.py"
    assert README.count("<!-- results:") >= 5
    assert (
        README.count("<!-- source: tests/examples/")
        == len(list((ROOT / "tests/examples").glob("[a-z]*.py"))) - 1
    )
    assert all(code for mark, _, code in BLOCKS if mark == "source")


def test_every_block_is_closed():
    fences = re.findall(r"^```\w*$", README, flags=re.MULTILINE)
    assert all(fence != "```" for fence in fences[::2])
    assert all(fence == "```" for fence in fences[1::2])


def test_stale_parts_are_noticed():
    module = _tables()
    stale = README.replace('kind = "sawtooth"', 'kind = "saw"').replace(
        "class ChainReader(Protocol):", "class Old:"
    )
    assert stale != README
    assert module.refreshed(stale) == README
    with pytest.raises(ValueError, match="has no class or function Nothing"):
        module.source_of("boostplugins/virtual_ensemble.py", "Nothing")


@pytest.mark.parametrize("command", ["main", "tests"])
def test_commands_are_one_line(command):
    script = ROOT / ".ci" / "readme_command.py"
    done = subprocess.run([sys.executable, str(script), command], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("python3 -m venv .venv && .venv/bin/pip install")
    assert len(done.stdout.strip().splitlines()) == 1
