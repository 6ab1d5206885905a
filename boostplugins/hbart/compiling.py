"""How this folder's kernels are compiled.

Kernels that only other kernels call get no wrapper for calls from Python: unpacking the nested
records of a chain is most of what such a wrapper does, and compiling dozens of them would take
longer than compiling the sampler. Of these, `inner_new` may create arrays and `inner` may not.
"""

from __future__ import annotations

from boostplugins._jit import njit

SUMS = {"reassoc", "nsz"}  # lets sums run in several lanes; assumes nothing about NaN

kernel = njit(error_model="numpy")
_INNER = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner_new = njit(**_INNER)
# Kernels that create no array count no references: a chain is a record of some fifty arrays, and
# counting them at every call took four fifths of a small fit's time.
inner = njit(**_INNER, _nrt=False)
inner_sum = njit(**_INNER, _nrt=False, fastmath=SUMS)
