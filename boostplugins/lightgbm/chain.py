"""CyclicalSGLB: the objective that turns LightGBM into a sampler."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from lightgbm import Dataset
from numpy.typing import ArrayLike

from boostplugins._validation import check_integer, check_methods, check_option, check_real
from boostplugins.lightgbm.callback import ChainCallback
from boostplugins.lightgbm.metric import ChainMetric
from boostplugins.lightgbm.sessions import find_state
from boostplugins.losses import Loss, get_loss
from boostplugins.masks import MASK_METHODS, NoMask, RowMask
from boostplugins.schedules import SCHEDULE_METHODS, Constant, GradientSchedule

if TYPE_CHECKING:
    from boostplugins.priors import FittedPrior, RandomPrior


class CyclicalSGLB:
    r"""Stochastic gradient Langevin boosting with a gradient schedule, as a LightGBM objective.

    Each iteration fits a tree (one an output) to

    .. math:: d = \alpha_t\, w\, m\, g + \sqrt{w}\,\sqrt{2 / (\epsilon \tau)}\,\sigma\, \zeta

    (schedule alpha, weight w, mask m, downhill direction g, learning rate eps, inverse temperature
    tau, loss's noise scale sigma, fresh standard normals zeta) and adds eps times the mean of d in each
    leaf: Langevin dynamics on the summed log likelihood. The loss's best constant is where the chain
    starts, and part of the first trees.

    Parameters
    ----------
    loss : str, Loss or type, default="regression"
        "regression", "binary", "multiclass", "normal", or a `Loss`. For classes give their number:
        ``Softmax(n_classes=3)``.
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
        What the model is shrunk to: zero raw scores, or the loss's own start value.
    noise : {"objective", "none"}, default="objective"
        Whether the objective draws Langevin noise.
    leaf_noise : {"auto", "shared", "independent"}, default="auto"
        Whether the leaves keep the draw on which their tree was grown, or get values from a second
        one, as in CatBoost: leaf values then do not carry what the choice of splits found in the noise.
        Independent draws fit better and know more beyond the data; "auto" takes them but on several
        machines, where leaf sums are not shared.
    structure_noise : float, default=1.0
        Factor of the noise that the choice of splits sees; other than 1 it needs independent leaves,
        which still get the whole noise.
    leaves : {"gradient", "newton"}, default="gradient"
        What a leaf's value is: the weighted mean of its rows' directions, or Newton's step, as in
        LightGBM's own losses; only for chains without noise.
    prior : RandomPrior or FittedPrior, optional
        Random function added to the raw scores of each cycle; needs data sets that keep their rows
        (``free_raw_data=False``). An unfitted one is fitted to the numeric columns of the training rows.
    random_state : int, default=0
        Seed of the noise.

    Notes
    -----
    The object holds settings only; each fit has a state of its own. It is its own objective, for
    ``lgb.train`` and for the scikit-learn interface.

    A chain of K outputs needs ``num_class=K``. LightGBM's own predictions are the raw scores of the
    chain's last state; members, probabilities and uncertainty come from `VirtualEnsemble`.

    Early stopping watches `metric` and cuts the chain at its best iteration. ``init_model`` goes on with
    a chain of the same settings and no shrinkage. Bagging and GOSS choose the rows that trees are grown
    on; independent leaves are means over all rows. ``boosting="dart"`` is for chains without noise.

    Examples
    --------
    >>> import lightgbm as lgb
    >>> import numpy as np
    >>> from boostplugins import CosineCycle, VirtualEnsemble
    >>> from boostplugins.lightgbm import CyclicalSGLB
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)); y = X[:, 0] + rng.normal(size=200)
    >>> chain = CyclicalSGLB("regression", schedule=CosineCycle(length=10), random_state=0)
    >>> params = {"objective": chain.objective, "verbosity": -1, **chain.lightgbm_params()}
    >>> booster = lgb.train(params, lgb.Dataset(X, y), num_boost_round=30, callbacks=[chain.callback()])
    >>> VirtualEnsemble.from_lightgbm(booster).members(X).shape
    (200, 3, 1)
    """

    def __init__(
        self,
        loss: str | Loss | type[Loss] = "regression",
        schedule: GradientSchedule | None = None,
        mask: RowMask | None = None,
        temperature: float = 1.0,
        shrink: float = 0.0,
        shrink_to: str = "zero",
        noise: str = "objective",
        leaf_noise: str = "auto",
        structure_noise: float = 1.0,
        leaves: str = "gradient",
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
        self.noise = check_option("noise", noise, ("objective", "none"))
        self.leaf_noise = check_option("leaf_noise", leaf_noise, ("auto", "shared", "independent"))
        self.structure_noise = check_real("structure_noise", structure_noise, 0.0)
        if self.structure_noise != 1.0 and self.leaf_noise == "shared" and self.noise == "objective":
            raise ValueError(
                f"structure_noise must be 1 where leaves share it, got {self.structure_noise:g}; use "
                'leaf_noise="independent"'
            )
        self.leaves = check_option("leaves", leaves, ("gradient", "newton"))
        if self.leaves == "newton" and self.noise == "objective" and self.temperature != math.inf:
            raise ValueError(
                'leaves="newton" must go without noise: curvatures that move with the scores would bend '
                "the posterior; use temperature=math.inf, or leaves='gradient'"
            )
        self.prior = prior
        self.random_state = check_integer("random_state", random_state, 0)
        if self.random_state >= 2**64:
            raise ValueError(f"random_state must be below 2**64, got {random_state}")
        self.start: tuple[float, ...] | None = None
        check_methods("schedule", self.schedule, SCHEDULE_METHODS)
        check_methods("mask", self.mask, MASK_METHODS)

    def __repr__(self) -> str:
        return (
            f"CyclicalSGLB({self.loss!r}, schedule={self.schedule!r}, mask={self.mask!r}, "
            f"temperature={self.temperature:g}, shrink={self.shrink:g}, noise={self.noise!r}, "
            f"leaf_noise={self.leaf_noise!r}, structure_noise={self.structure_noise:g}, "
            f"shrink_to={self.shrink_to!r}, leaves={self.leaves!r}, random_state={self.random_state})"
        )

    def __eq__(self, other: object) -> bool:
        if other is self or not isinstance(other, CyclicalSGLB):
            return other is self
        mine, theirs = dict(vars(self)), dict(vars(other))
        for settings in (mine, theirs):  # a prior holds arrays: compare what it was made of
            settings["prior"] = None if settings["prior"] is None else settings["prior"].to_dict()
        return mine == theirs

    def __hash__(self) -> int:
        return hash(repr(self))

    def __copy__(self) -> CyclicalSGLB:
        return self

    def __deepcopy__(self, memo: dict[Any, Any]) -> CyclicalSGLB:
        return self  # settings only, and LightGBM copies objectives deeply

    def __call__(self, first: Any, second: Any, weight: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Compute gradients and hessians for LightGBM.

        Parameters
        ----------
        first, second : ndarray or Dataset
            Scores and training set (``lgb.train``), or labels and scores (scikit-learn).
        weight : ndarray, optional
            Weights in the scikit-learn interface; the state knows them already.

        Returns
        -------
        gradient : ndarray of shape (n_samples,) or (n_samples, n_outputs), dtype float32
            Upward direction with schedule, mask, weights and noise.
        hessian : ndarray of the same shape, dtype float32
            Weights, or weighted curvatures for Newton leaves.

        Raises
        ------
        ValueError
            Where the chain's clock is not among the callbacks, or shapes do not fit.
        """
        data = second if isinstance(second, Dataset) else None
        scores = np.asarray(first if data is not None else second, dtype=np.float64)
        state = find_state(data, armed=True)
        if state is None:
            raise ValueError(
                "callbacks must hold the chain's clock, got none: lgb.train(..., "
                "callbacks=[chain.callback()]), also with lgb.cv and with fit"
            )
        if state.chain != self:
            raise ValueError(f"objective must be the chain of the callback, {state.chain!r}, got {self!r}")
        shape = (state.n_rows,) if state.loss.n_outputs == 1 else (state.n_rows, state.loss.n_outputs)
        if scores.shape != shape:
            raise ValueError(f"scores must have shape {shape}, got {scores.shape}")
        state.armed = False
        by_output = np.ascontiguousarray(scores.reshape(state.n_rows, -1).T)
        if state.leaves is not None:
            by_output = state.leaves.scores(by_output)
        gradient, hessian = state.gradients(by_output)
        return (gradient[0], hessian[0]) if len(shape) == 1 else (gradient.T, hessian.T)

    @property
    def objective(self) -> CyclicalSGLB:
        """The objective: this object."""
        return self

    def callback(self) -> ChainCallback:
        """Make the clock of the chain, to pass as ``callbacks=[chain.callback()]``.

        Returns
        -------
        ChainCallback
            The clock; other callbacks may stand beside it.
        """
        return ChainCallback(self)

    def metric(
        self,
        function: Callable[[np.ndarray, np.ndarray, np.ndarray | None], float] | None = None,
        name: str | None = None,
        maximize: bool | None = None,
    ) -> ChainMetric:
        """Make a metric that sees the chain's raw scores, by default the loss's own log score.

        Parameters
        ----------
        function : callable, optional
            Other score, called as ``function(y, raw, weight)``.
        name : str, optional
            Name of `function` in the history.
        maximize : bool, optional
            Whether higher values of `function` are better; must be said.

        Returns
        -------
        ChainMetric
            For ``feval=`` (``lgb.train``, ``lgb.cv``) or ``eval_metric=`` (scikit-learn).

        Raises
        ------
        ValueError
            For a function without a direction.
        """
        if function is None:
            return ChainMetric(self)
        if maximize is None:
            raise ValueError("maximize must be True or False for a metric of your own, got None")
        return ChainMetric(
            self, function, name or str(getattr(function, "__name__", "score")), bool(maximize)
        )

    def lightgbm_params(self, **overrides: Any) -> dict[str, Any]:
        """Give the LightGBM settings that the chain needs.

        Parameters
        ----------
        **overrides : dict
            Further parameters, or others in place of these.

        Returns
        -------
        dict
            Settings for ``lgb.train`` or ``LGBMRegressor``.

        Notes
        -----
        ``lambda_l1 = lambda_l2 = cat_l2 = 0``: a leaf's value is the mean of its rows' directions, also
        below categorical splits; the prior is the chain's `shrink`. ``min_sum_hessian_in_leaf=0``:
        hessians are the rows' weights, whose sum must not keep leaves from splitting
        (``min_data_in_leaf`` limits their rows). ``boost_from_average=False``: the chain has its own
        start. ``metric="None"``: LightGBM's own metrics see its internal scores; pass
        `metric` instead. ``num_class``: the raw scores of a row, for more than one.
        """
        params: dict[str, Any] = {
            "lambda_l1": 0.0,
            "lambda_l2": 0.0,
            "cat_l2": 0.0,
            "min_sum_hessian_in_leaf": 0.0,
            "boost_from_average": False,
            "metric": "None",
        }
        if self.loss.n_outputs > 1:
            params["num_class"] = self.loss.n_outputs
        return params | overrides

    def distributed(self, y: Any, sample_weight: Any = None) -> CyclicalSGLB:
        """Settle what the chain takes from all rows, for training on several machines.

        Parameters
        ----------
        y : dask array, dask Series or array-like of shape (n_samples,)
            Responses of all rows; one column is brought to this machine.
        sample_weight : dask array, dask Series or array-like of shape (n_samples,), optional
            Weights.

        Returns
        -------
        CyclicalSGLB
            The same chain with its start value; for ``DaskLGBMRegressor(objective=...)``.

        Raises
        ------
        ValueError
            For a squared error without a noise variance, which no machine could estimate alone.
        """
        from boostplugins.lightgbm.distributed import settle

        return settle(self, y, sample_weight)

    def fit_dask(
        self,
        model: Any,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        callbacks: Sequence[Any] = (),
        **options: Any,
    ) -> Any:
        """Fit a Dask model on the chain, settled on all rows; empty parts do no harm.

        Parameters
        ----------
        model : DaskLGBMRegressor or DaskLGBMClassifier
            Unfitted model made with ``**chain.lightgbm_params()``; its objective becomes the settled
            chain. The regressor takes classes 0 .. K - 1 in any parts; for the classifier, which numbers
            the classes of each machine by itself, neighbouring parts are joined until each holds all.
        X : dask array or DataFrame of shape (n_samples, n_features)
            Rows.
        y : dask array or Series of shape (n_samples,)
            Responses, in the parts of `X`.
        sample_weight : dask array or Series of shape (n_samples,), optional
            Weights.
        callbacks : sequence, default=()
            Further LightGBM callbacks.
        **options : dict
            Further arguments of ``model.fit``.

        Returns
        -------
        DaskLGBMRegressor or DaskLGBMClassifier
            The fitted model.

        Notes
        -----
        Each machine numbers its rows in a range of its own: masks and noise are unique over all rows,
        and depend on which rows a machine was given, as LightGBM's trees do.

        A Dask array is scored by parts, each where it lies, with
        ``X.map_blocks(lambda rows: ensemble.uncertainty(rows).knowledge, drop_axis=1, dtype=float)``, a
        frame with ``map_partitions``, for ``ensemble = VirtualEnsemble.from_lightgbm(model)``.
        """
        from boostplugins.lightgbm.distributed import fit

        return fit(self, model, X, y, sample_weight, callbacks, options)

    def start_value(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> np.ndarray:
        """Compute the loss's best constant.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Responses.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.

        Returns
        -------
        ndarray of shape (n_outputs,)
            Raw scores at which the chain starts.
        """
        labels = np.asarray(y, dtype=np.float64)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return self.loss.ready(labels, weight).start(labels, weight)

    def to_dict(self, loss: Loss | None = None, prior: FittedPrior | None = None) -> dict[str, Any]:
        """Describe the chain.

        Parameters
        ----------
        loss : Loss, optional
            The loss with its settings taken from the data.
        prior : FittedPrior, optional
            The prior fitted to the data.

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
            "leaf_noise": self.leaf_noise,
            "shrink_to": self.shrink_to,
            "structure_noise": self.structure_noise,
            "leaves": self.leaves,
            "shrink": self.shrink,
            "random_state": self.random_state,
            "prior": _describe(self.prior if prior is None else prior),
        }


def _describe(prior: RandomPrior | FittedPrior | None) -> dict[str, Any] | None:
    # An unfitted prior has no functions to read yet.
    return None if prior is None or hasattr(prior, "fit") else prior.to_dict()
