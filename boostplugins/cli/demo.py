"""``python -m boostplugins``: the main job on a real data set."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from boostplugins.cli.errors import UsageError
from boostplugins.cli.outputs import check_folder
from boostplugins.cli.uncertainty import Progress
from boostplugins.estimators.sglb import SGLBClassifier

_SEEN = 7  # digits 0 to 6 are learnt, 7 to 9 are new to the model
_TREES = 500


def run_demo(options: argparse.Namespace) -> None:
    """Learn handwritten digits 0 to 6, meet 7 to 9, and see which rows the model does not know.

    Parameters
    ----------
    options : Namespace
        Parsed options.

    Raises
    ------
    UsageError
        Where the folder cannot be written.
    """
    folder: Path = options.out
    check_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror}") from None
    X, y = load_digits(return_X_y=True)
    seen = y < _SEEN
    X_train, X_test, y_train, y_test = train_test_split(X[seen], y[seen], test_size=0.3, random_state=0)
    X_new = X[~seen]
    print(f"Handwritten digits: {len(X_train)} rows of 0 to 6 to learn, {len(X_test)} to test,")
    print(f"{len(X_new)} rows of 7 to 9, which the model has never seen.")
    started = time.process_time()
    model = SGLBClassifier(booster=options.booster, n_estimators=_TREES, depth=4)
    model.fit(X_train, y_train, callbacks=[Progress(_TREES)])
    inside, outside = model.predict_uncertainty(X_test), model.predict_uncertainty(X_new)
    proba = model.predict_proba(X_test)
    log_score = float(np.log(np.maximum(proba[np.arange(len(y_test)), y_test], 1e-12)).mean())
    label = np.r_[np.zeros(len(X_test)), np.ones(len(X_new))]
    auc = roc_auc_score(label, np.r_[inside.knowledge, outside.knowledge])
    rows = [
        ("accuracy, seen digits", f"{(proba.argmax(axis=1) == y_test).mean():.3f}"),
        ("log score, seen digits", f"{log_score:.3f}"),
        ("knowledge uncertainty, seen digits (nats, median)", f"{np.median(inside.knowledge):.3f}"),
        ("knowledge uncertainty, new digits (nats, median)", f"{np.median(outside.knowledge):.3f}"),
        ("AUC of knowledge uncertainty, new against seen", f"{auc:.3f}"),
        ("members of the virtual ensemble", str(model.n_members_)),
        ("CPU seconds", f"{time.process_time() - started:.1f}"),
    ]
    print()
    for name, value in rows:
        print(f"{name:<52}{value:>8}")
    table = pd.DataFrame(
        {
            "digit": np.r_[y_test, y[~seen]],
            "seen": np.r_[np.ones(len(X_test), bool), np.zeros(len(X_new), bool)],
            "prediction": model.predict(np.vstack([X_test, X_new])),
            "knowledge": np.r_[inside.knowledge, outside.knowledge],
            "data": np.r_[inside.data, outside.data],
            "total": np.r_[inside.total, outside.total],
        }
    )
    table.to_csv(folder / "digits.csv", index=False)
    print(f"\nWritten: {folder / 'digits.csv'}", end="")
    if _draw(table, np.vstack([X_test, X_new]), auc, folder / "digits.png"):
        print(f" and {folder / 'digits.png'}")
    else:
        print('; for a picture: pip install "boostplugins[plots]"')


def _draw(table: pd.DataFrame, images: np.ndarray, auc: float, path: Path) -> bool:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    halves: Any = figure.subfigures(1, 2, width_ratios=[1.2, 1])
    left, right = halves
    axes: Any = left.subplots()
    bins = np.linspace(0, table["knowledge"].max(), 30)
    seen, new = (table.loc[table["seen"] == known, "knowledge"] for known in (True, False))
    axes.hist(seen, bins=bins, density=True, color="0.72", label="digits 0-6, seen")
    # An outline, so that the two stay apart in grey as well.
    outline: dict[str, Any] = {"histtype": "step", "edgecolor": "tab:red", "linewidth": 1.8, "hatch": "///"}
    axes.hist(new, bins=bins, density=True, label="digits 7-9, never seen", **outline)
    axes.set(xlabel="knowledge uncertainty (nats)", ylabel="density", title=f"AUC {auc:.2f}")
    axes.legend(frameon=False)
    order = np.argsort(table["knowledge"].to_numpy())
    chosen = np.r_[order[:6], order[-6:]]
    places: Any = right.subplots(3, 4)
    for place, row in zip(places.T.ravel(), chosen, strict=True):
        place.imshow(images[row].reshape(8, 8), cmap="gray_r")
        place.set_title(f"{table['knowledge'].iloc[row]:.2f}", fontsize=8)
        place.set_axis_off()
    right.suptitle("least (left) and most (right) knowledge uncertainty", fontsize=9)
    figure.savefig(path, dpi=120)
    return True
