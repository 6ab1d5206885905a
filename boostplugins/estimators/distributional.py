"""DistributionalRegressor: every parameter of the response's distribution is boosted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from boostplugins._validation import check_integer, check_jobs, check_option, check_real
from boostplugins.estimators import _distributional_chain as chains
from boostplugins.estimators import _holding_out
from boostplugins.estimators._distributional_training import TrainedDistributional
from boostplugins.estimators._frames import fit_frame, predict_frame
from boostplugins.estimators._labels import seed_of
from boostplugins.estimators._refitting import all_or_nothing
from boostplugins.estimators._rows import Rows, check_rows, held_out, pick
from boostplugins.estimators._units import Units
from boostplugins.families import Family, get_family
from boostplugins.families._steps import check_metric, step_exponent
from boostplugins.masks import RowMask
from boostplugins.priors import RandomPrior
from boostplugins.schedules import GradientSchedule


class DistributionalRegressor(TrainedDistributional):
    """Regressor that boosts every parameter of the response's distribution.

    Responses are standardised inside as far as the family allows, so that predictions follow any
    change of units. Scales of location-scale families stay above 1e-4 of the best constant scale.

    Likelihoods overfit long before means do, so that by default some rows are held out to say when to
    stop and how wide intervals must be: below 5000 rows five models are trained with a fold held out
    each, of more rows a fifth is held out once and training then repeated on all. With
    ``n_folds=None, validation_fraction=None`` one model is trained on all rows for all rounds.

    With `schedule`, `mask` or `temperature` the fit is a Langevin chain on the family's likelihood, whose
    states at the cycles' ends are members of a virtual ensemble: `predict_dist` is their mixture and
    their disagreement the knowledge uncertainty.

    Parameters
    ----------
    family : str or Family, default="normal"
        Distribution of the response: a name, a GAMLSS short name, a `Family`, or "auto" for the one
        with the best cross-validated log score.
    booster : {"lightgbm", "catboost"}, default="lightgbm"
        Who grows the trees.
    step : {"fisher", "natural"} or float in [0, 1], optional
        How rows count within a leaf: by their Fisher information to this power (1 is "fisher", 0
        "natural"). By default "natural" for families with a location, whose noisy rows would
        otherwise hardly count and keep their noise, "fisher" for others.
    n_estimators : int, default=500
        Rounds; each grows a tree for every parameter.
    learning_rate : float, default=0.05
        Shrinkage of each tree, in (0, 1].
    depth : int, default=3
        Depth of the trees.
    min_samples_leaf : int, optional
        Least rows of a leaf; by default a twentieth of the rows, at most 20, with LightGBM, and no
        rule with CatBoost, whose symmetric trees know none (with one they grow depth-wise).
    l2 : float, optional
        Ridge on leaf values, in units of Fisher information: rows that would vote for no change. By
        default 1 where held-out rows stop the training, 10 where nothing else holds it back.
    early_stopping_rounds : int, None or "auto", default="auto"
        Rounds without a better score of held-out rows before training stops; "auto" is 30 wherever
        rows are held out.
    validation_fraction : float, None or "auto", default="auto"
        Share of rows held out for early stopping and calibration; "auto" is 0.2 of 5000 rows or more
        where nothing else is asked for.
    n_folds : int, None or "auto", default="auto"
        Train so many models, each with one fold held out for early stopping and calibration;
        predictions are their mixture, and their disagreement is knowledge uncertainty. "auto" is 5 of
        40 to 5000 rows where nothing else is asked for.
    refit : bool, default=True
        Train again on all rows, for the best number of rounds, after `validation_fraction` has
        served; never with ``calibration="conformal"``, whose promise would be lost.
    calibration : {"auto", "scale", "conformal"} or None, default="auto"
        Recalibration on the held-out rows, see `Recalibrator`; "auto" is "scale" for families with a
        location whose rows the estimator itself held out.
    metric : {"nll", "crps"}, default="nll"
        Score that early stopping watches.
    schedule : GradientSchedule, optional
        Gradient schedule of a chain; by default, where `mask` or `temperature` ask for one,
        `CosineCycle` of ten cycles.
    mask : RowMask, optional
        Rows that a chain sees while it explores; `NoMask` by default.
    temperature : float, optional
        Inverse temperature of a chain, 1 by default: the posterior. Larger is colder.
    shrink : float, optional
        Shrinkage of a chain towards its start, in units of one row's information for every row; by
        default worth 400 rows, at most 0.5.
    prior : RandomPrior, "auto" or None, default="auto"
        Random functions of a chain's cycles, see `RandomPrior`; "auto" is `RandomPrior()` for families
        with a location and cycles.
    cat_features : sequence of int or str, optional
        Categorical columns besides those whose type says so.
    n_jobs : int, optional
        Threads; 1 by default, -1 for all. Results do not depend on it.
    verbose : int, default=0
        Show the held-out score every so many rounds.
    random_state : int, Generator, RandomState or None, default=0
        Seed; an integer gives the same model anywhere.
    booster_params : dict, optional
        Further parameters of the booster; they win. CatBoost's choice of splits is exact, but for a
        single model of 5000 rows or more, where it is random: ``random_strength=1``, its own default.

    Attributes
    ----------
    family_ : Family
        Distribution fitted.
    models_ : list
        Trained models, one a fold (or one); empty where no feature could be used.
    start_ : ndarray of shape (K,)
        Raw scores of the best constant, in units of the response.
    units_ : Units
        Standardisation of the response.
    n_rounds_ : list of int
        Rounds kept by each model.
    history_ : list of list of float
        Held-out score after each round, of a chain after each member, in units of the response; one
        list a model.
    calibration_ : Recalibrator or None
        Correction learnt from held-out rows.
    selection_ : dict of str to float
        Cross-validated log scores of the families tried, best first (``family="auto"``).
    n_features_in_ : int
        Number of features.
    categorical_features_ : list of int
        Numbers of the categorical columns.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins import DistributionalRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (400, 2))
    >>> y = X[:, 0] + np.exp(X[:, 1]) * rng.normal(size=400)
    >>> model = DistributionalRegressor("normal", n_estimators=100).fit(X, y)
    >>> sd = model.predict_dist([[0.0, -1.0], [0.0, 1.0]]).std()
    >>> bool(sd[0] < sd[1]), model.predict_interval([[0.0, 0.0]], coverage=0.8).shape
    (True, (1, 2))
    """

    def __init__(
        self,
        family: str | Family = "normal",
        *,
        booster: str = "lightgbm",
        step: str | float | None = None,
        n_estimators: int = 500,
        learning_rate: float = 0.05,
        depth: int = 3,
        min_samples_leaf: int | None = None,
        l2: float | None = None,
        early_stopping_rounds: int | str | None = "auto",
        validation_fraction: float | str | None = "auto",
        n_folds: int | str | None = "auto",
        refit: bool = True,
        calibration: str | None = "auto",
        metric: str = "nll",
        schedule: GradientSchedule | None = None,
        mask: RowMask | None = None,
        temperature: float | None = None,
        shrink: float | None = None,
        prior: RandomPrior | str | None = "auto",
        cat_features: Sequence[Any] | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.Generator | np.random.RandomState | None = 0,
        booster_params: dict[str, Any] | None = None,
    ) -> None:
        self.family = family
        self.booster = booster
        self.step = step
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.depth = depth
        self.min_samples_leaf = min_samples_leaf
        self.l2 = l2
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_fraction = validation_fraction
        self.n_folds = n_folds
        self.refit = refit
        self.calibration = calibration
        self.metric = metric
        self.schedule = schedule
        self.mask = mask
        self.temperature = temperature
        self.shrink = shrink
        self.prior = prior
        self.cat_features = cat_features
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.booster_params = booster_params

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
        eval_set: tuple[Any, ...] | list[tuple[Any, ...]] | None = None,
    ) -> Self:
        """Train the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features; NaN stands for missing numbers.
        y : array-like of shape (n_samples,)
            Responses within the family's support; for `IntervalCensored` lower and upper limit of each
            row, as two columns.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, used in the start value, the gradient, the held-out score and the calibration;
            rows of weight 0 are left out.
        offset : array-like of shape (n_samples,), optional
            Known part of the first parameter's raw score, such as the log exposure of counts.
        eval_set : tuple, or list with one, optional
            Held-out ``(X, y)``, ``(X, y, sample_weight)`` or ``(X, y, sample_weight, offset)``; it
            is used instead of `validation_fraction`. A chain, which is read at its cycles' ends, is never
            stopped by it: its history is the held-out score of the mixture of the members so far.

        Returns
        -------
        DistributionalRegressor
            This estimator.
        """
        self._check_settings(eval_set is not None)
        if not isinstance(self.family, str) or self.family != "auto":
            self._check_pairs(get_family(self.family))
        frame, self.categorical_features_ = fit_frame(self, X, self.cat_features)
        rows = check_rows(frame, y, sample_weight, offset, "y", self._read)
        held = self._held(eval_set)
        if rows[2] is not None and (rows[2] == 0).any():
            rows = pick(rows, np.flatnonzero(rows[2] > 0))
        seed = seed_of(self.random_state)
        self.family_ = self._choose_family(rows, seed)
        for part, name in ((rows, "y"), (held, "y of eval_set")):
            if part is not None:
                self.family_.check_support(part[1], name)
        self.units_ = Units.of(self.family_, rows[1], rows[2])
        holding = _holding_out.resolve(self, len(rows[1]), held is not None, self.family_, self._sampling)
        self._train_all(rows, held, holding, seed)
        return self

    def _check_settings(self, has_eval_set: bool) -> None:
        check_option("booster", self.booster, ("lightgbm", "catboost"))
        if self.step is not None:
            step_exponent(self.step)
        check_integer("n_estimators", self.n_estimators, 1)
        check_jobs(self.n_jobs)
        check_real("learning_rate", self.learning_rate, 0.0, 1.0, closed="right")
        check_integer("depth", self.depth, 1)
        if self.min_samples_leaf is not None:
            check_integer("min_samples_leaf", self.min_samples_leaf, 1)
        if self.l2 is not None:
            check_real("l2", self.l2, 0.0)
        check_metric(self.metric)
        if not isinstance(self.booster_params or {}, Mapping):
            raise TypeError(f"booster_params must be a dict or None, got {self.booster_params!r}")
        _holding_out.check(self, has_eval_set)
        self._sampling = chains.check(self)

    def _check_pairs(self, family: Family) -> None:
        """Refuse what censored responses have not."""
        if not family.pairs:
            return
        check_metric(self.metric, family)
        scaled = self.calibration in (None, "auto") or (self.calibration == "scale" and family.locations)
        if not scaled:
            raise ValueError(
                f"calibration must be None, or 'scale' for a family with a location, for {family!r}, whose "
                f"responses may be censored; got {self.calibration!r}"
            )

    def _held(self, eval_set: tuple[Any, ...] | list[tuple[Any, ...]] | None) -> Rows | None:
        if eval_set is None:
            return None
        X, y, weight, offset = held_out(eval_set, 4)
        frame = predict_frame(self, X, self.categorical_features_)
        return check_rows(frame, y, weight, offset, "y of eval_set", self._read)

    @property
    def _read(self) -> Callable[[ArrayLike, str], np.ndarray]:
        """How responses are checked."""
        auto = isinstance(self.family, str) and self.family == "auto"
        return get_family("normal" if auto else self.family).responses
