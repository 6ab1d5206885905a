"""Training that can be killed: CatBoost's own snapshots, and a clock that knows of them.

CatBoost restores its trees and raw scores bit by bit, but it neither calls back for the trees of a
snapshot nor says how many there are. So a first look at a copy of the snapshot, with nothing left to
train, counts them; the objective then starts at that iteration, its rows known from the pool. Noise,
masks and random functions are functions of the iteration.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from catboost import CatBoost, CatBoostError

from boostplugins.catboost.chain import CyclicalSGLB
from boostplugins.catboost.pool import ChainPool
from boostplugins.catboost.turns import in_turns
from boostplugins.checkpoints import Checkpoint, fingerprint

_SECONDS = 10  # between two snapshots, which CatBoost takes by the clock


def train_with_checkpoints(
    chain: CyclicalSGLB,
    params: Mapping[str, Any],
    pool: ChainPool,
    checkpoint: str | Path,
    *,
    checkpoint_every: int = 50,
    callbacks: Sequence[Any] = (),
    **options: Any,
) -> CatBoost:
    """Train a chain so that it may be killed, or go on with one that was, to the same bits.

    Parameters
    ----------
    chain : CyclicalSGLB
        The chain.
    params : mapping
        CatBoost's parameters, ``**chain.catboost_params()`` among them.
    pool : ChainPool
        Training rows, of ``chain.pool``.
    checkpoint : str or Path
        File that keeps which fit this is; CatBoost's snapshot stands in a folder beside it. Both are
        removed in the end.
    checkpoint_every : int, default=50
        1 takes a snapshot after each tree; anything else one about every ten seconds, for CatBoost
        goes by the clock.
    callbacks : sequence, default=()
        User callbacks; they are not called again for trees of the snapshot.
    **options : dict
        Further arguments of ``CatBoost.fit``.

    Returns
    -------
    CatBoost
        The fitted model.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from boostplugins.catboost import CyclicalSGLB, train_with_checkpoints
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> chain = CyclicalSGLB("Logloss")
    >>> params = chain.catboost_params(
    ...     loss_function=chain, eval_metric=chain.metric(), iterations=10, verbose=False
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "fit"
    ...     model = train_with_checkpoints(chain, params, chain.pool(X, X[:, 0] > 0), file)
    >>> model.tree_count_
    10
    """
    settings = {
        name: value
        for name, value in params.items()
        if name not in ("loss_function", "eval_metric", "metadata", "thread_count", "verbose")
    }
    if not isinstance(pool, ChainPool):
        raise TypeError(f"pool must be made by chain.pool(X, y, ...), got {type(pool).__name__}")
    mark = fingerprint(
        repr(chain), chain.prior, sorted(settings.items()), pool.X_, pool.y_, pool.get_weight()
    )
    kept = Checkpoint(checkpoint, checkpoint_every, mark)
    model = train(chain, params, pool, kept, callbacks, **options)
    kept.remove()
    return model


def train(
    chain: CyclicalSGLB,
    params: Mapping[str, Any],
    pool: ChainPool,
    checkpoint: Checkpoint,
    callbacks: Sequence[Any] = (),
    **options: Any,
) -> CatBoost:
    """Train a chain, or go on with its training; the files stay.

    Parameters
    ----------
    chain : CyclicalSGLB
        The chain.
    params : mapping
        CatBoost's parameters.
    pool : ChainPool
        Training rows.
    checkpoint : Checkpoint
        File of the checkpoints.
    callbacks : sequence, default=()
        User callbacks.
    **options : dict
        Further arguments of ``CatBoost.fit``.

    Returns
    -------
    CatBoost
        The fitted model.

    Raises
    ------
    ValueError
        For a family's chain, whose raw scores stand outside of CatBoost and its snapshots.
    """
    if in_turns(chain.loss):
        raise ValueError(
            "checkpoint cannot go with a family on CatBoost, whose snapshots lack the raw scores of the "
            "single parameters; use LightGBM"
        )
    # A folder, since CatBoost leaves a file of an unknown name where it is killed while it writes.
    snapshot = checkpoint.companion.absolute() / "snapshot"
    if checkpoint.load() is None:
        snapshot.unlink(missing_ok=True)
        checkpoint.save({"started": True})
    snapshot.parent.mkdir(exist_ok=True)
    clock = chain.callback()
    clock.keeps = True
    with tempfile.TemporaryDirectory() as folder:
        kept = {
            **params,
            "allow_writing_files": True,
            "train_dir": folder,
            "save_snapshot": True,
            "snapshot_file": str(snapshot),
            "snapshot_interval": 0 if checkpoint.every == 1 else _SECONDS,
        }
        if snapshot.exists():
            copy = Path(folder) / "copy"
            shutil.copyfile(snapshot, copy)
            look = kept | {"iterations": 1, "snapshot_file": str(copy), "snapshot_interval": 10**6}
            grown = _Grown()
            try:
                seen = chain.fit(CatBoost(look), pool, callbacks=[clock, grown], **options)
            except CatBoostError as error:
                raise ValueError(
                    f"snapshot {str(snapshot)!r} cannot be gone on with; remove it and "
                    f"{str(checkpoint.path)!r}: {str(error).splitlines()[0]}"
                ) from None
            # A snapshot of the very beginning holds no tree: the look has grown the first one itself.
            clock.done = int(seen.tree_count_) - grown.trees
        return chain.fit(CatBoost(kept), pool, callbacks=[clock, *callbacks], **options)


class _Grown:
    """Callback that counts the trees which are not the snapshot's."""

    trees = 0

    def after_iteration(self, info: Any) -> bool:
        self.trees += 1
        return True
