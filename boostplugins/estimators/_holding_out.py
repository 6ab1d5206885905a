"""Which rows a distributional fit holds out, and what for: settings "auto" made definite."""

from __future__ import annotations

from typing import Any, NamedTuple

from boostplugins._validation import check_integer, check_option, check_real
from boostplugins.families import Family

# Fewest rows of which some are held out, and most that are cross-fitted rather than split once.
FEW, MANY = 40, 5000
_FOLDS, _FRACTION, _PATIENCE = 5, 0.2, 30


class HoldingOut(NamedTuple):
    """Rows held out of a fit.

    Attributes
    ----------
    n_folds : int or None
        Models with one fold held out each.
    validation_fraction : float or None
        Share of rows held out of one model.
    patience : int or None
        Rounds without a better held-out score before training stops.
    calibration : str or None
        Recalibration on the held-out rows.
    """

    n_folds: int | None
    validation_fraction: float | None
    patience: int | None
    calibration: str | None


def check(settings: Any, has_eval_set: bool) -> None:
    """Check an estimator's settings before any data are seen.

    Parameters
    ----------
    settings : DistributionalRegressor
        Estimator with ``n_folds``, ``validation_fraction``, ``early_stopping_rounds``, ``calibration``.
    has_eval_set : bool
        Whether the caller gives held-out rows.

    Raises
    ------
    ValueError
        For values out of range and contradictions.
    """
    n_folds, fraction = settings.n_folds, settings.validation_fraction
    if not _open(fraction):
        check_real("validation_fraction", fraction, 0.0, 1.0, closed="neither")
    if not _open(n_folds):
        check_integer("n_folds", n_folds, 2, "use None for a single model")
        if has_eval_set or not _open(fraction):
            raise ValueError("n_folds holds rows out itself; pass no eval_set and no validation_fraction")
    held = has_eval_set or n_folds is not None or fraction is not None
    if not _open(settings.early_stopping_rounds):
        check_integer("early_stopping_rounds", settings.early_stopping_rounds, 1)
    for name in ("early_stopping_rounds", "calibration"):
        if not _open(getattr(settings, name)) and not held:
            raise ValueError(f"{name} needs held-out rows; pass validation_fraction, n_folds or eval_set")
    if settings.calibration is not None:
        check_option("calibration", settings.calibration, ("auto", "scale", "conformal"))


def resolve(settings: Any, n: int, has_eval_set: bool, family: Family, sampling: bool) -> HoldingOut:
    """Make settings definite.

    Parameters
    ----------
    settings : DistributionalRegressor
        Checked estimator.
    n : int
        Training rows.
    has_eval_set : bool
        Whether the caller gives held-out rows.
    family : Family
        Distribution; only locations and scales are recalibrated without being asked.
    sampling : bool
        Whether a chain is trained, which by itself holds out nothing and is never stopped.

    Returns
    -------
    HoldingOut
        Without open settings.

    Raises
    ------
    ValueError
        If classes, which have no order, are to be recalibrated.
    """
    n_folds, fraction = settings.n_folds, settings.validation_fraction
    given = has_eval_set or not _open(n_folds) or not _open(fraction)
    usable = not given and not sampling and n >= FEW
    if _is_auto(n_folds):
        n_folds = _FOLDS if usable and (n < MANY or fraction is None) else None
    if _is_auto(fraction):
        fraction = _FRACTION if usable and n_folds is None else None
    own = n_folds is not None or (fraction is not None and not has_eval_set)
    patience, calibration = settings.early_stopping_rounds, settings.calibration
    if _is_auto(patience):
        patience = _PATIENCE if (own or has_eval_set) and not sampling else None
    if _is_auto(calibration):
        calibration = "scale" if own and family.locations else None
    if calibration is not None and not (own or has_eval_set):
        raise ValueError(
            f"calibration={calibration!r} needs held-out rows, and a chain, or a fit of fewer than {FEW} "
            "rows, holds none out unasked; pass validation_fraction, n_folds or eval_set"
        )
    if calibration is not None and family.classification:
        raise ValueError(f"calibration must be None for the classes of {family!r}, got {calibration!r}")
    return HoldingOut(n_folds, fraction, patience, calibration)


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _open(value: Any) -> bool:
    """Whether nothing was asked for: None or "auto"."""
    return value is None or _is_auto(value)
