"""Run all benchmarks again, one after the other, politely, and record on what.

    python benchmarks/run_all.py                    # everything; takes most of a day
    python benchmarks/run_all.py mog25 usnrt_level  # some
    python benchmarks/run_all.py --list             # what there is

Every script runs in a process of its own with one thread and, where the system knows it, lowest
priority. A script that keeps its own table is left to it; what the others print becomes
``results/<name>.txt``. ``results/run_all.txt`` records machine, versions, CPU seconds and exit codes,
and is written anew after each script. A script that fails does not stop the rest.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
PACKAGES = (
    "boostplugins",
    "catboost",
    "lightgbm",
    "numpy",
    "scipy",
    "numba",
    "scikit-learn",
    "pandas",
    "scoringrules",
    "ngboost",
    "torch",
)
# Arguments with which a script keeps its table; a script may need several calls.
CALLS: dict[str, list[list[str]]] = {
    "catboost_overhead": [["--write"]],
    "mog25": [["--write"]],
    "shift": [[], ["--seeds", "3", "4", "--methods", r"bagged LightGBM|LightGBM cSGLB( normal)? \+ prior"]],
    "usnrt_table": [
        ["--methods", "networks"],
        ["--seeds", "0", "--methods", "forests", "paper_test", "dropout", "lightgbm", "catboost", "hbart"],
        ["--seeds", "0", "--sets", "naval", "beijing_pm25", "protein", "--methods", "ensembles"],
    ],
}
# Scripts that only print: what they print is their table.
PRINTERS = (
    "soft_tree_figures",
    "soft_tree_real",
    "soft_tree_simulation",
    "usnrt_level",
    "usnrt_speed",
)
AFTER = {"spiral": "shift", "shift_curve": "shift"}  # read what the other has stored
LAST = "readme_tables"  # reads what all have stored
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)


def scripts() -> list[str]:
    """List the benchmarks: every script of this folder with a main part, in an order that they allow."""
    names = sorted(
        path.stem
        for path in HERE.glob("*.py")
        if path.stem != Path(__file__).stem and '__name__ == "__main__"' in path.read_text()
    )
    return sorted(names, key=lambda name: (name == LAST, name in AFTER))


def machine() -> list[str]:
    """Describe the machine and the versions."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    cpu = platform.processor() or platform.machine()
    described = Path("/proc/cpuinfo")
    if described.is_file():
        names = [
            line.split(":")[1].strip() for line in described.read_text().splitlines() if "model name" in line
        ]
        cpu = names[0] if names else cpu
    memory = ""
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = f", {os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GB"
    return [
        f"{cpu}, {os.cpu_count()} cores{memory}; {platform.system()} {platform.release()}",
        f"Python {platform.python_version()}, {', '.join(found)}; one thread",
    ]


def children_cpu() -> float:
    """CPU seconds of all finished child processes."""
    times = os.times()
    return times.children_user + times.children_system


def run(name: str) -> tuple[int, float]:
    """Run one benchmark; give its exit code and CPU seconds."""
    begin, code = children_cpu(), 0
    polite = (lambda: os.nice(19)) if hasattr(os, "nice") else None
    for arguments in CALLS.get(name, [[]]):
        command = [sys.executable, str(HERE / f"{name}.py"), *arguments]
        done = subprocess.run(
            command,
            env=os.environ | ONE_THREAD,
            stdout=subprocess.PIPE if name in PRINTERS else None,
            text=True,
            preexec_fn=polite,
            check=False,
        )
        code = code or done.returncode
        if name in PRINTERS and done.returncode == 0:
            print(done.stdout, flush=True)
            (RESULTS / f"{name}.txt").write_text("\n".join(machine()) + "\n\n" + done.stdout)
    return code, children_cpu() - begin


def main() -> int:
    """Run the benchmarks asked for and record how it went."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="benchmarks to run; all by default")
    parser.add_argument("--list", action="store_true", help="only list them")
    options = parser.parse_args()
    known = scripts()
    unknown = sorted(set(options.names) - set(known))
    if unknown:
        parser.error(f"unknown benchmarks {unknown}; known: {known}")
    chosen = [name for name in known if not options.names or name in options.names]
    if options.list:
        print("\n".join(chosen))
        return 0
    RESULTS.mkdir(exist_ok=True)
    lines, failed = machine(), 0
    lines += ["", f"{'benchmark':24s} {'exit':>5s} {'CPU s':>9s}  finished"]
    for number, name in enumerate(chosen, start=1):
        print(f"[{number}/{len(chosen)}] {name}", flush=True)
        code, seconds = run(name)
        failed += code != 0
        lines.append(f"{name:24s} {code:5d} {seconds:9.1f}  {time.strftime('%Y-%m-%d %H:%M')}")
        (RESULTS / "run_all.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
