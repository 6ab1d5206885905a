"""Print one of the README's commands: the line in the code block under its marker."""

import pathlib
import re
import sys

text = pathlib.Path(__file__).parent.parent.joinpath("README.md").read_text()
found = re.search(rf"<!-- command: {sys.argv[1]} -->\s*```\w*\n(.+?)\n```", text, flags=re.DOTALL)
if found is None:
    sys.exit(f"README.md has no command {sys.argv[1]!r}")
sys.stdout.write(found.group(1) + "\n")
