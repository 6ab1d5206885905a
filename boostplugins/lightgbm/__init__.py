"""Plugins for LightGBM: pass them as ``objective``, ``feval`` and ``callbacks=[...]``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

try:
    import lightgbm as _lightgbm
except ImportError as error:  # pragma: no cover - depends on the installation
    raise ImportError("boostplugins.lightgbm needs LightGBM >= 4.5: pip install lightgbm") from error

if tuple(int(part) for part in _lightgbm.__version__.split(".")[:2]) < (4, 5):
    raise ImportError(
        f"boostplugins.lightgbm needs LightGBM >= 4.5, found {_lightgbm.__version__}: pip install -U lightgbm"
    )

_PUBLIC = {
    "CyclicalSGLB": "chain",
    "Distributional": "distributional",
    "train_with_checkpoints": "resuming",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
