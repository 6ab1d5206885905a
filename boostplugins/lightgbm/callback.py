"""The chain's clock: makes every iteration ready before LightGBM asks for its gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from lightgbm import Booster

from boostplugins.lightgbm.sessions import sessions
from boostplugins.lightgbm.settings import check_leaves, find
from boostplugins.lightgbm.state import TrainingState

if TYPE_CHECKING:
    from boostplugins.lightgbm.chain import CyclicalSGLB
    from boostplugins.lightgbm.resuming import Resumed


class ChainCallback:
    """Clock of a chain, for ``callbacks=[...]`` of ``lgb.train``, ``lgb.cv`` or ``fit``.

    It holds no state: each fit has its own, so one object may serve many fits, also at the same time.

    Parameters
    ----------
    chain : CyclicalSGLB
        The chain whose fits this clock drives.
    """

    before_iteration = True

    def __init__(self, chain: CyclicalSGLB) -> None:
        self.chain = chain
        self.order = 1000  # after every callback that resets parameters
        self.resumed: Resumed | None = None

    def __call__(self, env: Any) -> None:
        """Make an iteration ready.

        Parameters
        ----------
        env : CallbackEnv
            LightGBM's environment.
        """
        boosters = env.model.boosters if hasattr(env.model, "boosters") else [env.model]
        if env.iteration == env.begin_iteration:
            sessions.forget_finished()
        for booster in boosters:
            state = sessions.states.get(booster)
            if state is None:
                state = self._begin(booster, env)
            rate = float(find(env.params, "learning_rate"))
            if rate != state.learning_rate:
                raise ValueError(
                    f"learning_rate must stay as it is, {state.learning_rate:g}, got {rate:g} in iteration "
                    f"{env.iteration}: the noise of a chain goes by it; drop reset_parameter"
                )
            check_leaves(env.params, state.categories)
            state.arm(state.begin + state.done + env.iteration - env.begin_iteration)
            booster.update = _Update(booster, state)

    def state_of(self, booster: Booster) -> TrainingState:
        """Find the state of a fit in this thread.

        Parameters
        ----------
        booster : Booster
            Booster of the fit.

        Returns
        -------
        TrainingState
            Its state.
        """
        return sessions.states[booster]

    def _begin(self, booster: Booster, env: Any) -> TrainingState:
        try:
            steps = env.end_iteration - env.begin_iteration
            state = TrainingState(self.chain, booster, env.params, steps, self.resumed)
        except Exception:
            if booster._network:
                booster.free_network()  # or the other machines would wait for this one
            raise
        sessions.states[booster] = state
        return state


class _Update:
    """Stands in for ``booster.update`` once, and finishes the iteration after it."""

    def __init__(self, booster: Booster, state: TrainingState) -> None:
        self._booster = booster
        self._state = state

    def __call__(self, train_set: Any = None, fobj: Any = None) -> bool:
        booster, state = self._booster, self._state
        vars(booster).pop("update", None)
        # The scikit-learn interface wraps the objective.
        objective = getattr(fobj, "func", fobj)
        if objective != state.chain:
            state.armed = False
            raise ValueError(
                f"objective must be the chain whose clock is among the callbacks, got {objective!r}; train "
                'with {"objective": chain} and callbacks=[chain.callback()]'
            )
        before = booster.current_iteration()
        try:
            stopped = booster.update(train_set=train_set, fobj=fobj) if state.splittable else self._constant()
        finally:
            state.armed = False
        state.after_update(booster, booster.current_iteration() > before)
        return stopped

    def _constant(self) -> bool:
        """Make the one tree of a model without a feature to split; LightGBM's own update would fail."""
        if self._booster.current_iteration() == 0:
            shape = (self._state.n_rows, self._state.loss.n_outputs)
            flat, ones = np.zeros(shape, np.float32, order="F"), np.ones(shape, np.float32, order="F")
            if shape[1] == 1:
                flat, ones = flat[:, 0], ones[:, 0]
            self._booster._Booster__boost(grad=flat, hess=ones)
        return True
