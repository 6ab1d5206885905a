"""Models of Bayesian trees as files: npz arrays and JSON, no executable code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from boostplugins._files import read_model, restoring, write_model
from boostplugins.estimators._bart_base import BayesianTrees
from boostplugins.estimators._saved import pack_labels, unpack_labels
from boostplugins.hbart.bins import Bins
from boostplugins.hbart.columns import Columns
from boostplugins.hbart.design import VarianceDesign
from boostplugins.hbart.posterior import ForestDraws, Posterior

_MOST_LEAVES = 128  # of a tree: its nodes are numbered by one byte
_FOREST = ("var", "cut", "miss", "right", "start", "structure", "values")
_DRAWS = ("sigma2", "gamma", "leaf_var")
_SCALES = ("centre", "scale", "low", "high")


class SavedTrees(BayesianTrees):
    """`save` and `load` of the estimators of Bayesian trees."""

    def save(self, path: str | Path) -> None:
        """Write the model to a file.

        Parameters
        ----------
        path : str or Path
            File to write or replace; written as a whole or not at all.

        Raises
        ------
        ValueError
            Where an argument is a Python function, which a file cannot hold.
        """
        write_model(path, type(self).__name__, *self._pack())

    @classmethod
    def load(cls, path: str | Path) -> Any:
        """Read a model from a file.

        Parameters
        ----------
        path : str or Path
            File that `save` wrote.

        Returns
        -------
        estimator
            Fitted; predicts the same bits. Its chains are not in the file, so `sample_more` refuses.

        Raises
        ------
        ValueError
            For a file that is no saved model of this class.
        """
        state, arrays, _ = read_model(path, cls.__name__)
        with restoring(path, cls.__name__):
            return cls._unpack(state, arrays)

    def _pack(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Take the fitted model apart."""
        check_is_fitted(self, "posterior_")
        params = pack_params(self.get_params(deep=False))
        posterior = self.posterior_
        arrays: dict[str, Any] = {}
        for kind, forest in (("mean", posterior.mean), ("variance", posterior.variance)):
            arrays |= {f"{kind}_{name}": getattr(forest, name) for name in _FOREST}
        arrays |= {name: getattr(posterior, name) for name in _DRAWS}
        arrays |= {f"cuts{j}": cuts for j, cuts in enumerate(self._bins.cuts)}
        arrays |= {"n_levels": self._bins.n_levels, "n_rules": self._bins.n_rules}
        design = getattr(self, "_variance_design", None)
        if design is not None:
            arrays |= {f"design_{name}": np.asarray(getattr(design, name)) for name in _SCALES}
        state = {
            "params": params,
            "n_chains": posterior.n_chains,
            "names": self._columns.names,
            "levels": self._columns.levels,
            "categorical": [int(j) for j in self._categorical],
            "named": hasattr(self, "feature_names_in_"),
            "design": None if design is None else [design.which, design.missing, design.names],
            "state": {name: getattr(self, name) for name in self._saved_scalars},
            "classes": pack_labels(self.classes_) if hasattr(self, "classes_") else None,
        }
        return state, arrays

    @classmethod
    def _unpack(cls, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
        """Put together what `_pack` took apart."""
        return cls(**unpack_params(state["params"]))._restore(state, arrays)

    def _restore(self, head: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
        mean, variance = (
            ForestDraws(*(arrays[f"{kind}_{name}"] for name in _FOREST)) for kind in ("mean", "variance")
        )
        sigma2, gamma = arrays["sigma2"], arrays["gamma"]
        fixed = np.full(len(sigma2), np.nan)  # files of models with a fixed k once did without
        leaf_var = arrays.get("leaf_var", fixed)
        names = tuple(head["names"])
        for forest in (mean, variance):
            _check_forest(forest, len(names), len(sigma2))
        self.posterior_ = Posterior(mean, variance, sigma2, gamma, leaf_var, head["n_chains"])
        self._columns = Columns(names, tuple(None if v is None else tuple(v) for v in head["levels"]))
        cuts = tuple(arrays[f"cuts{j}"] for j in range(len(names)))
        self._bins = Bins(cuts, arrays["n_levels"], arrays["n_rules"])
        self._categorical = head["categorical"]
        self._runs = None
        self.n_features_in_ = len(names)
        self.n_draws_ = self.posterior_.n_draws
        if head["named"]:
            self.feature_names_in_ = np.array(names, dtype=object)
        self._variance_design = None
        if head["design"] is not None:
            which, missing, labels = (tuple(part) for part in head["design"])
            # Earlier files have no ranges.
            scales = {name: arrays[f"design_{name}"] for name in _SCALES if f"design_{name}" in arrays}
            self._variance_design = VarianceDesign(which, missing, None, labels, **scales)
        for name, value in head["state"].items():
            setattr(self, name, value)
        if head["classes"] is not None:
            self.classes_ = unpack_labels(head["classes"])
        return self


def pack_params(params: dict[str, Any]) -> dict[str, Any]:
    """Make an estimator's parameters JSON-ready.

    Parameters
    ----------
    params : dict
        Parameters.

    Returns
    -------
    dict
        Sequences written out; a generator as random_state becomes None; `checkpoint` is left out.

    Raises
    ------
    ValueError
        For a parameter that a file cannot hold.
    """
    return {name: _plain(name, value) for name, value in params.items() if name != "checkpoint"}


def unpack_params(state: dict[str, Any]) -> dict[str, Any]:
    """Read what `pack_params` wrote.

    Parameters
    ----------
    state : dict
        JSON-ready parameters.

    Returns
    -------
    dict
        Parameters.
    """
    return {name: _unplain(value) for name, value in state.items()}


def _check_forest(forest: ForestDraws, n_columns: int, n_draws: int) -> None:
    """Refuse numbers that would lead the compiled passes, which trust them, out of their arrays."""
    n_nodes, place, leaf = len(forest.var), np.arange(len(forest.var)), forest.var < 0
    lengths = np.diff(forest.start)
    of_node = np.repeat(forest.start[1:], np.maximum(lengths, 0))
    fits = (
        all(getattr(forest, name).shape == (n_nodes,) for name in ("cut", "miss", "right"))
        and (lengths > 0).all()
        and (len(forest.start) > 0 and forest.start[0] == 0 and forest.start[-1] == n_nodes)
        and (forest.var < n_columns).all()
        and ((forest.n_leaves >= 1) & (forest.n_leaves <= _MOST_LEAVES)).all()
        and len(forest.structure) == n_draws
        and ((forest.structure >= 0) & (forest.structure < len(lengths))).all()
        and (leaf | ((forest.right > 1) & (place + forest.right < of_node))).all()
        and (~leaf | ((forest.cut >= 0) & (forest.cut < _MOST_LEAVES))).all()
        and (n_nodes == 0 or bool(leaf[-1]))
        and len(forest.values) == forest.first_values()[-1]
    )
    if not fits:
        raise ValueError("arrays of the forests do not fit together")


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        return None  # a fitted model draws nothing more
    if isinstance(value, (list, tuple)):
        return {"tuple": [_plain(name, part) for part in value]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ValueError(
        f"{name} must be a number, a string or a list of them to be saved, got {value!r}; "
        "pickle the model instead, or name columns"
    )


def _unplain(value: Any) -> Any:
    return tuple(_unplain(part) for part in value["tuple"]) if isinstance(value, dict) else value
