"""Copy results into the README: each block under a ``<!-- results: FILE -->`` mark is that file's text.

A mark may name the lines to take: ``<!-- results: FILE lines 1-12 -->``.

Run: ``python benchmarks/readme_tables.py`` after new results; the tests refuse a README that is behind.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MARK = re.compile(
    r"(<!-- results: (?P<file>\S+)(?: lines (?P<first>\d+)-(?P<last>\d+))? -->\n```text\n).*?(\n```)",
    re.DOTALL,
)


def refreshed(text: str) -> str:
    """Give the README's text with its tables as the results are now."""

    def block(found: re.Match[str]) -> str:
        lines = (ROOT / "benchmarks" / "results" / found["file"]).read_text().rstrip().splitlines()
        if found["first"]:
            lines = lines[int(found["first"]) - 1 : int(found["last"])]
        return found[1] + "\n".join(lines) + found[5]

    return MARK.sub(block, text)


def main() -> None:
    readme = ROOT / "README.md"
    readme.write_text(refreshed(readme.read_text()))


if __name__ == "__main__":
    main()
