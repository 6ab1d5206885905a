"""Training that can be killed: checkpoints of a chain, and going on from them to the same bits.

LightGBM's scores are given back to it as initial scores, bit by bit, and the chain's own are set
back beside them; noise, masks and random functions are functions of the iteration. The trees grown
after a checkpoint are appended to those in it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lightgbm as lgb
import numpy as np
from lightgbm.basic import _LIB, _safe_call

from boostplugins.checkpoints import Checkpoint, fingerprint
from boostplugins.lightgbm.settings import find

if TYPE_CHECKING:
    from boostplugins.lightgbm.chain import CyclicalSGLB
    from boostplugins.lightgbm.state import TrainingState

_REPLAYED = (lgb.callback._EarlyStoppingCallback, lgb.callback._RecordEvaluationCallback)
# Draws of LightGBM's own, whose place in their streams no checkpoint could hold.
_DRAWS: tuple[tuple[str, Callable[[Any], bool]], ...] = (
    ("boosting", lambda value: value in ("gbdt", "gbrt", None)),
    ("data_sample_strategy", lambda value: value in ("bagging", None)),
    ("bagging_freq", lambda value: not value or int(value) <= 0),
    ("feature_fraction", lambda value: value is None or float(value) == 1.0),
    ("feature_fraction_bynode", lambda value: value is None or float(value) == 1.0),
    ("extra_trees", lambda value: value in (None, False, 0, "false")),
)
# Fingerprints of the rows of data sets, which LightGBM lets go as it takes them over.
_ROWS: weakref.WeakKeyDictionary[lgb.Dataset, str] = weakref.WeakKeyDictionary()


@dataclass
class Resumed:
    """Where a killed training stood.

    Attributes
    ----------
    done : int
        Iterations done.
    skipped : list of int
        Iterations that found nothing to split.
    scores : list of ndarray of shape (n_outputs, n_rows)
        LightGBM's scores of the training set and of each validation set.
    chain : list of ndarray
        The chain's own of the same, where leaves are drawn anew.
    history : list
        Evaluations of each iteration.
    trees : list of bytes
        Text models of the trees, in order.
    """

    done: int = 0
    skipped: list[int] = field(default_factory=list)
    scores: list[np.ndarray] = field(default_factory=list)
    chain: list[np.ndarray] = field(default_factory=list)
    history: list[Any] = field(default_factory=list)
    trees: list[bytes] = field(default_factory=list)


def train_with_checkpoints(
    chain: CyclicalSGLB,
    params: Mapping[str, Any],
    data: lgb.Dataset,
    num_boost_round: int,
    checkpoint: str | Path,
    *,
    checkpoint_every: int = 50,
    callbacks: Sequence[Callable[[Any], Any]] = (),
    valid_sets: Sequence[lgb.Dataset] = (),
    **options: Any,
) -> lgb.Booster:
    """Train a chain so that it may be killed, or go on with one that was, to the same bits.

    Parameters
    ----------
    chain : CyclicalSGLB
        The chain.
    params : mapping
        LightGBM's parameters, ``**chain.lightgbm_params()`` among them.
    data : Dataset
        Training set.
    num_boost_round : int
        Iterations in all.
    checkpoint : str or Path
        File that keeps where the training stands; removed in the end.
    checkpoint_every : int, default=50
        Iterations between two checkpoints.
    callbacks : sequence of callable, default=()
        Further callbacks; of iterations done before, early stopping and records alone are told.
    valid_sets : sequence of Dataset, default=()
        Validation sets.
    **options : dict
        Further arguments of ``lightgbm.train``, such as ``feval=chain.metric()``.

    Returns
    -------
    Booster
        The trained model.

    Raises
    ------
    ValueError
        For the checkpoint of another fit, or parameters that make LightGBM draw random numbers.

    Examples
    --------
    >>> import tempfile
    >>> import lightgbm as lgb
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from boostplugins.lightgbm import CyclicalSGLB, train_with_checkpoints
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> chain = CyclicalSGLB("binary")
    >>> params = {"verbosity": -1, **chain.lightgbm_params()}
    >>> data = lgb.Dataset(X, (X[:, 0] > 0).astype(int))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = train_with_checkpoints(chain, params, data, 10, Path(folder) / "fit")
    >>> model.current_iteration()
    10
    """
    settings = {
        name: value
        for name, value in params.items()
        if name not in ("objective", "verbosity", "verbose", *lgb.basic._ConfigAliases.get("num_threads"))
    }
    sets = [_content(held) for held in (data, *valid_sets)]
    mark = fingerprint(repr(chain), chain.prior, chain.start, sorted(settings.items()), num_boost_round, sets)
    kept = Checkpoint(checkpoint, checkpoint_every, mark)
    booster = train(chain, params, data, num_boost_round, kept, callbacks, valid_sets, **options)
    kept.remove()
    best = booster.best_iteration
    booster = booster.model_from_string(booster.model_to_string(num_iteration=-1)).free_dataset()
    booster.best_iteration = best
    return booster


def train(
    chain: CyclicalSGLB,
    params: Mapping[str, Any],
    data: lgb.Dataset,
    n_rounds: int,
    checkpoint: Checkpoint,
    callbacks: Sequence[Callable[[Any], Any]] = (),
    valid_sets: Sequence[lgb.Dataset] = (),
    **options: Any,
) -> lgb.Booster:
    """Train a chain, or go on with its training.

    Parameters
    ----------
    chain : CyclicalSGLB
        The chain.
    params : mapping
        LightGBM's parameters.
    data : Dataset
        Training set.
    n_rounds : int
        Iterations in all.
    checkpoint : Checkpoint
        File of the checkpoints; not removed in the end.
    callbacks : sequence of callable, default=()
        Further callbacks.
    valid_sets : sequence of Dataset, default=()
        Validation sets.
    **options : dict
        Further arguments of ``lightgbm.train``.

    Returns
    -------
    Booster
        Booster with all trees.
    """
    _check(params)
    resumed = _load(checkpoint)
    sets = [data, *valid_sets] if resumed.done else []
    given = [held.init_score for held in sets]
    for held, scores in zip(sets, resumed.scores, strict=True):
        held.set_init_score(scores.ravel() if len(scores) == 1 else scores.T)
    clock = chain.callback()
    clock.resumed = resumed if resumed.done else None
    shifted = [_Shifted(callback, resumed, n_rounds) for callback in callbacks]
    keeper = _Keeper(checkpoint, resumed, clock)
    try:
        booster = lgb.train(
            {**params, "objective": chain},
            data,
            n_rounds - resumed.done,
            valid_sets=list(valid_sets) or None,
            callbacks=[clock, *shifted, keeper],
            keep_training_booster=True,
            **options,
        )
    finally:  # the data sets are the user's
        for held, score in zip(sets, given, strict=True):
            _give_back(held, score)
    for text in reversed(resumed.trees):
        earlier = lgb.Booster(model_str=text.decode())
        _safe_call(_LIB.LGBM_BoosterMerge(booster._handle, earlier._handle))
    return booster


def _content(held: lgb.Dataset) -> tuple[Any, ...]:
    """Content of a data set, the same before and after LightGBM has taken it over and let its rows go."""
    if held.data is not None or held not in _ROWS:
        _ROWS[held] = fingerprint(held.data)
    label, weight = (
        None if values is None else np.asarray(values, dtype=np.float32)
        for values in (held.label, held.weight)
    )
    if weight is not None and (weight == 1.0).all():
        weight = None
    score = held.init_score
    return _ROWS[held], label, weight, None if score is None else np.ravel(score, order="F")


def _give_back(held: lgb.Dataset, score: Any) -> None:
    if score is not None:
        held.set_init_score(score)
        return
    held.init_score = None
    if held._handle is not None:
        held.set_field("init_score", None)


def _check(params: Mapping[str, Any]) -> None:
    for name, allowed in _DRAWS:
        names = lgb.basic._ConfigAliases.get(name)
        for alias in names & params.keys():
            if not allowed(params[alias]):
                raise ValueError(
                    f"{alias} must be at its default with checkpoint, got {params[alias]!r}: LightGBM's own "
                    "random draws cannot be gone on with; masks and noise of the chain can"
                )
    if find(params, "boosting") not in ("gbdt", "gbrt"):
        raise ValueError("boosting must be 'gbdt' with checkpoint")


def _load(checkpoint: Checkpoint) -> Resumed:
    content = checkpoint.load()
    if content is None or "done" not in content.state:
        return Resumed()
    held = content.state
    scores = [content.arrays[f"scores{i}"] for i in range(held["sets"])]
    own = [content.arrays[f"chain{i}"] for i in range(held["sets"]) if f"chain{i}" in content.arrays]
    return Resumed(held["done"], held["skipped"], scores, own, held["history"], content.parts)


class _Shifted:
    """A callback that sees iterations numbered over the whole training."""

    def __init__(self, callback: Callable[[Any], Any], resumed: Resumed, n_rounds: int) -> None:
        self._callback, self._resumed, self._total = callback, resumed, n_rounds
        self.before_iteration = getattr(callback, "before_iteration", False)
        if hasattr(callback, "order"):
            self.order = callback.order

        self._missed = resumed.history if isinstance(callback, _REPLAYED) else []

    def __call__(self, env: Any) -> None:
        missed, self._missed = self._missed, []
        for number, results in enumerate(missed):  # what early stopping and records saw before
            kind = type(env.evaluation_result_list[0])
            again = [tuple(result) if kind is tuple else kind(*result) for result in results]
            self._show(env, number, again)
        self._show(env, env.iteration + self._resumed.done, env.evaluation_result_list)

    def _show(self, env: Any, number: int, results: Any) -> None:
        shifted = lgb.callback.CallbackEnv(
            model=env.model,
            params=env.params,
            iteration=number,
            begin_iteration=0,
            end_iteration=self._total,
            evaluation_result_list=results,
        )
        self._callback(shifted)


class _Keeper:
    """Callback that writes the checkpoints, after all others."""

    order = 10_000
    before_iteration = False

    def __init__(self, checkpoint: Checkpoint, resumed: Resumed, clock: Any) -> None:
        self._checkpoint, self._resumed, self._clock = checkpoint, resumed, clock
        self._history = list(resumed.history)

    def __call__(self, env: Any) -> None:
        self._history.append([_fields(result) for result in env.evaluation_result_list or ()])
        done = self._resumed.done + env.iteration + 1
        if done % self._checkpoint.every or env.iteration + 1 == env.end_iteration:
            return
        booster, state = env.model, self._clock.state_of(env.model)
        scores = [_scores(booster, i, state.loss.n_outputs) for i in range(1 + len(booster.valid_sets))]
        arrays = {f"scores{i}": values for i, values in enumerate(scores)}
        arrays |= {f"chain{i}": values for i, values in enumerate(_own(state, scores))}
        held = {
            "done": done,
            "skipped": list(state.skipped),
            "sets": len(scores),
            "history": self._history,
        }
        trees = [*self._resumed.trees]
        if booster.current_iteration():
            trees.append(booster.model_to_string(num_iteration=-1).encode())
        self._checkpoint.save(held, arrays, trees)


def _fields(result: Any) -> list[Any]:
    """Fields of an evaluation: a tuple in older versions of LightGBM, a data class in newer ones."""
    return list(vars(result).values() if hasattr(result, "__dict__") else result)


def _scores(booster: lgb.Booster, number: int, n_outputs: int) -> np.ndarray:
    scores = booster._Booster__inner_predict(data_idx=number)  # type: ignore[attr-defined]
    return np.array(np.reshape(scores, (-1, n_outputs), order="F").T)


def _own(state: TrainingState, scores: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [] if state.leaves is None else state.leaves.own(scores)
