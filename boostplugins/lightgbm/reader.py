"""Read the states of a chain out of a trained LightGBM model."""

from __future__ import annotations

import math
import re
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import Booster

from boostplugins.lightgbm.description import read_description
from boostplugins.lightgbm.sessions import sessions
from boostplugins.lightgbm.settings import find


class LightGBMReader:
    """States of the chain that trained a LightGBM model.

    Parameters
    ----------
    model : Booster, LGBMModel, str or Path
        Trained model, or the file of one.
    description : dict, optional
        Description of the chain for a model that does not carry its own.

    Attributes
    ----------
    booster : Booster
        The model's trees.
    description : dict
        Description of the chain.
    """

    def __init__(self, model: Any, description: dict[str, Any] | None = None) -> None:
        sessions.forget_finished()  # a model that is read is trained
        self.booster = _booster(model)
        found = read_description(self.booster) if description is None else description
        if found is None:
            raise ValueError(
                "the model does not say which chain it is; train it with boostplugins.lightgbm.CyclicalSGLB "
                "as its objective and chain.callback() among its callbacks"
            )
        self.description = found

    @property
    def n_outputs(self) -> int:
        """Raw scores a row."""
        return int(self.booster.num_model_per_iteration())

    @cached_property
    def _iterations_of_trees(self) -> np.ndarray:
        """Iteration that each of the model's rounds of trees belongs to."""
        rounds = int(self.booster.current_iteration())
        best = int(self.booster.best_iteration or 0)
        skipped = self.description.get("skipped", ())
        clock = np.arange(rounds + len(skipped))
        iterations = clock[~np.isin(clock, skipped)][:rounds]
        return iterations[iterations < best] if best > 0 else iterations

    @property
    def n_iterations(self) -> int:
        """Iterations of the chain, up to the best one where training was stopped early."""
        trees = self._iterations_of_trees
        if not len(trees):
            return 0
        last = int(trees[-1]) + 1
        while last in self.description.get("skipped", ()):
            last += 1
        return last

    def scale(self, end: int) -> float:
        """Give the factor between the model's trees and a state.

        Parameters
        ----------
        end : int
            Iterations done.

        Returns
        -------
        float
            Later shrinkage, divided out.
        """
        rate = float(self.description.get("shrink", 0.0)) * float(self.description.get("learning_rate", 0.0))
        return math.exp(math.log1p(-rate) * (end - int(self.description.get("iterations", end))))

    @cached_property
    def kept_start(self) -> np.ndarray:
        """Start value that shrinkage does not touch, which stands in the first trees as it is."""
        kept = self.description.get("start", 0.0) if self.description.get("shrink_to") == "start" else 0.0
        return np.asarray(kept, dtype=np.float64)

    def trees_before(self, end: int) -> int:
        """Count the rounds of trees that a state holds.

        Parameters
        ----------
        end : int
            Iterations done.

        Returns
        -------
        int
            Rounds; fewer than `end` where iterations found nothing to split.
        """
        return int(np.searchsorted(self._iterations_of_trees, end))

    def states(self, X: Any, ends: np.ndarray) -> np.ndarray:
        """Read raw scores after given numbers of iterations, in one pass over the trees.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows.
        ends : ndarray of shape (n_members,)
            Increasing numbers of iterations, >= 1.

        Returns
        -------
        ndarray of shape (n_samples, n_members, n_outputs)
            Exact states of the chain, without the random prior function.

        Raises
        ------
        ValueError
            For rows whose features are not those of the model.
        """
        rows = self.rows(X)
        n = rows.shape[0]
        total, previous = np.zeros((n, self.n_outputs)), 0
        out = np.empty((n, len(ends), self.n_outputs))
        threads = find(self.booster.params, "num_threads")
        options = {"num_threads": threads} if threads else {}
        for member, end in enumerate(np.asarray(ends).tolist()):
            trees = self.trees_before(end)
            if trees > previous and n:
                part = self.booster.predict(
                    rows, start_iteration=previous, num_iteration=trees - previous, raw_score=True, **options
                )
                total += np.reshape(part, total.shape)
                previous = trees
            scale = self.scale(end)
            out[:, member] = scale * total + (1.0 - scale) * self.kept_start
        return out

    def rows(self, X: Any) -> Any:
        """Check rows and bring them into the form that the booster takes.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray, sparse matrix or DataFrame
            Rows for ``booster.predict``.
        """
        rows: Any
        if isinstance(X, pd.DataFrame):
            rows = self._frame(X)
        else:
            rows = X if hasattr(X, "tocsr") else np.asarray(X)
            if rows.dtype.kind not in "f":
                rows = rows.astype(np.float64)
        if len(rows.shape) != 2 or rows.shape[1] != self.booster.num_feature():
            raise ValueError(
                f"X must have shape (n_samples, {self.booster.num_feature()}), the features of the model, "
                f"got {rows.shape}"
            )
        return rows

    def _frame(self, X: pd.DataFrame) -> pd.DataFrame:
        names, found = self.booster.feature_name(), [str(name) for name in X.columns]
        known = [name.replace(" ", "_") for name in found]
        if known != names and not all(name.startswith("Column_") for name in names):
            raise ValueError(f"X must have the columns {names} in this order, got {found}")
        text = [
            name
            for name in X.columns
            if not (
                pd.api.types.is_numeric_dtype(X[name].dtype) or isinstance(X[name].dtype, pd.CategoricalDtype)
            )
        ]
        return X.astype(dict.fromkeys(text, "category")) if text else X


def check_model_file(path: Path) -> None:
    """Refuse a file that is no whole LightGBM model: LightGBM may end the process on one that is cut off.

    Parameters
    ----------
    path : Path
        A file.

    Raises
    ------
    ValueError
        For a file whose trees do not have the sizes that its head says.
    """
    text = path.read_bytes()
    sizes = re.search(rb"^tree_sizes=([0-9 ]*)$", text, re.MULTILINE)
    first, last = text.find(b"Tree=0\n"), text.find(b"end of trees\n")
    whole = text.startswith(b"tree\n") and sizes is not None and 0 <= first < last
    if whole and sizes is not None:
        ends = first + np.cumsum([int(size) for size in sizes[1].split()] or [0])
        heads = all(text.startswith(b"Tree=%d\n" % (k + 1), end) for k, end in enumerate(ends[:-1]))
        whole = int(ends[-1]) == last and heads and b"end of parameters" in text[last:]
    if not whole:
        raise ValueError(
            f"model must be the file of a LightGBM model, got {str(path)!r}, which is cut off, damaged or "
            "another format: save the model again with booster.save_model"
        )


def _booster(model: Any) -> Booster:
    if isinstance(model, (str, Path)):
        path = Path(model)
        if not path.is_file():
            raise ValueError(f"model must be the file of a LightGBM model, got {str(model)!r}: no such file")
        check_model_file(path)
        return Booster(model_file=path)
    if isinstance(model, Booster):
        return model
    if hasattr(model, "booster_"):
        return model.booster_
    raise TypeError(f"model must be a LightGBM model or its file, got {type(model).__name__}")
