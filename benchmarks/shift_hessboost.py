"""Train one hessboost model for `shift.py`, in the interpreter that has it.

``python shift_hessboost.py data.npz settings.json out.npz``: arrays X_train, y_train, X_val, X_test, X_ood;
settings with ``n_classes``, ``rounds``, ``members`` (0: only the last iterate) and ``params``. Writes raw
scores (n, members, outputs) of val, test and ood, and the CPU seconds of the fit.
"""

import json
import sys
import time
from pathlib import Path

import hessboost
import numpy as np


def main() -> None:
    """Train, predict, write."""
    data = np.load(sys.argv[1])
    settings = json.loads(Path(sys.argv[2]).read_text())
    n_classes, members = settings["n_classes"], settings["members"]
    params = {"max_depth": 6, "nthread": 1, **settings["params"]}
    if n_classes:
        params |= {"objective": "multi:softprob", "num_class": n_classes}
    else:
        params |= {"objective": "reg:squarederror"}
    train = hessboost.DMatrix(data["X_train"], label=data["y_train"])
    begin = time.process_time()
    booster = hessboost.train(params, train, settings["rounds"], verbose_eval=False)
    out = {"cpu": np.array(time.process_time() - begin), "version": np.array(hessboost.__version__)}
    for part in ("val", "test", "ood"):
        X = data[f"X_{part}"]
        if members:
            raw, _ = booster.predict_virtual_ensembles(X, members, output_margin=True)
        else:
            raw = booster.predict(X, output_margin=True, iteration_range=(0, 0))[None]
        out[part] = np.moveaxis(raw.reshape(len(raw), len(X), -1), 0, 1)
    np.savez(sys.argv[3], **out)


main()  # a script for another interpreter: nothing imports it, and by itself it is no benchmark
