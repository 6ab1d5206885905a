"""Entry of ``python -m boostplugins``."""

from __future__ import annotations

import sys

from boostplugins.cli.parser import run


def main() -> None:
    """Run the command line and leave with its exit code."""
    sys.exit(run())


if __name__ == "__main__":
    main()
