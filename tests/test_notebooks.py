"""Every notebook runs from top to bottom, silently, and shows outputs of its own sources."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
sys.path.insert(0, str(FOLDER))

execute = pytest.importorskip("execute", reason="needs nbclient: pip install boostplugins[notebooks]")

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
LARGEST = 400_000  # bytes

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path):
    return nbformat.read(path, as_version=4)


def test_all_six_are_there():
    assert [path.name[:2] for path in NOTEBOOKS] == ["a_", "b_", "c_", "d_", "e_", "f_"]


@each
def test_outputs_are_of_the_stored_sources(path):
    notebook = read(path)
    nbformat.validate(notebook)
    assert execute.problems(notebook) == []
    assert path.stat().st_size < LARGEST


@each
def test_tells_a_story(path):
    cells = read(path).cells
    assert cells[0].cell_type == "markdown"
    assert cells[0].source.startswith("# ")
    assert "## Takeaway" in cells[-1].source
    pictures = [
        output
        for cell in cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]
    assert len(pictures) >= 2


@each
def test_uses_public_names_only(path):
    for cell in read(path).cells:
        if cell.cell_type != "code":
            continue
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("boostplugins"):
                parts = [*node.module.split("."), *(name.name for name in node.names)]
                assert not any(part.startswith("_") for part in parts)
            if isinstance(node, ast.Attribute):
                assert not node.attr.startswith("_"), ast.unparse(node)


def test_changed_sources_errors_and_warnings_are_noticed():
    cell = nbformat.v4.new_code_cell("1 + 1", execution_count=1)
    notebook = nbformat.v4.new_notebook(cells=[cell])
    notebook.metadata[execute.MARK] = execute.fingerprint(notebook)
    assert execute.problems(notebook) == []
    cell.outputs = [nbformat.v4.new_output("stream", name="stderr", text="UserWarning: no")]
    assert execute.problems(notebook) == ["warning: UserWarning: no"]
    cell.outputs = [nbformat.v4.new_output("error", ename="ValueError", evalue="no", traceback=[])]
    assert execute.problems(notebook) == ["error: ValueError: no"]
    cell.outputs, cell.source = [], "1 + 2"
    assert len(execute.problems(notebook)) == 1
    cell.execution_count = None
    assert len(execute.problems(notebook)) == 2


@pytest.mark.slow
@pytest.mark.filterwarnings("default::ResourceWarning", "default::DeprecationWarning")
@pytest.mark.filterwarnings("default::pytest.PytestUnraisableExceptionWarning")
@each
def test_runs_from_top_to_bottom(path):
    assert execute.problems(execute.execute(path)) == []
