"""Commands and options of the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from boostplugins import __version__
from boostplugins.cli.columns import add_options as add_column_options
from boostplugins.cli.compare import SCORES
from boostplugins.cli.compare import add_options as add_compare_options
from boostplugins.cli.demo import run_demo
from boostplugins.cli.errors import UsageError
from boostplugins.cli.uncertainty import COLUMNS, run_uncertainty

_BAD_INPUT = 2
_INTERRUPTED = 130


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Command line; that of the process by default.

    Returns
    -------
    int
        Exit code: 0, or 2 for bad input, or 130 when interrupted.
    """
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except UsageError as error:
        print(f"boostplugins: {error}", file=sys.stderr)
        return _BAD_INPUT
    except KeyboardInterrupt:
        print("boostplugins: interrupted, nothing written", file=sys.stderr)
        return _INTERRUPTED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="boostplugins",
        description="Honest uncertainty for CatBoost and LightGBM. Without a command: a demonstration.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument(
        "--out", type=Path, default=Path("boostplugins-demo"), help="folder for the demonstration"
    )
    parser.add_argument("--booster", choices=["catboost", "lightgbm"], default="catboost")
    parser.set_defaults(run=run_demo)
    commands = parser.add_subparsers(title="commands")
    uncertainty = commands.add_parser(
        "uncertainty",
        help="predict NEW.csv with knowledge, data and total uncertainty, learnt from TRAIN.csv",
        epilog=COLUMNS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    uncertainty.add_argument("train", type=Path, metavar="TRAIN.csv", help="rows to learn from")
    uncertainty.add_argument("new", type=Path, metavar="NEW.csv", help="rows to predict")
    uncertainty.add_argument("--target", required=True, help="column of TRAIN.csv to predict")
    uncertainty.add_argument("--out", required=True, type=Path, metavar="OUT.csv", help="file to write")
    uncertainty.add_argument(
        "--id",
        metavar="COLUMN",
        help="column of NEW.csv that names its rows in OUT.csv, and is no feature; row numbers by default",
    )
    uncertainty.add_argument(
        "--task",
        choices=["auto", "classification", "regression"],
        default="auto",
        help="auto: classification for text, or for at most 20 different whole numbers",
    )
    add_column_options(uncertainty)
    uncertainty.add_argument("--booster", choices=["catboost", "lightgbm"], default="catboost")
    uncertainty.add_argument("--trees", type=int, default=500, help="iterations of the chain (default 500)")
    uncertainty.add_argument("--coverage", type=float, default=0.9, help="of the intervals (default 0.9)")
    uncertainty.add_argument("--seed", type=int, default=0, help="same seed, same results (default 0)")
    uncertainty.add_argument(
        "--save",
        type=Path,
        metavar="MODEL",
        help="keep the model in this file, which SGLBClassifier.load or SGLBRegressor.load reads",
    )
    uncertainty.set_defaults(run=run_uncertainty)
    comparing = commands.add_parser(
        "compare",
        help="compare models on DATA.csv by cross-validation",
        epilog=f"scores:\n{SCORES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_compare_options(comparing)
    return parser
