"""Models of Bayesian trees as files: npz arrays and JSON, no executable code."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from boostplugins._files import write_bytes
from boostplugins.estimators._bart_base import BayesianTrees
from boostplugins.hbart.bins import Bins
from boostplugins.hbart.columns import Columns
from boostplugins.hbart.design import VarianceDesign
from boostplugins.hbart.posterior import ForestDraws, Posterior

_FORMAT = 1
_FOREST = ("var", "cut", "miss", "right", "start", "structure", "values")
_DRAWS = ("sigma2", "gamma")


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
        params = {name: _plain(name, value) for name, value in self.get_params(deep=False).items()}
        posterior = self.posterior_
        arrays: dict[str, Any] = {}
        for kind, forest in (("mean", posterior.mean), ("variance", posterior.variance)):
            arrays |= {f"{kind}_{name}": getattr(forest, name) for name in _FOREST}
        arrays |= {name: getattr(posterior, name) for name in _DRAWS}
        arrays |= {f"cuts{j}": cuts for j, cuts in enumerate(self._bins.cuts)}
        arrays |= {"n_levels": self._bins.n_levels, "n_rules": self._bins.n_rules}
        design = getattr(self, "_variance_design", None)
        if design is not None:
            arrays |= {"design_centre": design.centre, "design_scale": design.scale}
        head = {
            "format": _FORMAT,
            "kind": type(self).__name__,
            "params": params,
            "n_chains": posterior.n_chains,
            "names": self._columns.names,
            "levels": self._columns.levels,
            "categorical": [int(j) for j in self._categorical],
            "named": hasattr(self, "feature_names_in_"),
            "design": None if design is None else [design.which, design.missing, design.names],
            "state": {name: getattr(self, name) for name in self._saved_scalars},
            "classes": [value.item() for value in self.classes_] if hasattr(self, "classes_") else None,
        }
        arrays["head"] = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
        stream = io.BytesIO()
        np.savez_compressed(stream, **arrays)
        write_bytes(path, stream.getvalue())

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
        try:
            # Read whole: NumPy leaves a file open where it finds no archive in it.
            with np.load(io.BytesIO(Path(path).read_bytes()), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            head = json.loads(arrays["head"].tobytes().decode())
            version, kind = head["format"], head["kind"]
        except FileNotFoundError:
            raise
        except (OSError, KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path} is no saved model of boostplugins: {error}") from None
        if version != _FORMAT:
            raise ValueError(f"{path} has format {version}, this version reads {_FORMAT}; save it again")
        if kind != cls.__name__:
            raise ValueError(f"{path} holds a {kind}, not a {cls.__name__}; load it with {kind}.load")
        try:
            params = {name: _unplain(value) for name, value in head["params"].items()}
            return cls(**params)._restore(head, arrays)
        except (KeyError, TypeError, IndexError) as error:
            raise ValueError(f"{path} is damaged: {error!r}") from None

    def _restore(self, head: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
        mean, variance = (
            ForestDraws(*(arrays[f"{kind}_{name}"] for name in _FOREST)) for kind in ("mean", "variance")
        )
        sigma2, gamma = (arrays[name] for name in _DRAWS)
        self.posterior_ = Posterior(mean, variance, sigma2, gamma, head["n_chains"])
        names = tuple(head["names"])
        self._columns = Columns(names, tuple(None if v is None else tuple(v) for v in head["levels"]))
        cuts = tuple(arrays[f"cuts{j}"] for j in range(len(names)))
        self._bins = Bins(cuts, arrays["n_levels"], arrays["n_rules"])
        self._categorical = head["categorical"]
        self._runs = None
        self.n_features_in_ = len(names)
        self.n_draws_ = self.posterior_.n_draws
        if head["named"]:
            self.feature_names_in_ = np.array(names, dtype=object)
        if head["design"] is not None:
            which, missing, labels = (tuple(part) for part in head["design"])
            scales = arrays["design_centre"], arrays["design_scale"]
            self._variance_design = VarianceDesign(which, missing, None, labels, *scales)
        for name, value in head["state"].items():
            setattr(self, name, value)
        if head["classes"] is not None:
            self.classes_ = np.array(head["classes"])
        return self


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
