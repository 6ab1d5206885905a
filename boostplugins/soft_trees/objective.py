"""The penalised likelihood of all parameters' trees together, with its exact gradient."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from boostplugins.families import Family
from boostplugins.soft_trees.clipping import smooth_clip
from boostplugins.soft_trees.kernels import differentiate, evaluate
from boostplugins.soft_trees.tree import SoftTree


@dataclass(frozen=True)
class Penalty:
    r"""Ridge penalties, subtracted from the log likelihood.

    Parameters
    ----------
    gates : float
        :math:`\lambda` of :math:`\lambda \sum \omega^2` over gate weights on standardised features
        (gate intercepts are free).
    nodes : float
        :math:`\zeta` of :math:`\zeta \sum \beta^2` over node coefficients (the root is free).

    Examples
    --------
    >>> from boostplugins.soft_trees.objective import Penalty
    >>> Penalty(gates=1.0, nodes=0.1)
    Penalty(gates=1.0, nodes=0.1)
    """

    gates: float
    nodes: float


@dataclass(frozen=True)
class Block:
    """Where one parameter's predictor gets its features.

    Parameters
    ----------
    x : ndarray of shape (n_samples, n_features)
        Standardised features of its gates.
    basis : ndarray of shape (n_samples, n_columns)
        Columns of its structured effects.
    roughness : ndarray of shape (n_columns, n_columns)
        Penalty of their coefficients.
    firmness : float, default=1.0
        Factor of the penalty of node coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.soft_trees.objective import Block
    >>> Block.of_features(np.zeros((3, 2))).basis.shape
    (3, 0)
    """

    x: np.ndarray
    basis: np.ndarray
    roughness: np.ndarray
    firmness: float = 1.0

    def rows(self, which: np.ndarray | slice) -> Block:
        """Take some rows.

        Parameters
        ----------
        which : ndarray of int or slice
            Their numbers.

        Returns
        -------
        Block
            A block of these rows.
        """
        return replace(self, x=self.x[which], basis=self.basis[which])

    @classmethod
    def of_features(cls, x: np.ndarray) -> Block:
        """Make a block without structured effects.

        Parameters
        ----------
        x : ndarray of shape (n_samples, n_features)
            Standardised features.

        Returns
        -------
        Block
            Gates alone.
        """
        return cls(x, np.empty((len(x), 0)), np.empty((0, 0)))


@dataclass(frozen=True)
class Predictor:
    """One parameter's fitted predictor: structured coefficients and a soft tree.

    Parameters
    ----------
    gamma : ndarray of shape (n_columns,)
        Coefficients of the structured columns.
    tree : SoftTree
        The tree.
    low, high : float
        Bounds of the tree's value, none while it is fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.soft_trees.objective import Block, Predictor
    >>> from boostplugins.soft_trees.tree import SoftTree
    >>> Predictor(np.empty(0), SoftTree.stump(2.0, 1)).value(Block.of_features(np.zeros((2, 1))))
    array([2., 2.])
    """

    gamma: np.ndarray
    tree: SoftTree
    low: float = -math.inf
    high: float = math.inf

    def value(self, block: Block) -> np.ndarray:
        """Value of the predictor.

        Parameters
        ----------
        block : Block
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
            Raw scores of one parameter.
        """
        out = self.tree.value(block.x).clip(self.low, self.high)
        for c in range(block.basis.shape[1]):  # column by column: independent of the number of rows
            out += block.basis[:, c] * self.gamma[c]
        return out


@dataclass(frozen=True)
class Objective:
    """Penalised log likelihood of a whole model.

    Parameters
    ----------
    family : Family
        Distribution of the response.
    y : ndarray of shape (n_samples,)
        Responses.
    weight : ndarray of shape (n_samples,)
        Weights, counted as repeated rows.
    blocks : list of Block
        Features of each parameter.
    penalty : Penalty
        Ridge penalties.
    inner : bool
        Whether inner nodes have coefficients (AdaSoRT) or only leaves (SoRT).
    limits : tuple of ndarray of shape (K,), optional
        Least and greatest raw scores, at least 1 apart: what lies beyond counts as the limit, as
        `smooth_clip` makes it.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.families import Normal
    >>> from boostplugins.soft_trees.objective import Block, Objective, Penalty, Predictor
    >>> from boostplugins.soft_trees.tree import SoftTree
    >>> blocks = [Block.of_features(np.zeros((2, 1)))] * 2
    >>> loss = Objective(Normal(), np.array([-1.0, 1.0]), np.ones(2), blocks, Penalty(1.0, 0.1))
    >>> constant = [Predictor(np.empty(0), SoftTree.stump(0.0, 1))] * 2
    >>> float(round(loss.log_likelihood(loss.raw(constant)), 3))
    -2.838
    """

    family: Family
    y: np.ndarray
    weight: np.ndarray
    blocks: list[Block]
    penalty: Penalty
    inner: bool = True
    limits: tuple[np.ndarray, np.ndarray] | None = None
    unit_weight: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "unit_weight", bool((self.weight == 1.0).all()))

    def raw(self, predictors: list[Predictor]) -> np.ndarray:
        """Raw scores of a model.

        Parameters
        ----------
        predictors : list of Predictor
            One a parameter.

        Returns
        -------
        ndarray of shape (n_samples, K)
            Raw scores.
        """
        return np.stack([p.value(b) for p, b in zip(predictors, self.blocks)], axis=1)

    def log_likelihood(self, raw: np.ndarray) -> float:
        """Weighted log likelihood.

        Parameters
        ----------
        raw : ndarray of shape (n_samples, K)
            Raw scores.

        Returns
        -------
        float
            Sum of weighted log densities; -inf where it is not a number.
        """
        if self.limits is not None:
            raw, _ = smooth_clip(raw, *self.limits)
        with np.errstate(all="ignore"):
            total = float(self.weight @ self.family.log_pdf(self.y, self.family.theta(raw)))
        return total if total == total else -np.inf

    def derivatives(self, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weighted score and Fisher information.

        Parameters
        ----------
        raw : ndarray of shape (n_samples, K)
            Raw scores.

        Returns
        -------
        score, fisher : ndarray of shape (n_samples, K)
            Derivatives of `log_likelihood` in the raw scores, and expected curvatures: of limited scores
            as of others, so that what the limits hold still counts as fitted.
        """
        slope = None
        if self.limits is not None:
            raw, slope = smooth_clip(raw, *self.limits)
        with np.errstate(all="ignore"):
            score, fisher = self.family.score_and_fisher(self.y, raw)
        if slope is not None:
            score = score * slope
        if self.unit_weight:
            return score, fisher
        return score * self.weight[:, None], fisher * self.weight[:, None]

    def penalties(self, predictors: list[Predictor]) -> float:
        """Penalty of a model.

        Parameters
        ----------
        predictors : list of Predictor
            One a parameter.

        Returns
        -------
        float
            What is subtracted from the log likelihood.
        """
        return sum(map(self.penalty_of, predictors, self.blocks))

    def penalty_of(self, predictor: Predictor, block: Block) -> float:
        """Penalty of one predictor.

        Parameters
        ----------
        predictor : Predictor
            Structured effects and tree.
        block : Block
            Its features.

        Returns
        -------
        float
            What is subtracted from the log likelihood.
        """
        tree = predictor.tree
        total = self.penalty.gates * float((tree.omega**2).sum())
        total += self.penalty.nodes * block.firmness * float((tree.beta[1:] ** 2).sum())
        return total + float(predictor.gamma @ block.roughness @ predictor.gamma)

    def value(self, predictors: list[Predictor]) -> float:
        """Penalised log likelihood.

        Parameters
        ----------
        predictors : list of Predictor
            One a parameter.

        Returns
        -------
        float
            To be maximised.
        """
        return self.log_likelihood(self.raw(predictors)) - self.penalties(predictors)

    def pack(self, predictors: list[Predictor]) -> np.ndarray:
        """Write a model's numbers into one vector.

        Parameters
        ----------
        predictors : list of Predictor
            One a parameter.

        Returns
        -------
        ndarray
            Structured, node, gate intercept and gate coefficients, parameter by parameter.
        """
        return np.concatenate(
            [
                np.concatenate([p.gamma, p.tree.beta, p.tree.intercept, p.tree.omega.ravel()])
                for p in predictors
            ]
        )

    def unpack(self, vector: np.ndarray, like: list[Predictor]) -> list[Predictor]:
        """Read a model from a vector.

        Parameters
        ----------
        vector : ndarray
            What `pack` gives.
        like : list of Predictor
            A model of the same shape.

        Returns
        -------
        list of Predictor
            The model.
        """
        out, at = [], 0
        for p in like:
            sizes = (len(p.gamma), len(p.tree.beta), p.tree.n_splits, p.tree.omega.size)
            gamma, beta, intercept, omega = np.split(vector[at : at + sum(sizes)], np.cumsum(sizes)[:-1])
            at += sum(sizes)
            tree = SoftTree(p.tree.node, intercept, omega.reshape(p.tree.omega.shape), beta)
            out.append(Predictor(gamma, tree))
        return out

    def loss_and_gradient(
        self, vector: np.ndarray, like: list[Predictor], first: np.ndarray | None = None
    ) -> tuple[float, np.ndarray]:
        """Negative penalised log likelihood and its gradient, for a minimiser.

        Parameters
        ----------
        vector : ndarray
            What `pack` gives.
        like : list of Predictor
            A model of the same shape.
        first : ndarray of shape (n_samples,), optional
            Raw scores of the first parameter where these are given; the model is of the others then.

        Returns
        -------
        float, ndarray
            Value and gradient; coefficients that a SoRT lacks get gradient 0.
        """
        predictors = self.unpack(vector, like)
        given = 0 if first is None else 1
        blocks = self.blocks[given:]
        raw = np.empty((len(self.y), len(self.blocks)))
        if first is not None:
            raw[:, 0] = first
        gates = []
        for k, (p, block) in enumerate(zip(predictors, blocks), given):
            z = (p.tree.omega @ block.x.T).T
            z += p.tree.intercept
            eta = np.empty(len(z))
            evaluate(z, p.tree.node, p.tree.beta, eta)
            raw[:, k] = eta + block.basis @ p.gamma if len(p.gamma) else eta
            gates.append(z)
        value = self.log_likelihood(raw) - sum(map(self.penalty_of, predictors, blocks))
        if not np.isfinite(value):
            return np.inf, np.zeros_like(vector)
        score, _ = self.derivatives(raw)
        scores = score.T[given:]
        parts = [self._gradient(p, b, z, u) for p, b, z, u in zip(predictors, blocks, gates, scores)]
        return -value, -np.concatenate(parts)

    def _gradient(self, p: Predictor, block: Block, gates: np.ndarray, score: np.ndarray) -> np.ndarray:
        tree = p.tree
        slope, beta = np.empty_like(gates), np.zeros(len(tree.beta))
        differentiate(gates, tree.node, tree.beta, np.ascontiguousarray(score), slope, beta)
        beta[1:] -= 2.0 * self.penalty.nodes * block.firmness * tree.beta[1:]
        if not self.inner:
            beta[tree.node[1:]] = 0.0
        gamma = score @ block.basis - 2.0 * block.roughness @ p.gamma
        omega = slope.T @ block.x - 2.0 * self.penalty.gates * tree.omega
        return np.concatenate([gamma, beta, slope.sum(axis=0), omega.ravel()])
