"""The estimate of the noise variance is the same bits for any number of threads."""

import lightgbm as lgb
import numpy as np

from boostplugins.lightgbm.noise_variance import held_out_variance


def test_h04_threads_change_no_bit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    y = X[:, 0] + rng.normal(size=3000)
    found = set()
    for threads in (1, 2, 4):
        params = {"num_threads": threads, "verbosity": -1}
        found.add(held_out_variance(lgb.Dataset(X, y, free_raw_data=False, params=params).construct()))
    assert len(found) == 1
    assert 0.8 < found.pop() < 1.3
