"""Gradient schedules: how much the gradient counts at each iteration of a chain."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, is_dataclass
from typing import Any, ClassVar

import numpy as np

from boostplugins._kinds import find_kind, plain_settings
from boostplugins._validation import check_integer, check_real

_ENDLESS = 10**9  # an iteration that no run reaches: a schedule still in cycle 0 there has no cycles

SCHEDULE_METHODS = ("scale", "exploring", "cycle", "member_ends")  # what a chain calls


class GradientSchedule(ABC):
    """What a chain asks of a schedule: pure functions of the iteration.

    A frozen data class that inherits it, gives itself a `kind` and says its `scale` is a schedule: chains
    of both boosters take it, and stored models are read by its kind wherever the class is defined.

    Attributes
    ----------
    kind : str
        Name by which stored models know the class.
    """

    kind: ClassVar[str] = ""

    @abstractmethod
    def scale(self, iteration: int) -> float:
        """Give the gradient scale alpha_t.

        Parameters
        ----------
        iteration : int
            Iteration t, from 0.

        Returns
        -------
        float
            Scale > 0; 1 samples at the chain's own temperature.
        """

    def exploring(self, iteration: int) -> bool:
        """Tell whether an iteration belongs to the exploration stage of its cycle, where masks hold.

        Parameters
        ----------
        iteration : int
            Iteration t, from 0.

        Returns
        -------
        bool
            False unless a schedule says otherwise: every iteration samples.
        """
        return False

    def cycle(self, iteration: int) -> int:
        """Number the cycle of an iteration.

        Parameters
        ----------
        iteration : int
            Iteration t, from 0.

        Returns
        -------
        int
            0 unless a schedule says otherwise: one endless cycle.
        """
        return 0

    def member_ends(self, n_iterations: int, n_members: int | None = None) -> np.ndarray:
        """Say after how many iterations members are read.

        Parameters
        ----------
        n_iterations : int
            Iterations of the run.
        n_members : int, optional
            Members wanted; the last so many cycles are kept. Default: all of them. Of a schedule without
            cycles: evenly spaced states of the second half, 10 by default, fewer where that is shorter.

        Returns
        -------
        ndarray of shape (n_members,)
            Increasing iteration counts; empty where there are cycles and none was finished.
        """
        if n_members is not None:
            check_integer("n_members", n_members, 1)
        cycles = np.array([self.cycle(t) for t in range(n_iterations + 1)])
        ends = np.flatnonzero(np.diff(cycles)) + 1
        if not len(ends) and self.cycle(_ENDLESS) == 0:
            n_members = 10 if n_members is None else n_members
            period = max(n_iterations // (2 * n_members), 1)
            count = min(n_members, n_iterations - n_iterations // 2)
            return n_iterations - period * np.arange(count - 1, -1, -1)
        return ends if n_members is None else ends[max(len(ends) - n_members, 0) :]

    def to_dict(self) -> dict[str, Any]:
        """Describe the schedule.

        Returns
        -------
        dict
            JSON-ready; `schedule_from_dict` reads it.

        Raises
        ------
        TypeError
            For a class that gives itself no `kind`, or is no data class.
        ValueError
            For a kind that another class has.
        """
        kind = type(self)
        if not vars(kind).get("kind") or not is_dataclass(self):
            raise TypeError(
                f"{kind.__name__} must be a data class with a `kind` of its own, by which models are read"
            )
        find_kind(GradientSchedule, "kind", self.kind, "schedule kind")
        return {"kind": self.kind, **plain_settings(self)}


def scale_of(schedule: GradientSchedule, iteration: int) -> float:
    """Ask a schedule for its scale, and check it.

    Parameters
    ----------
    schedule : GradientSchedule
        A schedule, of any make.
    iteration : int
        Iteration t, from 0.

    Returns
    -------
    float
        Scale.

    Raises
    ------
    ValueError
        For a scale that is negative or not finite.
    """
    scale = float(schedule.scale(iteration))
    if not 0.0 <= scale < math.inf:
        raise ValueError(
            f"scale of the schedule must be a finite number >= 0, got {scale} in iteration {iteration} from "
            f"{schedule!r}"
        )
    return scale


@dataclass(frozen=True)
class Constant(GradientSchedule):
    """The null schedule: gradient scale 1, one endless cycle, always sampling.

    Members are read at evenly spaced states of the second half of the run.

    Examples
    --------
    >>> from boostplugins import Constant
    >>> Constant().scale(17)
    1.0
    >>> Constant().member_ends(100, n_members=5)
    array([ 60,  70,  80,  90, 100])
    """

    kind = "constant"

    def scale(self, iteration: int) -> float:
        """Give the gradient scale.

        Parameters
        ----------
        iteration : int
            Iteration, from 0.

        Returns
        -------
        float
            Always 1.
        """
        return 1.0


@dataclass(frozen=True)
class CosineCycle(GradientSchedule):
    r"""Cyclical cosine schedule of the gradient scale.

    .. math:: \alpha_t = \max\left(\tfrac{\alpha_{max}}{2}
              \left[\cos\tfrac{\pi\,(t \bmod C)}{C} + 1\right],\ \alpha_{min}\right)

    A cycle starts with large gradients, which carry the chain out of its mode, and ends with
    ordinary ones, which sample around the next; one member is read at each cycle's end.

    Parameters
    ----------
    length : int, default=200
        Iterations C of a cycle, >= 1.
    max_scale : float, default=10.0
        Scale at the start of a cycle, > 0.
    min_scale : float, default=1.0
        Floor of the scale, in (0, max_scale]; 1 samples at the chain's own temperature.
    exploration : float, default=0.8
        Share of each cycle that explores, in [0, 1]: iterations with (t mod C) / C below it.

    References
    ----------
    Cyclical SGLB: gradient-scale form of the cyclical step size of Zhang et al. (2020),
    "Cyclical stochastic gradient MCMC for Bayesian deep learning".

    Examples
    --------
    >>> from boostplugins import CosineCycle
    >>> cycle = CosineCycle(length=100, max_scale=10.0, min_scale=1.0, exploration=0.8)
    >>> cycle.scale(0), round(cycle.scale(50), 6), cycle.scale(99)
    (10.0, 5.0, 1.0)
    >>> cycle.exploring(79), cycle.exploring(80), cycle.cycle(250)
    (True, False, 2)
    >>> cycle.member_ends(350)
    array([100, 200, 300])
    """

    kind = "cosine"

    length: int = 200
    max_scale: float = 10.0
    min_scale: float = 1.0
    exploration: float = 0.8

    def __post_init__(self) -> None:
        check_integer("length", self.length, 1, "use Constant() for no cycles")
        check_real("max_scale", self.max_scale, 0.0, closed="neither")
        check_real("min_scale", self.min_scale, 0.0, self.max_scale, closed="right")
        check_real("exploration", self.exploration, 0.0, 1.0)

    def scale(self, iteration: int) -> float:
        """Give the gradient scale alpha_t.

        Parameters
        ----------
        iteration : int
            Iteration t, from 0.

        Returns
        -------
        float
            Scale in [min_scale, max_scale].
        """
        phase = math.pi * (iteration % self.length) / self.length
        return max(self.max_scale / 2.0 * (math.cos(phase) + 1.0), float(self.min_scale))

    def exploring(self, iteration: int) -> bool:
        """Tell whether an iteration belongs to the exploration stage.

        Parameters
        ----------
        iteration : int
            Iteration t, from 0.

        Returns
        -------
        bool
            True while (t mod C) / C < exploration.
        """
        return (iteration % self.length) / self.length < self.exploration

    def cycle(self, iteration: int) -> int:
        """Number the cycle of an iteration.

        Parameters
        ----------
        iteration : int
            Iteration t, from 0.

        Returns
        -------
        int
            t // C.
        """
        return iteration // self.length

    def member_ends(self, n_iterations: int, n_members: int | None = None) -> np.ndarray:
        """Say after how many iterations members are read: at each full cycle's end.

        Parameters
        ----------
        n_iterations : int
            Iterations of the run.
        n_members : int, optional
            Members wanted; the last so many cycles are kept. Default: all.

        Returns
        -------
        ndarray of shape (n_members,)
            Increasing iteration counts; empty where no cycle was finished.
        """
        ends = np.arange(1, n_iterations // self.length + 1) * self.length
        if n_members is not None:
            ends = ends[max(len(ends) - check_integer("n_members", n_members, 1), 0) :]
        return ends


def schedule_from_dict(description: dict[str, Any]) -> GradientSchedule:
    """Make a schedule from its description.

    Parameters
    ----------
    description : dict
        What ``to_dict`` gave.

    Returns
    -------
    GradientSchedule
        An equal schedule.

    Raises
    ------
    ValueError
        For a kind that no class has, or options that are not its own.

    Examples
    --------
    >>> from boostplugins.schedules import CosineCycle, schedule_from_dict
    >>> schedule_from_dict(CosineCycle(length=5).to_dict()) == CosineCycle(length=5)
    True
    """
    options = dict(description)
    kind = find_kind(GradientSchedule, "kind", options.pop("kind", None), "schedule kind")
    try:
        return kind(**options)
    except TypeError as error:
        raise ValueError(f"schedule description {description!r} does not fit: {error}") from None
