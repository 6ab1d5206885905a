"""Small fully connected networks: what they compute, how they are trained, what they hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from boostplugins.usnrt import kernels
from boostplugins.usnrt.kernels import Adam, Layout, Rows, State

PREDICT_BLOCK = 64  # rows a block: full blocks only, so that a row's value does not depend on its place
_HIDDEN = {"relu": kernels.RELU, "tanh": kernels.TANH}
_OUTPUT = {"linear": kernels.LINEAR, "softplus": kernels.SOFTPLUS}
_LOSS = {"squared": kernels.SQUARED, "variance": kernels.GAUSSIAN_VARIANCE}


@dataclass(frozen=True)
class NetworkSpec:
    """What a network computes and by which loss it learns.

    Parameters
    ----------
    hidden : tuple of int
        Units of the hidden layers.
    activation : {"relu", "tanh"}, default="relu"
        Hidden activation.
    output : {"linear", "softplus"}, default="linear"
        Output activation.
    loss : {"squared", "variance"}, default="squared"
        Squared error, or Gaussian likelihood of a variance given squared residuals as target:
        ``log v + r^2 / v``.
    floor : float, default=0.0
        Added to a softplus output.
    keep : float, default=1.0
        Chance that a hidden unit stays in training (ReLU only); 1 means no dropout.
    tilt : float, default=0.0
        Power of the variance by which its own gradients are multiplied (beta-NLL).

    Examples
    --------
    >>> from boostplugins.usnrt.network import NetworkSpec
    >>> NetworkSpec((4, 2)).n_params(3)
    29
    """

    hidden: tuple[int, ...]
    activation: str = "relu"
    output: str = "linear"
    loss: str = "squared"
    floor: float = 0.0
    keep: float = 1.0
    tilt: float = 0.0

    def layout(self, n_inputs: int) -> Layout:
        """Translate for the kernels.

        Parameters
        ----------
        n_inputs : int
            Number of input features.

        Returns
        -------
        Layout
            Sizes and codes.
        """
        sizes = np.array([n_inputs, *self.hidden, 1], dtype=np.int64)
        return Layout(
            sizes,
            _HIDDEN[self.activation],
            _OUTPUT[self.output],
            float(self.floor),
            float(self.keep),
            _LOSS[self.loss],
            float(self.tilt),
        )

    def n_params(self, n_inputs: int) -> int:
        """Count weights and biases.

        Parameters
        ----------
        n_inputs : int
            Number of input features.

        Returns
        -------
        int
            Length of the parameter vector.
        """
        sizes = [n_inputs, *self.hidden, 1]
        return sum((below + 1) * above for below, above in pairwise(sizes))

    def start(self, n_inputs: int, rng: np.random.Generator, dtype: Any) -> np.ndarray:
        """Draw Xavier-normal weights and zero biases.

        Parameters
        ----------
        n_inputs : int
            Number of input features.
        rng : Generator
            Source of randomness.
        dtype : dtype
            float32 or float64.

        Returns
        -------
        ndarray of shape (n_params,)
            Weights of standard deviation sqrt(2 / (n_in + n_out)), layer by layer.
        """
        sizes = [n_inputs, *self.hidden, 1]
        parts = []
        for below, above in pairwise(sizes):
            parts.append(rng.standard_normal(below * above) * np.sqrt(2.0 / (below + above)))
            parts.append(np.zeros(above))
        return np.concatenate(parts).astype(dtype)


@dataclass(frozen=True)
class Training:
    """How a network is trained.

    Parameters
    ----------
    max_epochs : int, default=1000
        Most epochs.
    batch_size : int, default=64
        Rows of a mini-batch.
    learning_rate : float, default=0.01
        Adam's rate.
    patience : int, default=20
        Epochs without a lower validation loss after which training stops.
    drops : int, default=0
        How often, instead of stopping, training goes on from the best weights at a tenth of the rate.
    beta1, beta2, epsilon : float
        Adam's other constants.

    Examples
    --------
    >>> from boostplugins.usnrt.network import Training
    >>> Training(max_epochs=5).learning_rate
    0.01
    """

    max_epochs: int = 1000
    batch_size: int = 64
    learning_rate: float = 0.01
    patience: int = 20
    drops: int = 0
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8


@dataclass(frozen=True)
class Network:
    """A trained network.

    Parameters
    ----------
    spec : NetworkSpec
        What it computes.
    n_inputs : int
        Number of input features.
    params : ndarray of shape (n_params,)
        Weights and biases; see `boostplugins.usnrt.kernels`.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.usnrt.network import Network, NetworkSpec
    >>> Network(NetworkSpec((1,)), 1, np.array([1.0, 0.0, 2.0, 0.5])).predict(np.array([[3.0], [-3.0]]))
    array([6.5, 0.5])
    """

    spec: NetworkSpec
    n_inputs: int
    params: np.ndarray

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Compute outputs.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_inputs)
            Inputs, converted to the type of the parameters.

        Returns
        -------
        ndarray of shape (n_samples,)
            Outputs, in the type of the parameters.
        """
        X = np.ascontiguousarray(X, dtype=self.params.dtype)
        if X.ndim != 2 or X.shape[1] != self.n_inputs:
            raise ValueError(f"X must have shape (n_samples, {self.n_inputs}), got {X.shape}")
        layout = self.spec.layout(self.n_inputs)
        work = np.empty(PREDICT_BLOCK * int(layout.sizes.sum()), dtype=self.params.dtype)
        out = np.empty(len(X), dtype=self.params.dtype)
        kernels.predict_into(layout, self.params, work, X, out)
        return out


def thinned(network: Network, rng: np.random.Generator) -> Network:
    """Draw a network with hidden units dropped as in training: one draw of Monte Carlo dropout.

    The draw is a function: all rows meet the same units, so a row's value does not depend on its
    neighbours.

    Parameters
    ----------
    network : Network
        Network trained with ``spec.keep`` < 1.
    rng : Generator
        Source of randomness.

    Returns
    -------
    Network
        The network with the outgoing weights of dropped units 0 and the others' divided by keep.
    """
    sizes = [network.n_inputs, *network.spec.hidden, 1]
    params = network.params.copy()
    at = 0
    for layer, (below, above) in enumerate(pairwise(sizes)):
        if layer:
            stays = (rng.random(below) < network.spec.keep) / network.spec.keep
            params[at : at + below * above] *= np.repeat(stays, above).astype(params.dtype)
        at += (below + 1) * above
    return Network(network.spec, network.n_inputs, params)


@dataclass(frozen=True)
class History:
    """How a training went.

    Parameters
    ----------
    loss : tuple of float
        Validation loss of the start and after each epoch.
    best_epoch : int
        Epoch whose weights were kept; 0 for the start.
    """

    loss: tuple[float, ...]
    best_epoch: int

    @property
    def best_loss(self) -> float:
        """Validation loss of the kept weights."""
        return self.loss[self.best_epoch]


def train_network(
    spec: NetworkSpec,
    rows: Rows,
    fit_rows: np.ndarray,
    check_rows: np.ndarray,
    training: Training,
    rng: np.random.Generator,
    start: np.ndarray | None = None,
    watch: Callable[[int, float], None] | None = None,
) -> tuple[Network, History]:
    """Train one network by mini-batch Adam with early stopping; the best weights are kept.

    Parameters
    ----------
    spec : NetworkSpec
        What it computes.
    rows : Rows
        Features, targets and weights, C-contiguous and of one type, float32 or float64.
    fit_rows, check_rows : ndarray of int
        Rows that gradients and that early stopping use.
    training : Training
        Epochs, batches, rates.
    rng : Generator
        Start and order of rows; the only randomness, so a seed fixes every bit.
    start : ndarray of shape (n_params,), optional
        Parameters to go on from; by default a Xavier start.
    watch : callable, optional
        Called with the epochs done and the validation loss, at the start and after each epoch; may
        raise to stop.

    Returns
    -------
    Network
        With the weights of least validation loss.
    History
        Validation losses.
    """
    dtype = rows.X.dtype
    n_inputs = rows.X.shape[1]
    params = spec.start(n_inputs, rng, dtype) if start is None else start.astype(dtype)
    layout = spec.layout(n_inputs)
    batch = min(training.batch_size, len(fit_rows))
    state = fresh_state(params, layout, batch)
    check = Rows(np.ascontiguousarray(rows.X[check_rows]), rows.target[check_rows], rows.weight[check_rows])
    if not check.weight.any():  # rows of weight 0 cannot judge; count them equally
        check = check._replace(weight=np.ones_like(check.weight))
    out = np.empty(len(check_rows), dtype=dtype)
    work = np.empty(PREDICT_BLOCK * int(layout.sizes.sum()), dtype=dtype)
    seed = int(rng.integers(1 << 62)) if spec.keep < 1.0 else 0

    def examine(epoch: int) -> float:
        kernels.predict_into(layout, state.params, work, check.X, out)
        loss = float(kernels.mean_loss(layout, out, check))
        if watch is not None:
            watch(epoch, loss)
        return loss

    losses = [examine(0)]
    best, best_epoch, since, drops = state.params.copy(), 0, 0, training.drops
    rate, taken = training.learning_rate, 0
    for epoch in range(1, training.max_epochs + 1):
        adam = Adam(rate, training.beta1, training.beta2, training.epsilon, taken)
        order = rng.permutation(fit_rows)
        taken = kernels.train_epoch(layout, state, rows, order, batch, adam, seed)
        losses.append(examine(epoch))
        since += 1
        if losses[-1] < losses[best_epoch]:
            best[:] = state.params
            best_epoch, since = epoch, 0
        if since >= training.patience or not np.isfinite(losses[-1]):
            if drops == 0:
                break
            drops, since, rate, taken = drops - 1, 0, rate / 10.0, 0
            state = fresh_state(best.copy(), layout, batch)
    return Network(spec, n_inputs, best), History(tuple(losses), best_epoch)


def fresh_state(params: np.ndarray, layout: Layout, batch_size: int) -> State:
    """Make the state of a training that starts now.

    Parameters
    ----------
    params : ndarray of shape (n_params,)
        Parameters, changed in place by the training.
    layout : Layout
        The network.
    batch_size : int
        Rows of a mini-batch.

    Returns
    -------
    State
        With zero moments.
    """
    size = batch_size * int(layout.sizes.sum())
    dtype = params.dtype
    first, second, grad = (np.zeros(len(params), dtype=dtype) for _ in range(3))
    return State(params, grad, first, second, np.zeros(size, dtype=dtype), np.zeros(size, dtype=dtype))
