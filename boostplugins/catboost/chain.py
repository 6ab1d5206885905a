"""CyclicalSGLB: the loss object that turns CatBoost into a sampler."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from boostplugins._validation import check_integer, check_methods, check_option, check_real
from boostplugins.catboost.binding import FitSettings, as_sequence, check_settings, find_fit
from boostplugins.catboost.callback import ChainCallback, GuardedCallbacks, interruptible
from boostplugins.catboost.metadata import ChainMetadata
from boostplugins.catboost.objective import RowsInBlocks
from boostplugins.catboost.pool import ChainPool
from boostplugins.catboost.state import TrainingState, noise_size
from boostplugins.catboost.turns import NoScore, RowsInTurn, TurnState, in_turns, start_of, trees_a_round
from boostplugins.losses import Loss, SquaredError, get_loss
from boostplugins.masks import MASK_METHODS, NoMask, RowMask
from boostplugins.schedules import SCHEDULE_METHODS, Constant, GradientSchedule

if TYPE_CHECKING:
    from boostplugins.priors import FittedPrior, RandomPrior

_NO_CLOCK = (
    "callbacks must hold the chain's clock, got none: fit(..., callbacks=[loss.callback()]); "
    "catboost.cv and grid_search pass no callbacks: use SGLBRegressor or SGLBClassifier there"
)


class CyclicalSGLB:
    r"""Stochastic gradient Langevin boosting with a gradient schedule, as a CatBoost loss.

    Each iteration fits a tree to

    .. math:: d = \alpha_t\, w\, m\, g + \sqrt{w}\,\sqrt{2 / (\epsilon \tau)}\,\sigma\, \zeta

    (schedule alpha, weight w, mask m, downhill direction g, learning rate eps, inverse temperature
    tau, loss's noise scale sigma, fresh standard normals zeta for structure and for leaves) and adds
    eps times the mean of d in each leaf: Langevin dynamics on the summed log likelihood.

    Parameters
    ----------
    loss : str, Loss or type, default="RMSE"
        "RMSE", "Logloss", "MultiClass", "RMSEWithUncertainty", or a `Loss`.
    schedule : GradientSchedule, optional
        `CosineCycle` for a cyclical chain; `Constant` (the default) for plain SGLB.
    mask : RowMask, optional
        `BernoulliMask` for bootstrap exploration; `NoMask` by default.
    temperature : float, default=1.0
        Inverse temperature tau > 0: 1 samples the posterior, larger is colder, ``math.inf`` is plain
        boosting.
    shrink : float, default=0.0
        Shrink rate gamma >= 0 of the model: a Gaussian prior on leaf values.
    shrink_to : {"zero", "start"}, default="zero"
        What the model is shrunk to. "start" keeps the loss's own start value; it needs trees without
        empty leaves (``grow_policy="Depthwise"`` or ``"Lossguide"``), where the start would fade.
    noise : {"objective", "catboost", "none"}, default="objective"
        Who draws the noise. CatBoost's own reaches neither Newton leaves nor the choice of splits;
        it is kept for comparison.
    structure_noise : float, default=1.0
        Factor of the noise that the choice of splits sees. Leaves keep the whole noise, drawn anew,
        so that every step samples at `temperature` whatever the splits; less noise here means
        better splits.
    prior : RandomPrior or FittedPrior, optional
        Random function added to the raw scores of each cycle; needs ``loss.pool``, on whose rows an
        unfitted one is fitted.
    random_state : int, default=0
        Seed of the noise.

    Notes
    -----
    The object holds settings only. CatBoost copies it at the start of every fit; the copy carries
    the state of that fit, so one object may serve many fits, also at the same time.

    Examples
    --------
    >>> import numpy as np
    >>> from catboost import CatBoostRegressor
    >>> from boostplugins import CosineCycle
    >>> from boostplugins.catboost import CyclicalSGLB
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)); y = X[:, 0] + rng.normal(size=200)
    >>> loss = CyclicalSGLB(SquaredError(noise_variance=1.0), schedule=CosineCycle(length=10), random_state=0)
    >>> model = CatBoostRegressor(loss_function=loss, eval_metric="RMSE", iterations=30, verbose=False,
    ...                           **loss.catboost_params())
    >>> model.fit(X, y, callbacks=[loss.callback()]).tree_count_
    30
    """

    no_jit = True  # CatBoost would compile the methods

    def __init__(
        self,
        loss: str | Loss | type[Loss] = "RMSE",
        schedule: GradientSchedule | None = None,
        mask: RowMask | None = None,
        temperature: float = 1.0,
        shrink: float = 0.0,
        shrink_to: str = "zero",
        noise: str = "objective",
        structure_noise: float = 1.0,
        prior: RandomPrior | FittedPrior | None = None,
        random_state: int = 0,
    ) -> None:
        self.loss = get_loss(loss)
        self.schedule = Constant() if schedule is None else schedule
        self.mask = NoMask() if mask is None else mask
        if temperature != math.inf:
            check_real(
                "temperature",
                temperature,
                0.0,
                closed="neither",
                remedy="it is an inverse temperature: use math.inf for boosting without noise",
            )
        self.temperature = float(temperature)
        self.shrink = check_real("shrink", shrink, 0.0)
        self.shrink_to = check_option("shrink_to", shrink_to, ("zero", "start"))
        self.noise = check_option("noise", noise, ("objective", "catboost", "none"))
        self.structure_noise = check_real("structure_noise", structure_noise, 0.0)
        self.prior = prior
        if self.noise == "catboost" and self.temperature == math.inf:
            raise ValueError('temperature must be finite with noise="catboost"; use noise="none"')
        self.random_state = check_integer("random_state", random_state, 0)
        if self.random_state >= 2**64:
            raise ValueError(f"random_state must be below 2**64, got {random_state}")
        check_methods("schedule", self.schedule, SCHEDULE_METHODS)
        check_methods("mask", self.mask, MASK_METHODS)

    def __repr__(self) -> str:
        return (
            f"CyclicalSGLB({self.loss!r}, schedule={self.schedule!r}, mask={self.mask!r}, "
            f"temperature={self.temperature:g}, shrink={self.shrink:g}, "
            f"shrink_to={self.shrink_to!r}, noise={self.noise!r}, "
            f"structure_noise={self.structure_noise:g}, "
            f"random_state={self.random_state})"
        )

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        fit = find_fit()
        return self if fit is None else self._bind(fit, *self._settled(fit, memo))

    def calc_ders_range(self, *_: Any) -> Any:
        """Refuse to serve without a fit: CatBoost trains the copy that it makes for one.

        Parameters
        ----------
        *_ : object
            Scores, labels and weights.

        Returns
        -------
        object
            Nothing.

        Raises
        ------
        ValueError
            Always; ``catboost.cv`` comes here.
        """
        raise ValueError(_NO_CLOCK)

    calc_ders_multi = calc_ders_range

    def callback(self) -> ChainCallback:
        """Make the clock of the chain, to pass as ``fit(callbacks=[...])``.

        Returns
        -------
        ChainCallback
            The clock; other callbacks may stand beside it.
        """
        return ChainCallback(self)

    def catboost_params(self, **overrides: Any) -> dict[str, Any]:
        """Give the CatBoost settings that the chain needs.

        Parameters
        ----------
        **overrides : dict
            Further parameters, or others in place of these.

        Returns
        -------
        dict
            Settings for ``CatBoostRegressor(loss_function=loss, eval_metric=..., **settings)``.

        Notes
        -----
        ``leaf_estimation_method="Gradient"``, one iteration, ``l2_leaf_reg=0``: a leaf's value is the
        mean of its rows' directions. ``bootstrap_type="No"``: the whole batch; masks do the sampling.
        ``random_strength=0``: splits are randomised by the noise itself. ``boosting_type="Plain"``
        and ``has_time=True`` keep the rows in order, so that masks and noise find them (shuffle rows
        beforehand if their order carries information on the target). ``use_best_model=False``: a
        chain is read at its cycle ends, not at its best iteration. ``model_shrink_rate`` is the
        chain's `shrink`. ``metadata`` carries schedule, mask and loss with the model. For several
        outputs ``thread_count=1``: rows are asked for one by one.
        """
        params: dict[str, Any] = {
            "leaf_estimation_method": "Gradient",
            "leaf_estimation_iterations": 1,
            "l2_leaf_reg": 0.0,
            "bootstrap_type": "No",
            "random_strength": 0.0,
            "boosting_type": "Plain",
            "has_time": True,
            "use_best_model": False,
            "model_shrink_rate": self.shrink / trees_a_round(self.loss),
            "model_shrink_mode": "Constant",
            "metadata": ChainMetadata(self),
        }
        if self.loss.n_outputs > 1 and not in_turns(self.loss):
            params["thread_count"] = 1
        if self.noise == "catboost":
            params |= {
                "langevin": True,
                "diffusion_temperature": self.temperature,
                "sampling_frequency": "PerTreeLevel",
            }
        return params | overrides

    def pool(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, **options: Any) -> ChainPool:
        """Make a training pool that names its rows; works with any order CatBoost chooses.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Responses; classes as 0 .. K - 1.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.
        **options : dict
            Further arguments of `catboost.Pool`, such as ``cat_features``.

        Returns
        -------
        ChainPool
            Pool to pass to ``fit``.
        """
        return ChainPool(X, y, self.loss, sample_weight, **options)

    def metric(self) -> Any:
        """Make the loss's own score as an evaluation metric.

        Returns
        -------
        LogScore
            Weighted mean of the loss, lower is better; for ``eval_metric=``. Chains of a family,
            whose parameters take turns, have none: it is 0.
        """
        from boostplugins.catboost.metric import log_score

        return NoScore() if in_turns(self.loss) else log_score(self.loss)

    def fit(
        self, model: Any, X: Any, y: Any = None, callbacks: Sequence[Any] | None = (), **options: Any
    ) -> Any:
        """Fit a CatBoost model on the chain, with callbacks that keep their manners.

        Parameters
        ----------
        model : CatBoost
            Unfitted model whose ``loss_function`` is this object.
        X : Pool or array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,), optional
            Responses where `X` is no pool.
        callbacks : sequence, default=()
            User callbacks: None goes on, False stops, exceptions reach the caller as they are.
        **options : dict
            Further arguments of ``model.fit``.

        Returns
        -------
        CatBoost
            The fitted model.
        """
        callbacks = as_sequence(callbacks)
        clocks = [callback for callback in callbacks if isinstance(callback, ChainCallback)]
        guarded = GuardedCallbacks(tuple(callback for callback in callbacks if callback not in clocks))
        guarded.before_training()
        try:
            with interruptible():
                model.fit(X, y, callbacks=[*(clocks or [self.callback()]), guarded], **options)
        except Exception:
            guarded.reraise()  # what a callback raised tells more than what CatBoost made of it
            raise
        finally:
            guarded.after_training()
        guarded.reraise()
        return model

    def to_dict(
        self,
        loss: Loss | None = None,
        prior: FittedPrior | None = None,
        start: Sequence[float] | None = None,
    ) -> dict[str, Any]:
        """Describe the chain.

        Parameters
        ----------
        loss : Loss, optional
            The loss with its settings taken from the data.
        prior : FittedPrior, optional
            The prior fitted to the data.
        start : sequence of float, optional
            Start value, where it stands outside of the trees (parameters that take turns).

        Returns
        -------
        dict
            JSON-ready: what a reader needs to find the members of a stored model.
        """
        return {
            "format": 1,
            "loss": (self.loss if loss is None else loss).to_dict(),
            "schedule": self.schedule.to_dict(),
            "mask": self.mask.to_dict(),
            "temperature": None if self.temperature == math.inf else self.temperature,
            "noise": self.noise,
            "structure_noise": self.structure_noise,
            "shrink": self.shrink,
            "shrink_to": self.shrink_to,
            "random_state": self.random_state,
            "prior": _describe(self.prior if prior is None else prior),
            **({} if start is None else {"start": list(start)}),
        }

    def _settled(self, fit: FitSettings, memo: dict[Any, Any]) -> tuple[Loss, FittedPrior | None]:
        """Settle what loss and prior take from the data, once for all that is copied with them."""
        key = ("boostplugins", id(self))
        if key not in memo:
            loss = self._ready_loss(fit)
            memo[key] = loss, self._ready_prior(fit, loss)
        return memo[key]

    def _ready_prior(self, fit: FitSettings, loss: Loss) -> FittedPrior | None:
        prior: Any = self.prior
        if prior is None:
            return None
        if fit.pool is None:
            raise ValueError("a chain with a prior function must be trained on loss.pool(X, y, ...)")
        if hasattr(prior, "fit"):
            categories = set(fit.pool.get_cat_feature_indices())
            numbers = [i for i in range(fit.pool.num_col()) if i not in categories]
            fitted = prior.fit(fit.pool.X_, columns=numbers) if categories else prior.fit(fit.pool.X_)
            prior = fitted.in_units(loss.prior_units(fit.pool.y_, fit.pool.weight_))
        return prior

    def _bind(self, fit: FitSettings, loss: Loss, prior: FittedPrior | None) -> Any:
        """Make the objective of one fit."""
        turns = in_turns(loss)
        clocks = [item for item in fit.callbacks if isinstance(item, ChainCallback)]
        for item in fit.callbacks:
            if isinstance(item, GuardedCallbacks):
                clocks += [inner for inner in item.callbacks if isinstance(inner, ChainCallback)]
        keeps = any(clock.keeps for clock in clocks)
        check_settings(fit, 1 if turns else loss.n_outputs, self.noise, keeps)
        if not clocks:
            raise ValueError(_NO_CLOCK)
        wanted = self.shrink / trees_a_round(loss)
        if not math.isclose(fit.shrink, wanted, rel_tol=1e-6):
            raise ValueError(
                f"model_shrink_rate must be the chain's shrink {wanted:g}, got {fit.shrink:g}; pass "
                "**loss.catboost_params() to the model"
            )
        symmetric = fit.params.get("grow_policy", "SymmetricTree") == "SymmetricTree"
        if turns and (self.shrink_to, self.shrink > 0) == ("zero", True):
            raise ValueError('shrink_to must be "start" for a family, whose start value is no tree\'s')
        if self.shrink_to == "start" and self.shrink > 0 and symmetric and not turns:
            raise ValueError(
                'shrink_to="start" needs grow_policy="Depthwise" or "Lossguide": in the empty leaves of '
                "symmetric trees the start would fade"
            )
        state = (TurnState if turns else TrainingState)(
            loss=loss,
            schedule=self.schedule,
            mask=self.mask,
            noise_size=noise_size(fit.learning_rate, self.temperature) if self.noise == "objective" else 0.0,
            seed=self.random_state,
            n_rows=fit.n_rows,
            structure_rows=fit.structure_rows,
            learning_rate=fit.learning_rate,
            prior=prior,
            X=None if prior is None else fit.X.X_,
            with_start=not fit.has_baseline,
            structure_noise=self.structure_noise,
            shrink_to_start=fit.shrink if self.shrink_to == "start" and not turns else 0.0,
        )
        for clock in clocks:
            clock.attach(state)
        metric = fit.params.get("eval_metric")
        if loss.n_outputs == 1 and metric == "MultiClass":
            raise ValueError(f"eval_metric must be of one raw score, as the {loss.name} loss, got {metric!r}")
        if fit.pool is not None and loss.classification and isinstance(metric, str):
            raise ValueError(
                "eval_metric must be loss.metric() for classes on a chain's pool, whose labels name their "
                f"rows, got {metric!r}; use CatBoost, not CatBoostClassifier, with it"
            )
        if isinstance(state, TurnState):
            start_of(loss, fit.pool)  # says what is missing
            return RowsInTurn(state, fit.pool, fit.shrink * fit.learning_rate)  # type: ignore[arg-type]
        done = max(clock.done for clock in clocks)
        objective: Any
        if loss.n_outputs > 1:
            from boostplugins.catboost.row_objective import make_row_objective

            objective = make_row_objective(state, fit)
        elif fit.pool is None:
            objective = RowsInBlocks(state)
        else:
            objective = RowsInBlocks(state, fit.pool.y_, fit.pool.labels_ if fit.shuffled or done else None)
        if done and fit.pool is not None:
            objective.resume(done, np.asarray(fit.pool.get_weight(), dtype=np.float64))
        return objective

    def _ready_loss(self, fit: FitSettings) -> Loss:
        if isinstance(self.loss, SquaredError) and self.loss.noise_variance is None:
            from boostplugins.catboost.noise_variance import estimate_noise_variance

            return self.loss.with_noise_variance(estimate_noise_variance(fit))
        if fit.pool is not None:
            return self.loss.ready(fit.pool.y_, fit.pool.weight_)
        if self.loss.classification and self.loss.n_outputs > 1:
            return self.loss.ready(_class_codes(fit))
        return self.loss


def _describe(prior: RandomPrior | FittedPrior | None) -> dict[str, Any] | None:
    # An unfitted prior has no functions to read yet.
    return None if prior is None or hasattr(prior, "fit") else prior.to_dict()


def _class_codes(fit: FitSettings) -> np.ndarray:
    labels = fit.X.get_label() if fit.y is None else fit.y
    return np.unique(np.asarray(labels).ravel(), return_inverse=True)[1].astype(np.float64)
