"""Plugins for CatBoost: pass them as ``loss_function=``, ``eval_metric=`` and ``callbacks=[...]``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

try:
    import catboost as _catboost  # noqa: F401
except ImportError as error:  # pragma: no cover - depends on the installation
    raise ImportError("boostplugins.catboost needs CatBoost >= 1.2.10: pip install catboost") from error

_PUBLIC = {
    "Callback": "callback",
    "ChainPool": "pool",
    "CyclicalSGLB": "chain",
    "Distributional": "distributional",
    "EarlyStopping": "callback",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
