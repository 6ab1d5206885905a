"""Pictures of uncertainty; they need matplotlib, ``pip install "boostplugins[plots]"``.

Every function draws on `ax` (new axes by default) and returns it. Pictures can be told apart without
colour: by lightness, line style and marker.
"""

from __future__ import annotations

from boostplugins.plots.calibration import pit_histogram, reliability_curve, reliability_diagram
from boostplugins.plots.chain import chain_trace
from boostplugins.plots.comparison import comparison_plot
from boostplugins.plots.gates import soft_gates
from boostplugins.plots.intervals import interval_fan
from boostplugins.plots.maps import uncertainty_map, uncertainty_maps
from boostplugins.plots.posterior import posterior_trace, rank_plot, rhat_plot
from boostplugins.plots.regions import usnrt_regions
from boostplugins.plots.rejection import rejection_curve

__all__ = [
    "chain_trace",
    "comparison_plot",
    "interval_fan",
    "pit_histogram",
    "posterior_trace",
    "rank_plot",
    "rejection_curve",
    "reliability_curve",
    "reliability_diagram",
    "rhat_plot",
    "soft_gates",
    "uncertainty_map",
    "uncertainty_maps",
    "usnrt_regions",
]
