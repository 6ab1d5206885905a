"""A metric of one's own: the error that nine rows in ten stay below."""

import numpy as np


def worst_decile(y, forecast):  # a `Forecast`: point, dist, intervals, proba, knowledge, total
    return float(np.quantile(np.abs(y - forecast.point), 0.9))


worst_decile.better = "lower"
