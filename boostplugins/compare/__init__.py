"""Estimators beside each other under one cross-validation: `compare` and the tables that it gives."""

from __future__ import annotations

from boostplugins.compare.catalogue import make_model, model_names
from boostplugins.compare.forecast import Forecast, make_forecast
from boostplugins.compare.runner import compare
from boostplugins.compare.table import summary

__all__ = ["Forecast", "compare", "make_forecast", "make_model", "model_names", "summary"]
