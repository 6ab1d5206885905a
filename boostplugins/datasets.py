"""Data sets: one that scikit-learn ships for the main job, and optional staged files for benchmarks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


def staged_folder() -> Path | None:
    """Find the folder of staged benchmark data.

    Returns
    -------
    Path or None
        ``$BOOSTPLUGINS_DATA`` if set, else ``../shared/data`` beside the project, else None.
    """
    named = os.environ.get("BOOSTPLUGINS_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    return folder if (folder / "manifest.json").is_file() else None


def load_staged(name: str) -> tuple[pd.DataFrame, pd.Series, dict[str, Any], pd.DataFrame]:
    """Load one staged data set.

    Parameters
    ----------
    name : str
        Its name in the folder's ``manifest.json``.

    Returns
    -------
    X : DataFrame of shape (n_samples, n_features)
        Features; numbers as float32, categories as pandas categories.
    y : Series of shape (n_samples,)
        Target.
    meta : dict
        The manifest's entry.
    extra : DataFrame
        Identifiers, domains, exposure and alternative targets: never features.

    Raises
    ------
    FileNotFoundError
        Where no staged data are at hand; set the environment variable ``BOOSTPLUGINS_DATA``.
    KeyError
        For a name that the manifest does not know.
    """
    folder = staged_folder()
    if folder is None:
        raise FileNotFoundError("no staged data found; set BOOSTPLUGINS_DATA to a folder with manifest.json")
    sets = json.loads((folder / "manifest.json").read_text())["datasets"]
    if name not in sets:
        raise KeyError(f"unknown data set {name!r}; known: {sorted(sets)}")
    meta = sets[name]
    if meta["format"] == "npz":
        with np.load(folder / meta["file"], allow_pickle=False) as arrays:
            held = {key: arrays[key] for key in arrays.files}
        X = pd.DataFrame(held.pop("X"), columns=[str(s) for s in held.pop("feature_names")])
        y = pd.Series(held.pop("y"), name=str(held.pop("target_name")))
        return X, y, meta, pd.DataFrame(held)
    frame = pd.read_csv(
        folder / meta["file"],
        keep_default_na=False,
        na_values=[""],
        dtype=dict.fromkeys(meta["categorical"], str),
    )
    aside = meta["id_columns"] + meta["extra_targets"] + ([meta["exposure"]] if meta["exposure"] else [])
    aside += [column for column in meta["domain_columns"] if column not in aside]
    X = pd.DataFrame(
        {
            column: frame[column].astype("category" if column in meta["categorical"] else np.float32)
            for column in meta["features"]
        }
    )
    return X, frame[meta["target"]], meta, frame[aside]


def pbp_splits(
    n: int, n_splits: int = 20, test_fraction: float = 0.1
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Generate the published train / test splits of the UCI regression literature.

    Parameters
    ----------
    n : int
        Rows of the data set.
    n_splits : int, default=20
        Splits to generate.
    test_fraction : float, default=0.1
        Share of test rows.

    Yields
    ------
    tuple of ndarray
        Train and test row numbers.
    """
    # The literature drew its splits from this legacy generator; any other would not be comparable.
    state = np.random.RandomState(1)
    for _ in range(n_splits):
        order = state.choice(range(n), n, replace=False)
        cut = round(n * (1.0 - test_fraction))
        yield order[:cut], order[cut:]
