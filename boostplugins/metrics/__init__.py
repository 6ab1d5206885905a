"""Metrics of probabilistic predictions; lower is better unless a docstring says otherwise."""

from __future__ import annotations

from boostplugins.metrics.calibration import coverage, ece, sharpness, tce
from boostplugins.metrics.crps import crps, crps_ensemble
from boostplugins.metrics.interval_score import interval_score
from boostplugins.metrics.nll import nll
from boostplugins.metrics.ood_auc import ood_auc
from boostplugins.metrics.pit import pit
from boostplugins.metrics.prr import prr
from boostplugins.metrics.reliability import Reliability, class_ece, reliability

__all__ = [
    "Reliability",
    "class_ece",
    "coverage",
    "crps",
    "crps_ensemble",
    "ece",
    "interval_score",
    "nll",
    "ood_auc",
    "pit",
    "prr",
    "reliability",
    "sharpness",
    "tce",
]
