"""Fitting a soft tree model: units of the response, start, smoothing, growth, the split of effects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from boostplugins.families import Family
from boostplugins.soft_trees.bounds import bounded, limits_of_growth, spread_limits
from boostplugins.soft_trees.criteria import DF_ROWS, curvature, information, jacobian
from boostplugins.soft_trees.encoding import Encoder
from boostplugins.soft_trees.growth import Grown, Growth, grow
from boostplugins.soft_trees.model import SoftTreeModel, make_block
from boostplugins.soft_trees.objective import Block, Objective, Penalty, Predictor
from boostplugins.soft_trees.refine import solve_positive
from boostplugins.soft_trees.smoothing import choose_smoothing
from boostplugins.soft_trees.structured import Term
from boostplugins.soft_trees.studentize import refit_spread
from boostplugins.soft_trees.ties import find_ties
from boostplugins.soft_trees.tree import SoftTree
from boostplugins.soft_trees.units import response_units

# The decreasing path that ridge="auto" walks.
RIDGE_PATH = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
# Models of the path without a better score before it ends: the steady state of the paper's rule. With few
# rows one is not enough: greedy growth now and then sticks at one ridge and not at the next.
_WAIT, _WAIT_OF_FEW, _FEW = 1, 2, 2000
# Node coefficients of later parameters (deviations, shapes: log units, of which 1 is much) are penalised
# this much more than those of the first, which come in units of the response.
_FIRMNESS = 30.0


@dataclass(frozen=True)
class Settings:
    """How a model is fitted.

    Parameters
    ----------
    ridge : float or "auto"
        Penalty of gate weights; "auto" walks down `RIDGE_PATH` by the criterion.
    node_ridge : float
        Penalty of node coefficients.
    inner : bool
        AdaSoRT (True) or SoRT (False).
    growth : Growth
        How trees grow.
    features : tuple of list of int, optional
        Features that each parameter's gates see; all by default.
    terms : tuple of tuple of Term, optional
        Structured effects of each parameter.
    studentize : bool
        Whether parameters after the first are refitted to studentised residuals.

    Examples
    --------
    >>> from boostplugins.soft_trees.fitting import Settings
    >>> Settings(ridge=1.0).inner
    True
    """

    ridge: float | str = "auto"
    node_ridge: float = 0.03
    inner: bool = True
    growth: Growth = field(default_factory=Growth)
    features: tuple[list[int], ...] | None = None
    terms: tuple[tuple[Term, ...], ...] | None = None
    studentize: bool = True


def fit_model(
    family: Family,
    X: Any,
    y: np.ndarray,
    weight: np.ndarray | None,
    settings: Settings,
    encoder: Encoder | None = None,
    report: Callable[[str], None] | None = None,
) -> SoftTreeModel:
    """Fit a soft tree to each parameter of a family.

    Parameters
    ----------
    family : Family
        Distribution of the response.
    X : ndarray or DataFrame of shape (n_samples, n_features)
        Features.
    y : ndarray of shape (n_samples,)
        Responses within the support.
    weight : ndarray of shape (n_samples,) or None
        Weights, counted as repeated rows.
    settings : Settings
        How to fit.
    encoder : Encoder, optional
        Made from `X` if not given.
    report : callable, optional
        Called with a line of text after each step.

    Returns
    -------
    SoftTreeModel
        The model of the best criterion along the growth (and the path).

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.families import Normal
    >>> from boostplugins.soft_trees.fitting import Settings, fit_model
    >>> X = np.linspace(-1.0, 1.0, 100)[:, None]
    >>> y = np.sign(X[:, 0]) + 0.1 * np.sin(40.0 * X[:, 0])
    >>> fit_model(Normal(), X, y, None, Settings(ridge=0.01)).predictors[0].tree.n_leaves
    2
    """
    weight = np.ones(len(y)) if weight is None else weight
    encoder = Encoder.fit(X, [], weight) if encoder is None else encoder
    count = family.n_params
    columns = tuple(
        encoder.columns_of(features)
        for features in settings.features or [list(range(encoder.n_features))] * count
    )
    terms = settings.terms or ((),) * count
    x = encoder.transform(X)
    blocks = [make_block(np.ascontiguousarray(x[:, c]), t, X) for c, t in zip(columns, terms)]
    if not family.classification:
        blocks[1:] = [replace(block, firmness=_FIRMNESS) for block in blocks[1:]]
    units = response_units(family, y, weight)
    response = (y - units.shift) / units.scale
    with threadpool_limits(1, user_api="blas"):
        grown, objective = _fit(family, response, weight, blocks, terms, settings, report)
        grown = _refit(objective, grown, settings)
        shift, errors = _split_effects(objective, grown.predictors, _shared_columns(encoder, columns, terms))
    if not settings.inner:
        grown = replace(grown, predictors=[Predictor(p.gamma, p.tree.push_down()) for p in grown.predictors])
    change = float(weight.sum()) * units.log_scale(family)
    floor, ceiling = spread_limits(family, y, weight)
    folded = [units.fold(p, k) for k, p in enumerate(grown.predictors)]
    predictors = tuple(
        bounded(p, block, k in family.locations, k in family.scales and k > 0, *map(float, (low, high)))
        for k, (p, block, low, high) in enumerate(zip(folded, blocks, floor, ceiling))
    )
    raw = np.stack([p.value(block) for p, block in zip(predictors, blocks)], axis=1)
    fit = replace(objective, y=y, limits=None).log_likelihood(raw)
    lost = grown.log_likelihood - change - fit  # to the bounds
    figures = {
        "ridge": objective.penalty.gates,
        "log_likelihood": fit,
        "penalised_log_likelihood": grown.penalised - change - lost,
        "df": grown.df,
        "criterion": grown.criterion + 2.0 * (change + lost),
    }
    path = grown.path.copy()
    path[:, 1] -= change
    path[:, 3] += 2.0 * change
    return SoftTreeModel(
        family,
        encoder,
        columns,
        terms,
        predictors,
        tuple(units.factor[k] * a for k, a in enumerate(shift)),
        tuple(units.factor[k] * e for k, e in enumerate(errors)),
        figures,
        path,
        find_ties([p.value(b) for p, b in zip(folded, blocks)], floor, family.init(y, weight), y),
    )


def path_patience(n: int) -> int:
    """Models of the ridge path without a better score before it ends.

    Parameters
    ----------
    n : int
        Rows.

    Returns
    -------
    int
        Models.
    """
    return _WAIT if n > _FEW else _WAIT_OF_FEW


def _fit(
    family: Family,
    y: np.ndarray,
    weight: np.ndarray,
    blocks: list[Block],
    terms: Sequence[tuple[Term, ...]],
    settings: Settings,
    report: Callable[[str], None] | None,
) -> tuple[Grown, Objective]:
    first = family.init(y, weight)
    start = [
        Predictor(np.zeros(b.basis.shape[1]), SoftTree.stump(float(first[k]), b.x.shape[1]))
        for k, b in enumerate(blocks)
    ]
    path = RIDGE_PATH if settings.ridge == "auto" else (float(settings.ridge),)
    penalty, limits = Penalty(path[0], settings.node_ridge), limits_of_growth(family, y, weight)
    objective = Objective(family, y, weight, blocks, penalty, settings.inner, limits)
    if (y == y[0]).all() and not family.classification:
        grown = grow(objective, start, replace(settings.growth, max_leaves=len(start)), report)
        return grown, objective
    if any(len(p.gamma) for p in start):
        objective, start = choose_smoothing(objective, start, terms)
    best: tuple[Grown, Objective] | None = None
    waited = 0
    for ridge in path:
        current = replace(objective, penalty=Penalty(ridge, settings.node_ridge))
        grown = grow(current, start, settings.growth, report)
        if report is not None and len(path) > 1:
            report(f"ridge {ridge:g}: criterion {grown.criterion:.6g}")
        if best is None or grown.criterion < best[0].criterion:
            best, waited = (grown, current), 0
        elif any(p.tree.n_splits for p in grown.predictors):  # a ridge that allows no split says nothing
            waited += 1
            if waited >= path_patience(len(y)):
                break
    assert best is not None
    return best


def _refit(objective: Objective, grown: Grown, settings: Settings) -> Grown:
    family, y = objective.family, objective.y
    if not settings.studentize or family.classification or family.n_params == 1 or (y == y[0]).all():
        return grown
    growth = settings.growth
    predictors = refit_spread(objective, list(grown.predictors), growth.final_steps, growth.joint)
    fit = objective.log_likelihood(objective.raw(predictors))
    return replace(
        grown,
        predictors=predictors,
        log_likelihood=fit,
        penalised=fit - objective.penalties(predictors),
        criterion=grown.criterion + 2.0 * (grown.log_likelihood - fit),
    )


def _shared_columns(
    encoder: Encoder, columns: Sequence[np.ndarray], terms: Sequence[tuple[Term, ...]]
) -> list[np.ndarray]:
    out = []
    for seen, held in zip(columns, terms):
        gated = set(encoder.source[seen].tolist())
        widths = [term.rotation.shape[1] if term.is_smooth else 1 for term in held]
        out.append(np.repeat([term.feature in gated for term in held], widths).astype(bool))
    return out


def _split_effects(
    objective: Objective, predictors: Sequence[Predictor], shared: Sequence[np.ndarray]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """What of the tree is counted as structured, and standard errors of the sum.

    `shared` marks the structured columns whose feature the gates see too: only these are confounded.
    """
    shift, errors = [], []
    raw = objective.raw(list(predictors))
    _, fisher = objective.derivatives(raw)
    for k, (p, block) in enumerate(zip(predictors, objective.blocks)):
        columns = block.basis.shape[1]
        if not columns:
            shift.append(np.empty(0))
            errors.append(np.empty(0))
            continue
        project = np.zeros((columns, len(objective.y)))
        project[shared[k]] = _projection(block.basis[:, shared[k]], objective.weight)
        shift.append(project @ p.tree.value(block.x))
        matrix = information(p, block, fisher[:, k]) + curvature(p, block, objective.penalty)
        change = jacobian_product(project, p, block)
        change[:, :columns] = np.eye(columns)
        errors.append(np.sqrt(np.einsum("ij,ji->i", change, solve_positive(matrix, change.T)).clip(0.0)))
    return shift, errors


def _projection(basis: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Least squares coefficients on centred columns, as a matrix that takes a response."""
    centred = (basis - weight @ basis / weight.sum()) * weight[:, None]
    return np.linalg.pinv(centred.T @ basis, rcond=1e-10) @ centred.T


def jacobian_product(project: np.ndarray, predictor: Predictor, block: Block) -> np.ndarray:
    """Derivative of the projected tree in all numbers of a predictor.

    Parameters
    ----------
    project : ndarray of shape (n_columns, n_samples)
        Least squares projection on the structured columns.
    predictor : Predictor
        Structured effects and tree.
    block : Block
        Features.

    Returns
    -------
    ndarray of shape (n_columns, n_numbers)
        In the order of `jacobian`.
    """
    total: np.ndarray | float = 0.0
    for at in range(0, project.shape[1], DF_ROWS):
        here = slice(at, at + DF_ROWS)
        total = total + project[:, here] @ jacobian(predictor, block.rows(here))
    return np.asarray(total)
