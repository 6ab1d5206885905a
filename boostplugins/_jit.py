"""Numba compilation that works in a read-only installation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def njit(*args: Any, **options: Any) -> Any:
    """Compile a kernel with numba, cached on disk where a cache folder can be written.

    Parameters
    ----------
    *args : callable
        The function to compile when the decorator is used without options.
    **options : dict
        Options of `numba.njit`; ``cache=True`` and ``nogil=True`` are the defaults.

    Returns
    -------
    callable
        The compiled dispatcher.
    """
    options.setdefault("cache", True)
    options.setdefault("nogil", True)

    def compile_kernel(function: Callable[..., Any]) -> Any:
        try:
            return _tolerant(numba.njit(**options)(function))
        except RuntimeError:  # numba found no folder it may write its cache to
            return numba.njit(**{**options, "cache": False})(function)

    if args and callable(args[0]):
        return compile_kernel(args[0])
    return compile_kernel


def _tolerant(kernel: Any) -> Any:
    """Compile anew where cached code cannot be read, for numba lets a cut-off file end the process."""
    cache: Any = getattr(kernel, "_cache", None)
    if not hasattr(cache, "flush"):  # caching or compilation is off
        return kernel
    load = cache.load_overload

    def load_or_none(*args: Any) -> Any:
        try:
            return load(*args)
        except Exception:
            cache.flush()
            return None

    cache.load_overload = load_or_none
    return kernel
