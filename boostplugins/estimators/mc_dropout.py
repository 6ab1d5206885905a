"""MCDropoutRegressor: one network whose dropped units at prediction stand for a posterior."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from boostplugins._validation import check_integer, check_option, check_real
from boostplugins.estimators._networks import NetworkRegressor, hidden_units
from boostplugins.estimators._progress import shown
from boostplugins.estimators._refitting import all_or_nothing
from boostplugins.predictive import Predictive
from boostplugins.usnrt.kernels import Rows
from boostplugins.usnrt.network import Network, NetworkSpec, thinned, train_network
from boostplugins.usnrt.saving import Arrays, pack_history, unpack_history
from boostplugins.usnrt.workers import Progress, Workers, one_blas_thread

_TRAIN_STREAM, _DRAW_STREAM = 3, 4  # apart from the streams of trees
# Least standard deviation, in units of the target's, of a single Normal.
LEAST_NOISE = 1e-4
# Least share of the held-out squared error that is noise: draws that spread more than they err would
# otherwise leave a mixture of spikes.
LEAST_NOISE_SHARE = 0.1


class MCDropoutRegressor(NetworkRegressor):
    """A network of the mean with dropout in training and in prediction [1]_, as a baseline.

    Each draw drops hidden units for all rows alike, so it is a function, and the prediction of a
    row does not depend on its neighbours.

    Parameters
    ----------
    n_draws : int, default=100
        Draws in prediction.
    hidden : sequence of int, optional
        Hidden units; by default (8 d, 16 d, 4 d) for d features.
    dropout : float, default=0.5
        Chance that a hidden unit is dropped.
    noise : {"held-out", None}, default="held-out"
        "held-out": each draw is a Normal whose variance is what the draws' spread leaves of the
        held-out squared error, a tenth of it at least. None: no noise, one Normal with mean and
        variance of the draws, as often reported; far too narrow where the response is noisy.
    max_epochs : int, default=1000
        Most epochs.
    batch_size : int, default=64
        Rows of a mini-batch.
    learning_rate : float, default=0.01
        Adam's rate.
    patience : int, default=20
        Epochs without a lower validation loss after which training stops.
    learning_rate_drops : int, default=1
        How often, once stalled, training goes on from the best weights at a tenth of the rate.
    validation_fraction : float, default=0.2
        Share of rows held out for early stopping and the noise.
    cat_features : sequence of int or str, optional
        Categorical columns besides those whose type says so.
    dtype : {"float32", "float64"}, default="float32"
        Arithmetic of the network.
    n_jobs : int, optional
        Threads over draws; never changes a bit of the result.
    verbose : bool or int, default=False
        Whether to show progress.
    random_state : int, Generator, RandomState or None, default=0
        Seed of start, orders, validation rows and dropped units.

    Attributes
    ----------
    network_ : Network
        The network.
    draws_ : list of Network
        Networks with units dropped.
    noise_variance_ : float
        Variance of the noise, in squared units of the target.
    history_ : History
        Validation losses.
    n_iter_ : int
        Epochs run.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where X had names.

    References
    ----------
    .. [1] Gal, Ghahramani (2016), Dropout as a Bayesian approximation. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins import MCDropoutRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(500, 1))
    >>> y = X[:, 0] + 0.1 * rng.normal(size=500)
    >>> model = MCDropoutRegressor(hidden=(32,), dropout=0.1, max_epochs=20).fit(X, y)
    >>> u = model.predict_uncertainty([[0.0], [5.0]])
    >>> bool(u.knowledge[1] > u.knowledge[0])
    True
    """

    _fitted = "draws_"

    def __init__(
        self,
        n_draws: int = 100,
        *,
        hidden: Sequence[int] | None = None,
        dropout: float = 0.5,
        noise: str | None = "held-out",
        max_epochs: int = 1000,
        batch_size: int = 64,
        learning_rate: float = 0.01,
        patience: int = 20,
        learning_rate_drops: int = 1,
        validation_fraction: float = 0.2,
        cat_features: Sequence[Any] | None = None,
        dtype: str = "float32",
        n_jobs: int | None = None,
        verbose: bool | int = False,
        random_state: int | np.random.Generator | np.random.RandomState | None = 0,
    ) -> None:
        self.n_draws = n_draws
        self.hidden = hidden
        self.dropout = dropout
        self.noise = noise
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.patience = patience
        self.learning_rate_drops = learning_rate_drops
        self.validation_fraction = validation_fraction
        self.cat_features = cat_features
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        callback: Callable[[Progress], object] | None = None,
    ) -> Self:
        """Train the network and draw its dropped units.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Features; NaN for missing.
        y : array-like of shape (n_samples,)
            Responses.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows in the loss.
        callback : callable, optional
            Called with a `boostplugins.usnrt.workers.Progress` (member, node, network, epoch, loss)
            at the start and after each epoch; what it raises ends the fit, as a tuner that prunes wants.

        Returns
        -------
        self
            The fitted estimator.
        """
        n_draws = check_integer("n_draws", self.n_draws, 1)
        dropout = check_real("dropout", self.dropout, 0.0, 1.0, closed="left")
        check_option("noise", self.noise, ("held-out", None))
        problem = self._prepare(X, y, sample_weight, 1)
        spec = NetworkSpec(
            hidden_units("hidden", self.hidden, (8, 16, 4), self.n_features_in_), keep=1.0 - dropout
        )
        sample, fit_rows, check_rows = problem.part(0, np.arange(len(problem.table)))
        workers = Workers(None, callback)
        watch = partial(workers.watch, 0, 0, "mean")

        def train() -> tuple[Network, Any]:
            rng = problem.rng(0, 0, _TRAIN_STREAM)
            rows = Rows(*vars(sample).values())
            return train_network(spec, rows, fit_rows, check_rows, problem.training, rng, None, watch)

        with shown("boostplugins.usnrt", self.verbose):
            [(self.network_, self.history_)] = workers.run(train, [()])
        self.n_iter_ = len(self.history_.loss) - 1
        rng = problem.rng(0, 0, _DRAW_STREAM)
        self.draws_ = [thinned(self.network_, rng) for _ in range(n_draws)]
        held_out = self._draw(sample.inputs[check_rows])
        error = np.mean((sample.target[check_rows] - held_out.mean(axis=1)) ** 2)
        spare = max(float(error - held_out.var(axis=1).mean()), LEAST_NOISE_SHARE * error, LEAST_NOISE**2)
        self.noise_variance_ = spare * self._unit**2 if self.noise == "held-out" else 0.0
        return self

    def _draw(self, inputs: np.ndarray) -> np.ndarray:
        with one_blas_thread():
            values = Workers(self.n_jobs).run(Network.predict, [(draw, inputs) for draw in self.draws_])
        return np.stack(values, axis=1).astype(np.float64)

    def predict_dist(self, X: Any) -> Predictive:
        """Predict the distribution of the response.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        Predictive
            A mixture of one Normal a draw, or a single Normal with ``noise=None``.
        """
        _, inputs = self._read(X)
        mean = self._center + self._unit * self._draw(inputs)
        if self.noise_variance_ > 0:
            spread = np.full_like(mean, np.sqrt(self.noise_variance_))
            return Predictive("normal", np.stack([mean, spread], axis=2))
        spread = np.maximum(mean.std(axis=1), LEAST_NOISE * self._unit)
        return Predictive("normal", np.stack([mean.mean(axis=1), spread], axis=1))

    def _pack(self) -> tuple[dict[str, Any], Arrays]:
        state = {
            "hidden": list(self.network_.spec.hidden),
            "keep": self.network_.spec.keep,
            "noise": self.noise_variance_,
            "history": pack_history([(self.history_,)]),
        }
        draws = np.stack([draw.params for draw in self.draws_])
        return state, {"network": self.network_.params, "draws": draws}

    def _unpack(self, state: dict[str, Any], arrays: Arrays) -> None:
        spec = NetworkSpec(tuple(int(units) for units in state["hidden"]), keep=float(state["keep"]))
        n_inputs = self._encoder.n_inputs
        for params in (arrays["network"], *arrays["draws"]):
            if params.shape != (spec.n_params(n_inputs),):
                raise ValueError(f"parameters of shape {params.shape} do not fit the network")
        self.network_ = Network(spec, n_inputs, arrays["network"])
        self.draws_ = [Network(spec, n_inputs, params) for params in arrays["draws"]]
        self.noise_variance_ = float(state["noise"])
        [(self.history_,)] = unpack_history(state["history"])
        self.n_iter_ = len(self.history_.loss) - 1
