"""Start a fit without end of each estimator named, press Ctrl-C a while later, say what came of it.

``python -m tests.robustness.interrupted_fits name ...`` prints a line each: the name, what the fit
raised, and the CPU seconds from the signal to its end.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings

import numpy as np

from .small_models import MAKERS, ONE_MODEL, fitted, make

_WITHOUT_END = {"n_estimators": 10**6, "max_epochs": 10**6, "patience": 10**6, "n_burn": 10**7}
_GROWN = {"max_leaves": 4000, "patience": 4000, "ridge": 1e-6, "criterion": None}
_DELAY = 0.7  # seconds


def endless(name):
    model = make(name)
    known = model.get_params(deep=False)
    if name == "hbart_cv":
        model.estimator.set_params(n_burn=10**7)
    elif "criterion" in known:
        model.set_params(**_GROWN)
    else:
        if "n_folds" in known:  # folds may end early
            model.set_params(**ONE_MODEL)
        model.set_params(**{key: value for key, value in _WITHOUT_END.items() if key in known})
    return model


def interrupt(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 4))
    y = X[:, 0] + rng.normal(size=4000)
    y = (y > 0).astype(int) if "Classifier" in MAKERS[name][0] else y
    fitted(name)  # compiles
    sent = []

    def press():
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(_DELAY, press)
    timer.start()
    try:
        endless(name).fit(X, y)
        outcome = "finished"
    except KeyboardInterrupt:
        outcome = "interrupted"
    except Exception as error:
        outcome = f"{type(error).__name__}: {error}".splitlines()[0]
    timer.cancel()
    taken = time.process_time() - sent[0] if sent else 0.0
    print(f"{name}|{outcome}|{taken:.2f}", flush=True)  # noqa: T201


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name in sys.argv[1:]:
        interrupt(name)
    print(threading.active_count(), "thread")  # noqa: T201
