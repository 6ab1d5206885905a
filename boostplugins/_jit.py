"""Numba compilation that works in a read-only installation."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import sigutils

_SEAL_LENGTH = 16


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
    """Seal cached code, and compile anew where it is damaged or another signature's.

    Numba trusts its files: a cut-off one ends the process, a changed one may do anything. Two
    processes that compile one kernel for different types at the same time can also take the same file.
    """
    cache: Any = getattr(kernel, "_cache", None)
    files: Any = getattr(cache, "_cache_file", None)
    if not all(hasattr(files, name) for name in ("_dump", "_load_data", "_data_path")):
        return kernel  # caching or compilation is off
    load, dump = cache.load_overload, files._dump

    def load_or_none(signature: Any, *args: Any) -> Any:
        try:
            found = load(signature, *args)
            wanted = sigutils.normalize_signature(signature)[0]
            if found is None or tuple(found.signature.args) == tuple(wanted):
                return found
        except Exception:
            pass
        cache.flush()
        return None

    def sealed(item: Any) -> bytes:
        content = dump(item)
        return content + _seal(content)  # what follows a pickle is not read

    def load_data(name: str) -> Any:
        content = Path(files._data_path(name)).read_bytes()
        if _seal(content[:-_SEAL_LENGTH]) != content[-_SEAL_LENGTH:]:
            raise ValueError("cached code is damaged")
        return pickle.loads(content)

    cache.load_overload, files._dump, files._load_data = load_or_none, sealed, load_data
    return kernel


def _seal(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_SEAL_LENGTH).digest()
