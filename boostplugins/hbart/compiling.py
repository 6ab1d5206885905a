"""How this folder's kernels are compiled.

Kernels that only other kernels call get no wrapper for calls from Python: unpacking the nested
records of a chain is most of what such a wrapper does, and compiling dozens of them would take
longer than compiling the sampler.
"""

from __future__ import annotations

from boostplugins._jit import njit

SUMS = {"reassoc", "nsz"}  # lets sums run in several lanes; assumes nothing about NaN

kernel = njit(error_model="numpy")
inner = njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
inner_sum = njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, fastmath=SUMS)
