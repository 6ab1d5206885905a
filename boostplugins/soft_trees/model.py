"""A fitted soft tree model: one predictor a distribution parameter, and what it says about features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from boostplugins.families import Family
from boostplugins.soft_trees.criteria import logit_slopes
from boostplugins.soft_trees.encoding import Encoder
from boostplugins.soft_trees.objective import Block, Predictor
from boostplugins.soft_trees.structured import Term
from boostplugins.soft_trees.ties import Ties


@dataclass(frozen=True)
class SoftTreeModel:
    r"""Fitted predictors on the scale of the response.

    The raw score of parameter k is :math:`\eta_k = B_k \gamma_k + T_k(x)` with structured columns B
    and soft tree T. What of T lies in the span of those columns of B whose features the gates see
    too, :math:`B_k a_k` over the training rows, is counted as structured: the effects reported are
    :math:`B_k (\gamma_k + a_k)` and :math:`T_k - B_k a_k`, which are orthogonal, so that the split is
    unique [1]_. Columns of other features need no such constraint; their a is 0.

    Parameters
    ----------
    family : Family
        Distribution of the response.
    encoder : Encoder
        Turns features into standardised columns.
    columns : tuple of ndarray of int
        Encoded columns that each parameter's gates see.
    terms : tuple of tuple of Term
        Structured effects of each parameter.
    predictors : tuple of Predictor
        Coefficients and trees, each tree bounded to the range of its training values.
    shift : tuple of ndarray
        The a of each parameter.
    errors : tuple of ndarray
        Standard errors of gamma + a.
    figures : dict of str to float
        Ridge, log likelihood without and with penalties, degrees of freedom, criterion.
    path : ndarray of shape (n_steps, 4)
        Leaves, penalised log likelihood, degrees of freedom and criterion along the growth.
    tied : Ties, optional
        Equal responses on which a spread fell to its floor; files do not keep them.

    References
    ----------
    .. [1] Ruegamer, Kolb, Klein (2023), Semi-structured distributional regression.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.families import Normal
    >>> from boostplugins.soft_trees.fitting import Settings, fit_model
    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> model = fit_model(Normal(), X, np.abs(X[:, 0]), None, Settings(ridge=0.1))
    >>> bool(abs(model.theta(np.array([[0.5]]))[0, 0] - 0.5) < 0.05)
    True
    """

    family: Family
    encoder: Encoder
    columns: tuple[np.ndarray, ...]
    terms: tuple[tuple[Term, ...], ...]
    predictors: tuple[Predictor, ...]
    shift: tuple[np.ndarray, ...]
    errors: tuple[np.ndarray, ...]
    figures: dict[str, float]
    path: np.ndarray
    tied: Ties | None = None

    def blocks(self, X: Any) -> list[Block]:
        """Encode rows for each parameter.

        Parameters
        ----------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        list of Block
            One a parameter.
        """
        x = self.encoder.transform(X)
        return [
            make_block(x if len(c) == x.shape[1] else np.ascontiguousarray(x[:, c]), terms, X)
            for c, terms in zip(self.columns, self.terms)
        ]

    def raw(self, X: Any) -> np.ndarray:
        """Raw scores.

        Parameters
        ----------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, K)
            One column a parameter.
        """
        return np.stack([p.value(b) for p, b in zip(self.predictors, self.blocks(X))], axis=1)

    def theta(self, X: Any) -> np.ndarray:
        """Parameters of the distribution.

        Parameters
        ----------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, K)
            One column a parameter.
        """
        return self.family.theta(self.raw(X))

    def harden(self, X: Any) -> np.ndarray:
        """Raw scores when every gate decides for one side.

        Parameters
        ----------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, K)
            One column a parameter.
        """
        return np.stack(
            [p.tree.harden(b.x) + b.basis @ p.gamma for p, b in zip(self.predictors, self.blocks(X))], axis=1
        )

    def structured(self, X: Any, parameter: int) -> tuple[list[str], np.ndarray]:
        """Structured effects of rows.

        Parameters
        ----------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Features.
        parameter : int
            Number of the parameter.

        Returns
        -------
        labels : list of str
            Names of the effects.
        effects : ndarray of shape (n_samples, n_effects)
            Their parts of the raw score, mean 0 over the training rows.
        """
        terms, gamma = self.terms[parameter], self.predictors[parameter].gamma + self.shift[parameter]
        out = np.zeros((X.shape[0], len(terms)))
        at = 0
        for t, term in enumerate(terms):
            columns = term.columns(X)
            out[:, t] = columns @ gamma[at : at + columns.shape[1]]
            at += columns.shape[1]
        return [term.label for term in terms], out

    def levels(self, X: Any, parameter: int) -> np.ndarray:
        """Tree part of a raw score by depth: coarse terms first, fine ones last.

        Parameters
        ----------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Features.
        parameter : int
            Number of the parameter.

        Returns
        -------
        ndarray of shape (n_samples, max_depth + 1)
            Sums of path weight times coefficient of the nodes of one depth; the root's column also
            holds what went to the structured effects, the last one what bounds take away beyond the
            training rows. Rows sum to raw score minus structured.
        """
        block = self.blocks(X)[parameter]
        tree = self.predictors[parameter].tree
        parts = tree.path_weights(block.x) * tree.beta
        depths = tree.depths
        out = np.stack([parts[:, depths == d].sum(axis=1) for d in range(int(depths.max()) + 1)], axis=1)
        total = out.sum(axis=1)
        out[:, -1] += total.clip(self.predictors[parameter].low, self.predictors[parameter].high) - total
        if block.basis.shape[1]:
            out[:, 0] -= block.basis @ self.shift[parameter]
        return out

    def importances(self, X: Any, parameter: int) -> np.ndarray:
        """Mean squared change of a raw score with each feature, by standard deviations of it.

        Parameters
        ----------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Rows to average over.
        parameter : int
            Number of the parameter.

        Returns
        -------
        ndarray of shape (n_features,)
            Shares that sum to 1, or all 0 for a constant predictor. The tree's part is
            ``mean((d eta / d column)^2)`` over standardised columns; a structured effect's part is
            the variance of the effect.
        """
        block, predictor = self.blocks(X)[parameter], self.predictors[parameter]
        slopes = logit_slopes(predictor.tree, block.x)
        total = np.zeros(self.encoder.n_features)
        if slopes.shape[1]:
            per_column = ((slopes @ predictor.tree.omega) ** 2).mean(axis=0)
            np.add.at(total, self.encoder.source[self.columns[parameter]], per_column)
        _, effects = self.structured(X, parameter)
        for term, effect in zip(self.terms[parameter], effects.T):
            total[term.feature] += effect.var()
        mass = total.sum()
        return total / mass if mass > 0 else total

    def partial(self, X: Any, parameter: int, feature: int, grid: np.ndarray) -> np.ndarray:
        """Average raw score with one feature set to given values.

        Parameters
        ----------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Rows to average over.
        parameter, feature : int
            Numbers of parameter and feature.
        grid : ndarray of shape (n_grid,)
            Values.

        Returns
        -------
        ndarray of shape (n_grid,)
            Partial dependence on the raw scale.
        """
        out = []
        for value in grid:
            changed = X.copy()
            if hasattr(changed, "iloc"):
                changed[changed.columns[feature]] = value
            else:
                changed[:, feature] = value
            out.append(self.raw(changed)[:, parameter].mean())
        return np.array(out)


def make_block(x: np.ndarray, terms: tuple[Term, ...], X: Any) -> Block:
    """Put gate features and structured columns side by side.

    Parameters
    ----------
    x : ndarray of shape (n_samples, n_columns)
        Standardised columns.
    terms : tuple of Term
        Structured effects.
    X : ndarray or DataFrame of shape (n_samples, n_features)
        Features.

    Returns
    -------
    Block
        With the penalty of each term at its given smoothing, 1 where it is to be chosen.
    """
    if not terms:
        return Block.of_features(x)
    columns = [term.columns(X) for term in terms]
    basis = np.concatenate(columns, axis=1)
    roughness = np.zeros((basis.shape[1], basis.shape[1]))
    at = 0
    for term, part in zip(terms, columns):
        here = slice(at, at + part.shape[1])
        roughness[here, here] = term.roughness * (1.0 if term.smoothing is None else term.smoothing)
        at += part.shape[1]
    return Block(x, basis, roughness)
