"""Write the table of covered lines and branches, floor by floor, from coverage's JSON."""

import collections
import json
import pathlib
import sys

files = json.loads(pathlib.Path(sys.argv[1]).read_text())["files"]
counts = collections.defaultdict(collections.Counter)
for name, found in files.items():
    floor = pathlib.PurePath(name).parts[1]
    for key in ("num_statements", "missing_lines", "num_branches", "missing_branches"):
        for row in (floor, "whole package"):
            counts[row][key] += found["summary"][key]
lines = [
    "# Coverage of lines and branches",
    "",
    "Written by `.ci/coverage`, which fails below 95 %. Kernels are counted in runs as plain Python.",
    "",
    "| | lines | not run | branches | not taken | covered |",
    "|---|---:|---:|---:|---:|---:|",
]
for row, found in sorted(counts.items(), key=lambda item: (item[0] == "whole package", item[0])):
    total = found["num_statements"] + found["num_branches"]
    missed = found["missing_lines"] + found["missing_branches"]
    numbers = [found[key] for key in ("num_statements", "missing_lines", "num_branches", "missing_branches")]
    share = f"{100 * (1 - missed / total):.1f} %" if total else "-"
    lines.append(f"| {row} | {' | '.join(map(str, numbers))} | {share} |")
sys.stdout.write("\n".join(lines) + "\n")
