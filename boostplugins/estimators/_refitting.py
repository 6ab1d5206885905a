"""A fit that breaks off changes nothing: an estimator is as it was before."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

_Fit = TypeVar("_Fit", bound=Callable[..., Any])


def all_or_nothing(fit: _Fit) -> _Fit:
    """Decorate a `fit` so that an earlier fit survives refused data, errors and interruptions.

    Otherwise an old model could meet new scales or names of columns, and predict nonsense. Chains of
    Bayesian trees that have draws to show (a new ``posterior_``) keep these when they are interrupted, or
    when warnings are errors.

    Parameters
    ----------
    fit : callable
        Method `fit` of an estimator whose fitted parts are never changed in place.

    Returns
    -------
    callable
        The same, all or nothing.
    """

    @functools.wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException as error:
            drawn = vars(self).get("posterior_") is not before.get("posterior_")
            if not (drawn and isinstance(error, (KeyboardInterrupt, Warning))):
                vars(self).clear()
                vars(self).update(before)
            raise

    return cast(_Fit, guarded)
