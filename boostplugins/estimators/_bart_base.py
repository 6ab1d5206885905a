"""What the estimators of Bayesian trees share: arguments, preparation, sampling, prediction by blocks."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from boostplugins._validation import check_integer, check_jobs, check_real, check_weight
from boostplugins._warnings import warn
from boostplugins.checkpoints import Checkpoint, checkpoint_of
from boostplugins.estimators._frames import MISSING, fit_frame, predict_frame
from boostplugins.estimators._labels import warn_of_column
from boostplugins.hbart.bins import Bins
from boostplugins.hbart.chains import Problem, Run, collect, run_rounds, show_progress, start_run
from boostplugins.hbart.columns import Columns
from boostplugins.hbart.design import VarianceDesign, expand
from boostplugins.hbart.diagnostics import worst_rhat
from boostplugins.hbart.posterior import Posterior
from boostplugins.hbart.priors import Hyperparameters
from boostplugins.hbart.resuming import pack_runs, unpack_runs

_logger = logging.getLogger(__name__)
_RHAT_LIMIT = 1.05
_WATCHED_ROWS = 24  # training rows whose f takes part in the convergence check
_LEAF_NU = 3.0  # degrees of freedom of the prior of a leaf variance that is drawn, as of sigma^2
_LEAST_K = 1e-9  # any smaller one is as flat a prior, and its leaf variances overflow at last
_MOST_ROWS = 1 << 40  # no leaf can ask for more


class MixingWarning(ConvergenceWarning):
    """Chains disagree: the split R-hat of some quantity exceeds 1.05."""


class BayesianTrees(BaseEstimator):
    """Shared machinery; see the subclasses for the arguments."""

    n_trees: int
    n_burn: int
    n_draws: int
    n_chains: int
    k: float | str | None
    alpha: float
    beta: float
    min_samples_leaf: int
    max_bins: int | None
    cat_features: Sequence[int | str] | None
    moves: tuple[float, ...]
    n_jobs: int | None
    random_state: Any
    verbose: bool | int
    checkpoint: Any
    checkpoint_every: int
    n_features_in_: int
    posterior_: Posterior
    _saved_scalars: tuple[str, ...]
    _half_range = 0.5  # of the scaled response
    _bins: Bins
    _columns: Columns
    _categorical: list[int]
    _variance_design: VarianceDesign | None
    _runs: list[Run] | None

    def _check_params(self) -> Hyperparameters:
        """Check the arguments; the sampler's share of them comes back."""
        for name, least in (("n_trees", 1), ("n_burn", 0), ("n_draws", 1), ("n_chains", 1)):
            check_integer(name, getattr(self, name), least)
        check_integer("min_samples_leaf", self.min_samples_leaf, 1)
        if self.max_bins is not None:
            check_integer("max_bins", self.max_bins, 2)
            check_real("max_bins", self.max_bins, 2, 65_534)
        check_jobs(self.n_jobs)
        check_real("alpha", self.alpha, 0, 1, closed="neither")
        check_real("beta", self.beta, 0)
        k = self._k()
        moves = _chances(self.moves)
        return Hyperparameters(
            n_trees=int(self.n_trees),
            alpha=float(self.alpha),
            beta=float(self.beta),
            k=1.0 if k is None else k,  # of no effect where it is drawn
            leaf_nu=_LEAF_NU if k is None else 0.0,
            half_range=self._half_range,
            min_leaf=min(int(self.min_samples_leaf), _MOST_ROWS),
            p_grow=moves[0],
            p_prune=moves[1],
            p_swap=moves[3] if len(moves) == 4 else 0.0,
        )

    def _k(self) -> float | None:
        """Check k; None where it is drawn."""
        if isinstance(self.k, str) and self.k == "sample":
            return None
        return check_real("k", self.k, _LEAST_K, remedy="or draw it: k='sample'")

    def _encode(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> tuple[Any, np.ndarray, np.ndarray]:
        """Check the data; returns X as given but for rows of weight 0, its matrix, and the rows kept."""
        if y is None:
            raise ValueError(
                "y must be given: this estimator requires y to be passed, but the target y is None"
            )
        warn_of_column(y)
        y = np.asarray(y)
        table, categorical = fit_frame(self, X, self.cat_features)
        if len(y) != len(table):
            raise ValueError(f"X and y must have as many rows, got {len(table)} and {len(y)}")
        weight = check_weight(sample_weight, len(table))
        kept = np.ones(len(table), dtype=bool) if weight is None else weight > 0
        names = [str(name) for name in getattr(self, "feature_names_in_", [])]
        names = names or [f"x{j}" for j in range(self.n_features_in_)]
        if not kept.all():
            table = table.loc[kept] if hasattr(table, "loc") else table[kept]
            X = X.loc[kept] if hasattr(X, "loc") else np.asarray(X)[kept]
        self._categorical = categorical
        self._columns = Columns.learn(table, categorical, names, MISSING)
        self._weight = np.ones(kept.sum()) if weight is None else weight[kept] / weight[kept].mean()
        return X, self._columns.matrix(table), kept

    def _matrix(self, X: Any) -> np.ndarray:
        """Rows to predict as numbers, checked against training."""
        check_is_fitted(self, "posterior_")
        return self._columns.matrix(predict_frame(self, X, self._categorical))

    def _regressors(self, matrix: np.ndarray) -> np.ndarray:
        """Regressors of the least-squares guess: a column a level but the first, means for missing values."""
        missing = [False] * matrix.shape[1]
        categorical = np.array([levels is not None for levels in self._columns.levels])
        matrix = np.where(categorical & np.isnan(matrix), -1.0, matrix)  # a missing level is none of them
        full, names = expand(matrix, self._columns, range(matrix.shape[1]), missing)
        first = {
            f"{name}={levels[0]}" for name, levels in zip(self._columns.names, self._columns.levels) if levels
        }
        full = full[:, [name not in first for name in names]] if first else full
        present = ~np.isnan(full)
        centre = np.where(present, full, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
        return np.where(present, full, centre)

    def _sample(self, problem: Problem, hyper: Hyperparameters, matrix: np.ndarray) -> None:
        """Start the chains, burn them in, draw, and set what the draws give."""
        self._hyper = hyper
        self.interrupted_ = False
        streams = _seeds(self.random_state).spawn(int(self.n_chains))
        self._runs = [start_run(problem, hyper, np.random.default_rng(stream)) for stream in streams]
        watched = np.unique(np.linspace(0, len(matrix) - 1, _WATCHED_ROWS).astype(int))
        self._watched = np.ascontiguousarray(problem.codes[:, watched])
        burn, total = int(self.n_burn), int(self.n_burn) + int(self.n_draws)
        checkpoint = checkpoint_of(self, problem)
        kept = None if checkpoint is None else checkpoint.load()
        if kept is not None:
            unpack_runs(self._runs, kept.state, kept.arrays)
        done = int(self._runs[0].chain.clock[0])
        self._run(max(burn - done, 0), False, done, total, checkpoint)
        self._draw(min(total - done, total - burn), max(done, burn), checkpoint)
        if checkpoint is not None:
            checkpoint.remove()

    def _run(self, n_steps: int, keep: bool, start: int, total: int, checkpoint: Checkpoint | None) -> None:
        """Run the chains, showing where they are and keeping where they stand."""
        runs = self._runs or []
        show = show_progress(type(self).__name__, start, total) if self.verbose else None
        last = 0

        def progress(done: int) -> None:
            nonlocal last
            if show is not None:
                show(done)
            if checkpoint is not None and done - last >= checkpoint.every:
                checkpoint.save(*pack_runs(runs))
                last = done

        longest = None if checkpoint is None else checkpoint.every
        threads = 1 if self.n_jobs is None else effective_n_jobs(self.n_jobs)
        run_rounds(runs, n_steps, keep, threads, progress, longest)

    def _draw(self, n_draws: int, start: int, checkpoint: Checkpoint | None = None) -> None:
        """Draw from every chain; an interruption keeps what all chains have, and is passed on."""
        runs = self._runs or []
        try:
            self._run(n_draws, True, start, start + n_draws, checkpoint)
        except KeyboardInterrupt:
            self.interrupted_ = True
            if min(run.pieces.n_draws for run in runs):
                self._finish(collect(runs))
            raise
        self._finish(collect(runs))
        if self.rhat_ > _RHAT_LIMIT:
            warn(
                f"chains disagree: the split R-hat of {self._worst()} is {self.rhat_:.4g}, above "
                f"{_RHAT_LIMIT}; {self._advice()}",
                MixingWarning,
            )

    def _worst(self) -> str:
        """Name the quantity of the largest R-hat in the user's words."""
        return self.rhat_of_

    def _advice(self) -> str:
        """Say what helps chains that disagree."""
        return "raise n_burn and n_draws, or draw on with sample_more"

    def _finish(self, posterior: Posterior) -> None:
        self.posterior_ = posterior
        self.n_draws_ = posterior.n_draws
        self.acceptance_ = self._acceptance()
        self.rhat_, self.rhat_of_ = worst_rhat(posterior, self._watched)
        _logger.debug("worst split R-hat %.3f of %s", self.rhat_, self.rhat_of_)

    def _acceptance(self) -> dict[str, float]:
        """Accepted share of the proposals, by move."""
        chains = [run.chain for run in self._runs or ()]
        moves = sum((chain.mean.scratch.tally for chain in chains), np.zeros((4, 2)))
        rates = dict(zip(("grow", "prune", "change", "swap")[: len(self.moves)], moves))
        if self._hyper.n_variance_trees:
            rates["variance trees"] = sum((c.variance.scratch.tally.sum(axis=0) for c in chains), np.zeros(2))
        if chains[0].linear.gamma.size:
            rates["gamma"] = sum((chain.linear.tally for chain in chains), np.zeros(2))
        return {name: float(tally[1] / max(tally[0], 1)) for name, tally in rates.items()}

    def sample_more(self, n_draws: int) -> Any:
        """Continue every chain where it stands and add its draws.

        Parameters
        ----------
        n_draws : int
            Draws to add to each chain.

        Returns
        -------
        self
            The estimator, with more draws; the same as one longer fit.

        Raises
        ------
        ValueError
            For a model read from a file, which holds draws but no chains.
        """
        check_is_fitted(self, "posterior_")
        check_integer("n_draws", n_draws, 1)
        if self._runs is None:
            raise ValueError(
                "this model has no chains to continue: files keep the draws only; fit again, or keep a pickle"
            )
        self._draw(int(n_draws), int(self.n_burn) + self.n_draws_ // self.posterior_.n_chains)
        return self

    def _design(self, X: Any, matrix: np.ndarray) -> np.ndarray:
        """Standardised variance covariates of rows."""
        design = getattr(self, "_variance_design", None)
        if design is None:
            return np.empty((len(matrix), self.posterior_.gamma.shape[1]))
        return design.standardised(X, matrix, self._columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags


def _chances(moves: Any) -> list[float]:
    """Check the chances of the moves."""
    rule = "moves must be three or four chances (GROW, PRUNE, CHANGE, SWAP), sum 1, the first two > 0"
    if not isinstance(moves, (Sequence, np.ndarray)) or not all(isinstance(part, Real) for part in moves):
        raise TypeError(f"{rule}, got {moves!r}")
    chances = [float(part) for part in moves]
    sums_to_one = abs(sum(chances) - 1.0) <= 1e-9  # not so for NaN
    if len(chances) not in (3, 4) or not sums_to_one or min(chances) < 0 or min(chances[:2]) <= 0:
        raise ValueError(f"{rule}, got {moves!r}")
    return chances


def _seeds(random_state: Any) -> np.random.SeedSequence:
    """Root of the chains' streams."""
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if random_state < 0:
            raise ValueError(f"random_state must be >= 0, got {random_state}")
        return np.random.SeedSequence(int(random_state))
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(int(random_state.integers(1 << 63)))
    return np.random.SeedSequence(int(check_random_state(random_state).randint(1 << 31)))
