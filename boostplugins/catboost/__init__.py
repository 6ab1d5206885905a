"""Plugins for CatBoost: pass them as ``loss_function=``, ``eval_metric=`` and ``callbacks=[...]``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

try:
    import catboost as _catboost
except ImportError as error:  # pragma: no cover - depends on the installation
    raise ImportError("boostplugins.catboost needs CatBoost >= 1.2.10: pip install catboost") from error

if tuple(int(part) for part in _catboost.__version__.split(".")[:3]) < (1, 2, 10):
    raise ImportError(
        f"boostplugins.catboost needs CatBoost >= 1.2.10, found {_catboost.__version__}: "
        "pip install -U catboost"
    )

_PUBLIC = {
    "Callback": "callback",
    "ChainPool": "pool",
    "CyclicalSGLB": "chain",
    "Distributional": "distributional",
    "EarlyStopping": "callback",
    "train_with_checkpoints": "resuming",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
