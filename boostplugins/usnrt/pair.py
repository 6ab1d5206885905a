"""A mean network and a variance network, trained in turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from boostplugins.usnrt.calibration import Correction, correct
from boostplugins.usnrt.kernels import Rows
from boostplugins.usnrt.network import History, Network, NetworkSpec, Training, train_network


@dataclass(frozen=True)
class PairPlan:
    """How a mean and a variance network are made.

    Parameters
    ----------
    hidden : tuple of int
        Hidden units of both.
    rounds : int, default=2
        Turns of mean, then variance.
    beta : float, default=0.0
        0 is the Gaussian likelihood: the mean's errors weigh 1 / variance. 1 gives the mean plain
        squared error; in between errors weigh variance**(beta - 1) (beta-NLL [1]_).
    floor : float, default=1e-8
        Least variance, in units of the standardised target.
    calibration : {None, "scale", "coverage", "shape"}, default=None
        Correction of the errors' distribution from held-out rows; see
        `boostplugins.usnrt.calibration`.

    References
    ----------
    .. [1] Seitzer, Tavakoli, Antic, Martius (2022), On the pitfalls of heteroscedastic uncertainty
       estimation with probabilistic neural networks. ICLR.

    Examples
    --------
    >>> from boostplugins.usnrt.pair import PairPlan
    >>> PairPlan((8, 4)).specs()[1].output
    'softplus'
    """

    hidden: tuple[int, ...]
    rounds: int = 2
    beta: float = 0.0
    floor: float = 1e-8
    calibration: str | None = None

    def specs(self) -> tuple[NetworkSpec, NetworkSpec]:
        """Describe both networks.

        Returns
        -------
        tuple of NetworkSpec
            Mean (ReLU, linear) and variance (tanh, softplus).
        """
        mean = NetworkSpec(self.hidden)
        variance = NetworkSpec(self.hidden, "tanh", "softplus", "variance", self.floor, tilt=self.beta)
        return mean, variance


@dataclass(frozen=True)
class MeanVariance:
    """A trained pair.

    Parameters
    ----------
    mean, variance : Network
        The networks.
    correction : Correction
        What calibration found.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.usnrt.calibration import Correction
    >>> from boostplugins.usnrt.network import Network
    >>> from boostplugins.usnrt.pair import MeanVariance, PairPlan
    >>> mean, variance = (Network(s, 1, np.zeros(4)) for s in PairPlan((1,)).specs())
    >>> pair = MeanVariance(mean, variance, Correction(factor=2.0))
    >>> [round(float(part[0]), 4) for part in pair.predict(np.ones((1, 1)))]
    [0.0, 1.3863]
    """

    mean: Network
    variance: Network
    correction: Correction = field(default_factory=Correction)

    def predict(self, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute means and variances, the latter times the factor of the correction.

        Parameters
        ----------
        inputs : ndarray of shape (n_samples, n_inputs)
            What the networks see.

        Returns
        -------
        tuple of ndarray of shape (n_samples,)
            Means and variances of the standardised target, float64.
        """
        mean = self.mean.predict(inputs).astype(np.float64)
        variance = self.variance.predict(inputs).astype(np.float64)
        return mean, np.maximum(variance, self.variance.spec.floor) * self.correction.factor


@dataclass(frozen=True)
class Sample:
    """Rows of a fit, as networks read them.

    Parameters
    ----------
    inputs : ndarray of shape (n_samples, n_inputs)
        Features.
    target, weight : ndarray of shape (n_samples,)
        Standardised target and weights, in the type of the features.
    """

    inputs: np.ndarray
    target: np.ndarray
    weight: np.ndarray


def train_mean(
    hidden: tuple[int, ...],
    sample: Sample,
    fit_rows: np.ndarray,
    check_rows: np.ndarray,
    training: Training,
    rng: np.random.Generator,
    watch: Callable[[int, float], None] | None = None,
) -> Network:
    """Train one network of the mean by squared error.

    Parameters
    ----------
    hidden : tuple of int
        Hidden units.
    sample : Sample
        Rows.
    fit_rows, check_rows : ndarray of int
        Rows of gradients and of early stopping.
    training : Training
        Epochs, batches, rates.
    rng : Generator
        Start and order.
    watch : callable, optional
        Called with epoch and validation loss; may raise to stop.

    Returns
    -------
    Network
        The network.
    """
    spec = NetworkSpec(hidden)
    rows = Rows(sample.inputs, sample.target, sample.weight)
    start = _start(spec, sample, float(np.mean(sample.target[fit_rows])), rng)
    return train_network(spec, rows, fit_rows, check_rows, training, rng, start, watch)[0]


def train_pair(
    plan: PairPlan,
    sample: Sample,
    fit_rows: np.ndarray,
    check_rows: np.ndarray,
    training: Training,
    rng: np.random.Generator,
    watch: Callable[[str, int, float], None] | None = None,
) -> tuple[MeanVariance, tuple[History, ...]]:
    """Train mean and variance in turns: each with the other one fixed.

    Parameters
    ----------
    plan : PairPlan
        The networks.
    sample : Sample
        Rows.
    fit_rows, check_rows : ndarray of int
        Rows of gradients, and of early stopping and calibration.
    training : Training
        Epochs, batches, rates.
    rng : Generator
        Starts and orders; each network has a generator of its own, so that it does not depend on how
        many epochs the networks before it ran beyond their best.
    watch : callable, optional
        Called with "mean" or "variance", epoch and validation loss; may raise to stop.

    Returns
    -------
    MeanVariance
        The pair.
    tuple of History
        Of mean and variance, round by round.
    """
    mean_spec, variance_spec = plan.specs()
    dtype = sample.inputs.dtype
    used = np.concatenate([fit_rows, check_rows])
    weight, target = sample.weight, np.zeros_like(sample.target)
    mean_start = _start(mean_spec, sample, float(np.mean(sample.target[fit_rows])), rng)
    variance_start: np.ndarray | None = None
    watches = [None if watch is None else partial(watch, name) for name in ("mean", "variance")]
    histories = []
    for _ in range(plan.rounds):
        mean_rng, variance_rng = rng.spawn(2)
        rows = Rows(sample.inputs, sample.target, weight)
        mean, history = train_network(
            mean_spec, rows, fit_rows, check_rows, training, mean_rng, mean_start, watches[0]
        )
        histories.append(history)
        target[used] = (sample.target[used] - mean.predict(sample.inputs[used])) ** 2
        if variance_start is None:
            level = max(float(np.mean(target[fit_rows], dtype=np.float64)), plan.floor)
            variance_start = _start(variance_spec, sample, _softplus_inverse(level), variance_rng)
        rows = Rows(sample.inputs, target, sample.weight)
        variance, history = train_network(
            variance_spec, rows, fit_rows, check_rows, training, variance_rng, variance_start, watches[1]
        )
        histories.append(history)
        mean_start, variance_start = mean.params, variance.params
        factor = np.zeros_like(sample.weight, dtype=np.float64)
        factor[used] = variance.predict(sample.inputs[used]).astype(np.float64) ** (plan.beta - 1.0)
        weight = (sample.weight * (factor / factor[used].mean())).astype(dtype)
    pair = MeanVariance(mean, variance)
    if plan.calibration is not None:
        mu, variances = pair.predict(sample.inputs[check_rows])
        found = correct(plan.calibration, sample.target[check_rows] - mu, variances)
        pair = MeanVariance(mean, variance, found)
    return pair, tuple(histories)


def _start(spec: NetworkSpec, sample: Sample, bias: float, rng: np.random.Generator) -> np.ndarray:
    """Xavier start whose output begins at the right level, which saves epochs."""
    start = spec.start(sample.inputs.shape[1], rng, sample.inputs.dtype)
    start[-1] = bias
    return start


def _softplus_inverse(value: float) -> float:
    return value if value > 30 else float(np.log(np.expm1(max(value, 1e-30))))
