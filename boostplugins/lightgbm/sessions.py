"""Fits in progress: which one LightGBM is calling for."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
from lightgbm import Booster, Dataset

if TYPE_CHECKING:
    from boostplugins.lightgbm.state import TrainingState


class _Sessions(threading.local):
    """Fits in progress in this thread: LightGBM calls objective, metric and callbacks in it."""

    def __init__(self) -> None:
        self.states: weakref.WeakKeyDictionary[Booster, TrainingState] = weakref.WeakKeyDictionary()

    def forget_finished(self) -> None:
        """Drop fits whose boosters have given up their data sets."""
        for booster in [held for held in self.states if not hasattr(held, "train_set")]:
            del self.states[booster]


sessions = _Sessions()


def find_state(data: Any, armed: bool) -> TrainingState | None:
    """Find the fit that calls, by its data set where it is known.

    Parameters
    ----------
    data : Dataset or None
        Training or evaluation set; None in the scikit-learn interface, which does not tell.
    armed : bool
        Whether the fit must be waiting for its objective.

    Returns
    -------
    TrainingState or None
        The state of the fit.
    """
    sessions.forget_finished()
    for booster, state in reversed(list(sessions.states.items())):  # the newest first
        if armed and not state.armed:
            continue
        if data is None or booster.train_set is data or any(held is data for held in booster.valid_sets):
            return state
    return None


def data_of(booster: Booster, scores: np.ndarray) -> Dataset | None:
    """Find the data set whose scores LightGBM hands out.

    Parameters
    ----------
    booster : Booster
        Booster in training.
    scores : ndarray
        Scores, in LightGBM's own array.

    Returns
    -------
    Dataset or None
        Training or evaluation set; None for an array that is not LightGBM's.
    """
    place = scores.__array_interface__["data"][0]
    buffers = booster._Booster__inner_predict_buffer  # type: ignore[attr-defined]
    for data, buffer in zip([booster.train_set, *booster.valid_sets], buffers, strict=True):
        if buffer is not None and buffer.__array_interface__["data"][0] == place:
            return data
    return None
