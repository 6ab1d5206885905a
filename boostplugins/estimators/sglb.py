"""The SGLB estimators."""

from boostplugins.estimators.sglb_classifier import SGLBClassifier
from boostplugins.estimators.sglb_regressor import SGLBRegressor

__all__ = ["SGLBClassifier", "SGLBRegressor"]
