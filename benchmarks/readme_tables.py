"""Write the README's generated parts: results, figures of "Which model when", and code of the source.

Each stands below its mark:

- ``<!-- results: FILE -->`` or ``<!-- results: FILE parts 1-2 -->``: a text of ``benchmarks/results``,
  whole or some of its parts, which blank lines set apart;
- ``<!-- source: FILE -->`` or ``<!-- source: FILE NAME -->``: a Python file without its docstring, or one
  class or function of it;
- ``<!-- when -->``: the table of `which_model`.

Run: ``python benchmarks/readme_tables.py`` after new results or changed sources; the tests refuse a
README that is behind.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from which_model import which_model  # noqa: E402

RESULTS = re.compile(
    r"(<!-- results: (?P<file>\S+)(?: parts (?P<first>\d+)-(?P<last>\d+))? -->\n```text\n).*?(\n```)(?=\n)",
    re.DOTALL,
)
SOURCE = re.compile(
    r"(?P<mark><!-- source: (?P<file>\S+)(?: (?P<name>\w+))? -->\n```python\n)(?P<code>.*?)(?P<end>```)",
    re.DOTALL,
)
WHEN = re.compile(r"(<!-- when -->\n).*?(\n\n)", re.DOTALL)


def refreshed(text: str) -> str:
    """Give the README's text with its generated parts as they would be now."""
    text = RESULTS.sub(lambda found: found[1] + _parts(found) + found[5], text)
    text = SOURCE.sub(
        lambda found: found["mark"] + source_of(found["file"], found["name"]) + found["end"], text
    )
    return WHEN.sub(lambda found: found[1] + which_model() + found[2], text)


def _parts(found: re.Match[str]) -> str:
    parts = (ROOT / "benchmarks" / "results" / found["file"]).read_text().rstrip().split("\n\n")
    if found["first"]:
        parts = parts[int(found["first"]) - 1 : int(found["last"])]
    return "\n\n".join(parts)


def source_of(file: str, name: str | None = None) -> str:
    """Take the code out of a file: all below its docstring, or one class or function."""
    text = (ROOT / file).read_text()
    body = ast.parse(text).body
    lines = text.splitlines(keepends=True)
    if name is None:
        start = body[0].end_lineno if isinstance(body[0], ast.Expr) else 0
        return "".join(lines[start:]).lstrip("\n")
    for node in body:
        if getattr(node, "name", None) == name:
            return "".join(lines[node.lineno - 1 : node.end_lineno])
    raise ValueError(f"{file} has no class or function {name}")


def main() -> None:
    readme = ROOT / "README.md"
    readme.write_text(refreshed(readme.read_text()))


if __name__ == "__main__":
    main()
