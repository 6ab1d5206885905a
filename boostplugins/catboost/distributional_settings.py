"""CatBoost settings under which parameters can take turns, tree by tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from boostplugins.catboost.distributional_state import Score
from boostplugins.catboost.training import _SYNONYMS

if TYPE_CHECKING:
    from boostplugins.catboost.distributional import Distributional

# What the objective needs in order to know every row's raw scores without asking the model.
_NEEDED: dict[str, Any] = {
    "boosting_type": "Plain",
    "leaf_estimation_iterations": 1,
    "leaf_estimation_backtracking": "No",
    "model_shrink_rate": 0,
    "langevin": False,
    "posterior_sampling": False,
}
# At 0 of these CatBoost does not raise but ends the process.
_DEADLY = ("thread_count", "min_data_in_leaf", "min_child_samples", "max_leaves", "num_leaves")


def check_settings(params: Mapping[str, Any], loss: Distributional) -> None:
    """Refuse settings that end the process, or train another model than the objective believes.

    Parameters
    ----------
    params : mapping
        CatBoost's parameters, as far as they are set.
    loss : Distributional
        Objective of the fit.

    Raises
    ------
    ValueError
        Naming the setting, its rule and the value found.
    """
    for name in _DEADLY:
        if params.get(name) == 0:
            raise ValueError(f"{name} must not be 0, got 0: CatBoost would end the process")
    for name, needed in _NEEDED.items():
        found = params.get(name)
        if found is not None and found != needed:
            raise ValueError(
                f"{name} must be {needed!r}, got {found!r}: the objective counts on every tree being added "
                "as it was grown, once; loss.catboost_params() has what it needs"
            )
    for name in ("loss_function", "objective"):
        if params.get(name, loss) is not loss:
            raise ValueError(f"{name} must be the distributional objective itself, got {params[name]!r}")
    metric = params.get("eval_metric")
    if metric is not None and not isinstance(metric, Score):
        raise ValueError(
            f"eval_metric must be left as it is, got {metric!r}: CatBoost's own metrics see numbers of rows "
            "for responses; choose metric='nll' or 'crps'"
        )


def merged(settings: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Put a user's parameters in place of others, under whichever of their names.

    Parameters
    ----------
    settings : mapping
        Parameters as they would be.
    given : mapping
        Those that win.

    Returns
    -------
    dict
        One value of each.
    """
    replaced = {name for group in _SYNONYMS if group & given.keys() for name in group}
    return {name: value for name, value in settings.items() if name not in replaced} | dict(given)
