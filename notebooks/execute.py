"""Execute notebooks in place and keep their outputs: ``python notebooks/execute.py [name ...]``.

A notebook is kept only if it ran without an error and without a warning. What it holds then is
marked with a fingerprint of its sources, so that outputs of other sources are noticed.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

FOLDER = Path(__file__).resolve().parent
TIMEOUT = 600  # seconds a cell may take on a busy machine whose compiled kernels are not cached yet
MARK = "sources_sha256"
# One thread: boosters spin when threads outnumber cores. All warnings show. Pictures go inline.
KERNEL_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "PYTHONWARNINGS": "default",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
}


def notebooks() -> list[Path]:
    """List the notebooks of this folder.

    Returns
    -------
    list of Path
        Their files, sorted.
    """
    return sorted(FOLDER.glob("*.ipynb"))


def fingerprint(notebook: NotebookNode) -> str:
    """Hash the sources of all cells.

    Parameters
    ----------
    notebook : NotebookNode
        Notebook.

    Returns
    -------
    str
        Hexadecimal SHA-256.
    """
    sources = "\0".join(f"{cell.cell_type}\0{cell.source}" for cell in notebook.cells)
    return hashlib.sha256(sources.encode()).hexdigest()


def execute(path: Path) -> NotebookNode:
    """Run all cells of a notebook in a fresh kernel.

    Parameters
    ----------
    path : Path
        Notebook.

    Returns
    -------
    NotebookNode
        The same cells with new outputs and the mark of their sources.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        Where a cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
        record_timing=False,
    )
    client.execute(env=os.environ | KERNEL_ENVIRONMENT)
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        MARK: fingerprint(notebook),
    }
    return notebook


def problems(notebook: NotebookNode) -> list[str]:
    """Find errors, warnings, and outputs that do not belong to the sources.

    Parameters
    ----------
    notebook : NotebookNode
        Executed notebook.

    Returns
    -------
    list of str
        What is wrong; empty if nothing is.
    """
    found = []
    if notebook.metadata.get(MARK) != fingerprint(notebook):
        found.append("outputs are not of these sources; run notebooks/execute.py")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if [cell.execution_count for cell in code] != list(range(1, len(code) + 1)):
        found.append("cells were not all run in order")
    for cell in code:
        for output in cell.outputs:
            if output.output_type == "error":
                found.append(f"error: {output.ename}: {output.evalue}")
            elif output.output_type == "stream" and output.name == "stderr":
                found.append(f"warning: {output.text}")
    return found


def main(names: list[str]) -> int:
    """Execute notebooks and write them back.

    Parameters
    ----------
    names : list of str
        Names or their beginnings; all notebooks if empty.

    Returns
    -------
    int
        Exit code: 1 where a notebook has problems, which is then left as it was.
    """
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    failed = 0
    for path in notebooks():
        if names and not any(path.name.startswith(name) for name in names):
            continue
        begin = time.perf_counter()
        notebook = execute(path)
        found = problems(notebook)
        logging.info("%s: %.0f s %s", path.name, time.perf_counter() - begin, "; ".join(found))
        if found:
            failed = 1
        else:
            nbformat.write(notebook, path)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
