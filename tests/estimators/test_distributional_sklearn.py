"""DistributionalRegressor under scikit-learn's own checks."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from boostplugins import DistributionalRegressor


@pytest.mark.filterwarnings("ignore:no feature varies")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        DistributionalRegressor(n_estimators=20, learning_rate=0.3),
        DistributionalRegressor(n_estimators=20, learning_rate=0.3, booster="catboost"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
