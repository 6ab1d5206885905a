"""DistributionalRegressor under scikit-learn's own checks."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from boostplugins import DistributionalRegressor

_WHY = "CatBoost places the borders of its bins by counting rows"


def _expected(estimator):
    if estimator.booster == "catboost":
        return {"check_sample_weight_equivalence_on_dense_data": _WHY}
    return {}


@pytest.mark.filterwarnings("ignore:no feature varies")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        DistributionalRegressor(n_estimators=20, learning_rate=0.3),
        DistributionalRegressor(n_estimators=20, learning_rate=0.3, booster="catboost"),
    ],
    expected_failed_checks=_expected,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
