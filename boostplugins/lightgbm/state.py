"""State of one fit: its clock, and what one iteration of the chain needs of every row.

LightGBM holds scores G in units that make the shrinkage of the whole model unnecessary: the chain's
state is F_t = s_t G_t with s_t = (1 - gamma eps)^(t - T), so that s_T = 1 and the finished model
predicts F_T as it is. Then F_{t+1} = (1 - gamma eps) F_t + eps h is G_{t+1} = G_t + eps h / s_{t+1}:
the directions are divided by s_{t+1}, LightGBM's learning rate stays eps.
"""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
from lightgbm import Booster, Dataset

from boostplugins._validation import check_target, check_weight
from boostplugins._warnings import warn
from boostplugins.lightgbm.description import (
    check_continued,
    earlier_description,
    write_description,
)
from boostplugins.lightgbm.inspection import (
    category_columns,
    features_of,
    has_categories,
    has_start,
    leaf_counts,
    newton_factor,
)
from boostplugins.lightgbm.leaves import LeafDraws
from boostplugins.lightgbm.network import check_classes, first_row
from boostplugins.lightgbm.settings import check_settings, find, thread_count
from boostplugins.losses import Loss, NormalLikelihood, SquaredError
from boostplugins.losses.kernels import LARGEST_LOG, NORMAL, Rows, Step, all_outputs, bad_rows
from boostplugins.masks import rows_of
from boostplugins.noise import Stream, normals
from boostplugins.schedules import scale_of

if TYPE_CHECKING:
    from boostplugins.lightgbm.chain import CyclicalSGLB
    from boostplugins.lightgbm.resuming import Resumed

_NO_WEIGHT = np.empty(0, dtype=np.float32)
_NO_MASK = np.empty(0, dtype=np.bool_)


class TrainingState:
    """What changes while a chain is trained; made anew for each fit.

    Parameters
    ----------
    chain : CyclicalSGLB
        The chain.
    booster : Booster
        Booster of the fit, before its first iteration.
    params : dict
        LightGBM's parameters.
    n_iterations : int
        Iterations of this fit.
    resumed : Resumed, optional
        Where a killed training of the same chain stood.
    """

    def __init__(
        self,
        chain: CyclicalSGLB,
        booster: Booster,
        params: dict[str, Any],
        n_iterations: int,
        resumed: Resumed | None = None,
    ) -> None:
        data: Dataset = booster.train_set
        self.chain = chain
        self._booster = weakref.ref(booster)
        self.n_rows = int(data.num_data())
        self.y = np.asarray(data.get_label())
        weight = data.get_weight()
        self.weight = _NO_WEIGHT if weight is None else np.asarray(weight)
        y = check_target(self.y, "label")
        weights = check_weight(weight, self.n_rows, "weight")
        chain.loss.check_labels(y)
        # What data sets say of trees, too, goes before the training's parameters.
        params = {**params, **(data.get_params() or {})}
        earlier = earlier_description(data)
        grown = int(booster.current_iteration())
        self.skipped: list[int] = list((earlier or {}).get("skipped", ())) if grown else []
        self.begin = grown + len(self.skipped)
        self.done = 0 if resumed is None else resumed.done
        self.total = self.begin + self.done + n_iterations
        # Of the user's; those of a killed training are where its chain stood.
        self._has_start = resumed is None and has_start(data)
        self.learning_rate = float(find(params, "learning_rate"))
        self._threads = thread_count(params)
        self.first_row, distributed = first_row(params)
        self._check(params, booster, chain.loss.ready(y, weights).n_outputs, distributed)
        self.loss = self._ready_loss(y, weights, data, distributed)
        self._decay = math.log1p(-chain.shrink * self.learning_rate)
        self.start = self._start(y, weights, data)
        self.noise_size = 0.0
        if chain.noise == "objective" and chain.temperature != math.inf:
            self.noise_size = math.sqrt(2.0 / (self.learning_rate * chain.temperature))
        shape = (self.loss.n_outputs, self.n_rows)
        self._out = np.empty(shape, dtype=np.float32)
        self._curvature = np.ones(shape, dtype=np.float32)
        if len(self.weight):
            self._curvature[:] = self.weight
        self._newton = chain.leaves == "newton"
        # The compiled pass knows the range of a Normal likelihood, CatBoost's row by row does not.
        self._kernel = NORMAL if type(self.loss) is NormalLikelihood else self.loss.kernel
        self._range = getattr(self.loss, "log_sigma_range", None) or (-LARGEST_LOG, LARGEST_LOG)
        self._sigma = float(self.loss.noise_scale(np.zeros((1, self.loss.n_outputs)))[0, 0])
        self.features = None if chain.prior is None else features_of(data)
        self.prior = self._ready_prior(data, y, weights, distributed)
        self._offset = np.empty((self.loss.n_outputs, 0))
        self._cycle = -1
        self.iteration = self.begin + self.done
        self.armed = False
        if resumed is not None:
            self.skipped = list(resumed.skipped)
        independent = chain.leaf_noise != "shared" and self.noise_size > 0 and not distributed
        self.leaves = LeafDraws(self) if independent else None
        if self.leaves is not None and resumed is not None:
            self.leaves.resume(resumed.scores, resumed.chain)
        self.splittable = any(data.feature_num_bin(i) > 1 for i in range(data.num_feature()))
        if self.begin:
            check_continued(earlier, self.description())
        write_description(booster, self.description(), self.splittable)

    def _check(self, params: dict[str, Any], booster: Booster, n_outputs: int, distributed: bool) -> None:
        chain, data = self.chain, booster.train_set
        steps = self.total - self.begin
        self.categories = has_categories(data)
        check_settings(
            params,
            n_outputs,
            chain.noise != "none" and chain.temperature != math.inf,
            chain.shrink * self.learning_rate * steps,
            self.categories,
            # The scikit-learn interface names a metric, in a list, whether or not there are sets to score.
            bool(booster.valid_sets) or isinstance(find(params, "metric"), str),
        )
        if chain.shrink * self.learning_rate >= 1.0:
            raise ValueError(
                f"shrink * learning_rate must be < 1, got {chain.shrink * self.learning_rate:g}: the model "
                "would change its sign every iteration"
            )
        if chain.shrink > 0 and (self.begin or self._has_start):
            raise ValueError(
                "init_model and init_score cannot go with shrink > 0, which would miss them; use shrink=0"
            )
        if distributed and chain.leaf_noise == "independent":
            raise ValueError('leaf_noise must be "shared" on several machines: leaf sums are not shared')
        if distributed and chain.structure_noise != 1.0:
            raise ValueError("structure_noise must be 1 on several machines, where leaves share it")

    def _ready_loss(self, y: np.ndarray, weight: np.ndarray | None, data: Dataset, distributed: bool) -> Loss:
        loss = self.chain.loss
        if distributed and self.chain.start is None:
            raise ValueError(
                "a chain on several machines needs the start value of all rows, not of its own; train "
                "with chain.distributed(y, sample_weight) in place of chain"
            )
        if distributed and loss.classification:
            check_classes(max(loss.n_outputs, 2))
        if isinstance(loss, SquaredError) and loss.noise_variance is None:
            from boostplugins.lightgbm.noise_variance import held_out_variance

            return loss.with_noise_variance(held_out_variance(data))
        return loss.ready(y, weight)

    def _ready_prior(self, data: Dataset, y: np.ndarray, weight: np.ndarray | None, distributed: bool) -> Any:
        """Fit a prior that is not fitted yet to the rows: its numbers, in units of the loss."""
        prior: Any = self.chain.prior
        if not hasattr(prior, "fit"):
            return prior
        if distributed or self.begin:
            where = "on several machines" if distributed else "to go on with a model"
            raise ValueError(
                f"prior must be a fitted one {where}, such as RandomPrior().fit(X); got {prior!r}"
            )
        categories = category_columns(data)
        numbers = [i for i in range(data.num_feature()) if i not in categories]
        fitted = prior.fit(self.features, columns=numbers) if categories else prior.fit(self.features)
        return fitted.in_units(self.loss.prior_units(y, weight))

    def _start(self, y: np.ndarray, weight: np.ndarray | None, data: Dataset) -> np.ndarray:
        if self.begin or self._has_start:
            return np.zeros(self.loss.n_outputs)
        if self.chain.start is not None:
            return np.asarray(self.chain.start, dtype=np.float64)
        return np.asarray(self.loss.start(y, weight), dtype=np.float64)

    @property
    def booster(self) -> Booster | None:
        """Booster of the fit while it lives."""
        return self._booster()

    def description(self) -> dict[str, Any]:
        """Describe the chain as trained.

        Returns
        -------
        dict
            The chain's description, with what a reader of the trees needs.
        """
        return self.chain.to_dict(self.loss, self.prior) | {
            "learning_rate": self.learning_rate,
            "start": self.start.tolist(),
            "iterations": self.total,
            "skipped": self.skipped,
            "leaf_noise": "shared" if self.leaves is None else "independent",
        }

    def scale(self, iteration: int) -> float:
        """Give the factor s of the scores.

        Parameters
        ----------
        iteration : int
            Iterations done.

        Returns
        -------
        float
            F = s G.
        """
        return math.exp(self._decay * (iteration - self.total))

    def shift(self, iteration: int) -> np.ndarray:
        """Give what is left of the start value: all of it where the model is shrunk to its start.

        Parameters
        ----------
        iteration : int
            Iterations done.

        Returns
        -------
        ndarray of shape (n_outputs,)
            Start value times the shrinkage that it met.
        """
        if self.chain.shrink_to == "start":
            return self.start
        return self.start * math.exp(self._decay * (iteration - self.begin))

    def arm(self, iteration: int) -> None:
        """Make an iteration ready; the objective may be called once.

        Parameters
        ----------
        iteration : int
            Number of the iteration, over the whole chain.
        """
        chain = self.chain
        self.iteration, self.armed = iteration, True
        cycle = chain.schedule.cycle(iteration)
        if cycle != self._cycle:
            self._mask_of_cycle = rows_of(chain.mask, cycle, self.n_rows, self.first_row)
            if self.features is not None:
                values = self.prior.values(cycle, self.features, self.loss.n_outputs)
                self._offset = np.ascontiguousarray(values.T)
            self._cycle = cycle
        exploring = chain.schedule.exploring(iteration) and self._mask_of_cycle is not None
        self._kept: np.ndarray = self._mask_of_cycle if exploring else _NO_MASK  # type: ignore[assignment]

    def step(self, stream: int) -> Step:
        """Describe the iteration to the compiled pass.

        Parameters
        ----------
        stream : int
            Draws to use, a `Stream`.

        Returns
        -------
        Step
            Gain, noise, scale and place of the draws.
        """
        return Step(
            gain=scale_of(self.chain.schedule, self.iteration),
            size=self.noise_size * (self.chain.structure_noise if stream == Stream.STRUCTURE else 1.0),
            sigma=self._sigma,
            scale=self.scale(self.iteration),
            factor=-1.0 / self.scale(self.iteration + 1),
            seed=np.uint64(self.chain.random_state),
            iteration=self.iteration,
            stream=int(stream),
            first_row=self.first_row,
            low=self._range[0],
            high=self._range[1],
        )

    def gradients(self, scores: np.ndarray, stream: int = Stream.STRUCTURE) -> tuple[np.ndarray, np.ndarray]:
        """Compute what LightGBM fits its trees to.

        Parameters
        ----------
        scores : ndarray of shape (n_outputs, n_rows)
            LightGBM's scores G, without the start.
        stream : int, default=Stream.STRUCTURE
            Draws to use.

        Returns
        -------
        gradient : ndarray of shape (n_outputs, n_rows), dtype float32
            Upward directions in LightGBM's units.
        curvature : ndarray of shape (n_outputs, n_rows), dtype float32
            Weights of the rows.
        """
        step = self.step(stream)
        shift = self.shift(self.iteration)
        if self._kernel is not None and not self._newton:
            rows = Rows(self.y, self.weight, self._kept, shift, self._offset)
            all_outputs(self._kernel, step, rows, scores, self._out, self._threads)
        else:
            self._any_loss(step, scores, shift)
        bad = bad_rows(self._out)
        if bad:
            raise ValueError(
                f"direction of the {self.loss.name} loss must be finite, got NaN or infinity in {bad} of "
                f"{self.n_rows} rows at iteration {self.iteration}"
            )
        return self._out, self._curvature

    def _any_loss(self, step: Step, scores: np.ndarray, shift: np.ndarray) -> None:
        raw = self._raw(scores, step.scale, shift)
        y = self.y.astype(np.float64)
        weight = self.weight.astype(np.float64)[:, None] if len(self.weight) else np.ones((1, 1))
        spread = np.ones(raw.shape)
        if self._newton:
            d = -np.asarray(self.loss.gradient(y, raw))
            self._curvature[:] = (weight * newton_factor(self.loss) * self.loss.hessian(y, raw)).T
        else:
            d, spread = (np.asarray(part) for part in self.loss.direction_and_noise(y, raw))
        if d.shape != raw.shape:
            raise ValueError(f"direction of {self.loss.name} must have shape {raw.shape}, got {d.shape}")
        d = step.gain * weight * d
        if len(self._kept):
            d[~self._kept] = 0.0
        if step.size > 0:
            for k in range(raw.shape[1]):
                zeta = normals(
                    self.chain.random_state, step.iteration, step.stream, self.n_rows, step.first_row, k
                )
                d[:, k] += (np.sqrt(weight) * step.size * spread)[:, k] * zeta
        self._out[:] = step.factor * d.T

    def _raw(self, scores: np.ndarray, scale: float, shift: np.ndarray) -> np.ndarray:
        raw = scale * scores.T + shift
        return raw + self._offset.T if self._offset.shape[1] else raw

    def after_update(self, booster: Booster, grown: bool) -> None:
        """Finish an iteration: second draw into the leaves, start value into the first trees.

        Parameters
        ----------
        booster : Booster
            Booster of the fit.
        grown : bool
            Whether LightGBM kept the iteration's trees.
        """
        if not grown:
            if not self.skipped:
                warn(
                    f"LightGBM found nothing to split in iteration {self.iteration}: too few rows for "
                    "min_data_in_leaf, or no feature that varies; the state does not move in such iterations",
                )
            self.skipped.append(self.iteration)
            write_description(booster, self.description(), self.splittable)
        else:
            self._finish_trees(booster)
        if self.iteration == self.total - 1:
            self._out = self._curvature = np.empty((0, 0), dtype=np.float32)

    def _finish_trees(self, booster: Booster) -> None:
        if self.leaves is not None and self.splittable:
            self.leaves.redraw(booster)
        if self.iteration == self.begin and self.start.any():
            first_tree = (booster.current_iteration() - 1) * self.loss.n_outputs
            for k, count in enumerate(leaf_counts(booster, booster.current_iteration() - 1)):
                # Predictions are the state after the last iteration, where the scale is 1.
                shift = float(self.shift(self.total)[k])
                for leaf in range(count):
                    value = booster.get_leaf_output(first_tree + k, leaf)
                    booster.set_leaf_output(first_tree + k, leaf, value + shift)

    def raw_scores(self, scores: np.ndarray, features: Any = None) -> np.ndarray:
        """Turn LightGBM's scores after the iteration into raw scores.

        Parameters
        ----------
        scores : ndarray of shape (n, n_outputs)
            LightGBM's scores of any data set.
        features : ndarray of shape (n, n_features), optional
            Rows, for the random function.

        Returns
        -------
        ndarray of shape (n, n_outputs)
            Raw scores of the chain.
        """
        done = self.iteration + 1
        raw = self.scale(done) * scores + self.shift(done)
        if self.prior is not None:
            raw = raw + self.prior.values(self._cycle, features, self.loss.n_outputs)
        return raw
