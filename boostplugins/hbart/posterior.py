"""Posterior draws of forests: compact storage, and prediction from it.

A structure is stored once and kept for as long as draws share it, which most do: a tree's proposal
is refused more often than not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from boostplugins.hbart.evaluation import evaluate
from boostplugins.hbart.log_linear import MOST_LOG_RATIO
from boostplugins.hbart.sampler import Record

_BLOCK_VALUES = 250_000  # draws times rows that prediction holds at a time


@dataclass(frozen=True)
class ForestDraws:
    """Draws of one forest.

    Attributes
    ----------
    var, cut, miss, right : ndarray of shape (n_nodes,)
        Nodes of all structures in preorder: split column (-1 for a leaf), cut (or a leaf's number),
        whether missing values go right (plus 2 for a rule on levels), and the distance to the right
        child; the left child is next.
    start : ndarray of shape (n_structures + 1,)
        First node of each structure.
    structure : ndarray of shape (n_draws, n_trees)
        Structure of each draw's trees.
    values : ndarray
        Leaf values by draw, tree and leaf.
    """

    var: np.ndarray
    cut: np.ndarray
    miss: np.ndarray
    right: np.ndarray
    start: np.ndarray
    structure: np.ndarray
    values: np.ndarray

    @property
    def n_leaves(self) -> np.ndarray:
        """Leaves of each structure."""
        return (np.diff(self.start) + 1) // 2

    def first_values(self) -> np.ndarray:
        """Position of each draw's first leaf value, and the end.

        Returns
        -------
        ndarray of shape (n_draws + 1,)
            Positions.
        """
        return np.concatenate([[0], np.cumsum(self.n_leaves[self.structure].sum(axis=1))]).astype(np.int64)

    def head(self, n_draws: int) -> ForestDraws:
        """Keep the first draws.

        Parameters
        ----------
        n_draws : int
            Draws to keep.

        Returns
        -------
        ForestDraws
            Shorter record; structures are all kept.
        """
        values = self.values[: self.first_values()[n_draws]]
        return ForestDraws(
            self.var, self.cut, self.miss, self.right, self.start, self.structure[:n_draws], values
        )

    @classmethod
    def join(cls, parts: Sequence[ForestDraws]) -> ForestDraws:
        """Put draws one after another.

        Parameters
        ----------
        parts : sequence of ForestDraws
            Draws, each with its own structures.

        Returns
        -------
        ForestDraws
            All of them; the very object where there is one.
        """
        if len(parts) == 1:
            return parts[0]
        n_nodes = np.cumsum([0, *(len(part.var) for part in parts)])
        n_structures = np.cumsum([0, *(len(part.start) - 1 for part in parts)])
        return cls(
            np.concatenate([part.var for part in parts]),
            np.concatenate([part.cut for part in parts]),
            np.concatenate([part.miss for part in parts]),
            np.concatenate([part.right for part in parts]),
            np.concatenate([[0], *(part.start[1:] + n for part, n in zip(parts, n_nodes))]),
            np.concatenate([part.structure + n for part, n in zip(parts, n_structures)]).astype(np.int32),
            np.concatenate([part.values for part in parts]),
        )

    def predict(self, codes: np.ndarray, draws: slice, scale: bool) -> np.ndarray:
        """Sum (or multiply) the leaf values of every tree.

        Parameters
        ----------
        codes : ndarray of shape (p, n)
            Rows' codes.
        draws : slice
            Draws to evaluate.
        scale : bool
            Multiply, from 1, instead of adding, from 0.

        Returns
        -------
        ndarray of shape (n_draws, n)
            Forest values.
        """
        first, last, _ = draws.indices(len(self.structure))
        out = np.full((last - first, codes.shape[1]), 1.0 if scale else 0.0)
        if self.structure.shape[1]:
            nodes = (self.var, self.cut, self.miss, self.right)
            structure = np.ascontiguousarray(self.structure[first:last])
            evaluate(
                codes, nodes, self.start, structure, self.values[self.first_values()[first] :], scale, out
            )
        return out


def trim(record: Record, n_draws: int) -> ForestDraws:
    """Copy what a record holds.

    Parameters
    ----------
    record : Record
        Full record.
    n_draws : int
        Draws in it.

    Returns
    -------
    ForestDraws
        Draws whose structure numbers count from the chain's first structure.
    """
    structures, nodes, values = record.size
    return ForestDraws(
        record.var[:nodes].astype(np.int32),
        record.cut[:nodes].copy(),
        record.miss[:nodes].copy(),
        record.right[:nodes].astype(np.int32),
        record.start[: structures + 1].copy(),
        record.structure[:n_draws].astype(np.int32),
        record.values[:values].copy(),
    )


@dataclass
class Pieces:
    """One chain's draws, as the rounds left them.

    Attributes
    ----------
    mean, variance : list of ForestDraws
        Forests.
    scalars : list of ndarray of shape (n, 2 + k)
        sigma^2, the variance of the mean trees' leaf values, and gamma.
    """

    mean: list[ForestDraws] = field(default_factory=list)
    variance: list[ForestDraws] = field(default_factory=list)
    scalars: list[np.ndarray] = field(default_factory=list)

    def add(self, mean: ForestDraws, variance: ForestDraws, scalars: np.ndarray) -> None:
        """Append a round.

        Parameters
        ----------
        mean, variance : ForestDraws
            Forests.
        scalars : ndarray of shape (n, 2 + k)
            sigma^2, the variance of the mean trees' leaf values, and gamma.
        """
        self.mean.append(mean)
        self.variance.append(variance)
        self.scalars.append(scalars)

    def pack(self) -> None:
        """Make one piece of all, which the posterior may share instead of holding the draws again."""
        if self.scalars:
            self.mean[:] = [_one_chain(self.mean)]
            self.variance[:] = [_one_chain(self.variance)]
            self.scalars[:] = [np.concatenate(self.scalars)]

    @property
    def n_draws(self) -> int:
        """Draws so far."""
        return sum(len(part) for part in self.scalars)


def _one_chain(parts: list[ForestDraws]) -> ForestDraws:
    """Join a chain's rounds, whose structure numbers already count through."""
    joined = ForestDraws.join(parts)
    if len(parts) == 1:
        return joined
    structure = np.concatenate([part.structure for part in parts])
    return ForestDraws(
        joined.var, joined.cut, joined.miss, joined.right, joined.start, structure, joined.values
    )


def _join_and_share(chains: Sequence[list[ForestDraws]], n_draws: int) -> ForestDraws:
    """Join the first draws of packed chains, whose nodes and values become views of the joint ones."""
    heads = [pieces[0].head(n_draws) for pieces in chains]
    joined = ForestDraws.join(heads)
    node, value = 0, 0
    for pieces, head in zip(chains, heads):
        own = pieces[0]
        nodes, values = slice(node, node + len(head.var)), slice(value, value + len(head.values))
        pieces[0] = ForestDraws(
            joined.var[nodes],
            joined.cut[nodes],
            joined.miss[nodes],
            joined.right[nodes],
            own.start,
            own.structure,
            # A longer chain keeps the values of the draws that the others have yet to reach.
            joined.values[values] if len(own.values) == len(head.values) else own.values,
        )
        node, value = nodes.stop, values.stop
    return joined


@dataclass(frozen=True)
class Posterior:
    """Draws of all chains, by chain and then by draw, on the scaled response.

    Attributes
    ----------
    mean, variance : ForestDraws
        Forests; the variance forest has no trees unless the variance is one.
    sigma2 : ndarray of shape (n_draws,)
        Variances at the centre of the variance covariates.
    gamma : ndarray of shape (n_draws, k)
        Coefficients of the standardised variance covariates.
    leaf_var : ndarray of shape (n_draws,)
        Prior variances of the mean trees' leaf values; all the same unless they are drawn.
    n_chains : int
        Chains.
    """

    mean: ForestDraws
    variance: ForestDraws
    sigma2: np.ndarray
    gamma: np.ndarray
    leaf_var: np.ndarray
    n_chains: int

    @classmethod
    def join(cls, chains: Sequence[Pieces]) -> Posterior:
        """Join chains, cut to the shortest.

        Parameters
        ----------
        chains : sequence of Pieces
            Draws of each chain; packed in place, and made views of the joint draws.

        Returns
        -------
        Posterior
            All draws.
        """
        for chain in chains:
            chain.pack()
        n = min(chain.n_draws for chain in chains)
        mean = _join_and_share([chain.mean for chain in chains], n)
        variance = _join_and_share([chain.variance for chain in chains], n)
        scalars = np.concatenate([chain.scalars[0][:n] for chain in chains])
        sigma2, leaf_var, gamma = scalars[:, 0].copy(), scalars[:, 1].copy(), scalars[:, 2:].copy()
        return cls(mean, variance, sigma2, gamma, leaf_var, len(chains))

    @property
    def n_draws(self) -> int:
        """Draws of all chains."""
        return len(self.sigma2)

    def by_chain(self, values: np.ndarray) -> np.ndarray:
        """Fold draws into chains.

        Parameters
        ----------
        values : ndarray of shape (n_draws, ...)
            One entry a draw.

        Returns
        -------
        ndarray of shape (n_chains, n_draws / n_chains, ...)
            The same by chain.
        """
        return values.reshape(self.n_chains, len(values) // self.n_chains, *values.shape[1:])

    def moments(
        self, codes: np.ndarray, z: np.ndarray, draws: slice = slice(None), variance: bool = True
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Mean and variance of the scaled response for each draw.

        Parameters
        ----------
        codes : ndarray of shape (p, n)
            Rows' codes.
        z : ndarray of shape (n, k)
            Standardised variance covariates.
        draws : slice, default=slice(None)
            Draws to evaluate.
        variance : bool, default=True
            Whether the variances are wanted too.

        Returns
        -------
        tuple of ndarray of shape (n_draws, n)
            Means and variances.
        """
        mean = self.mean.predict(codes, draws, scale=False)
        if not variance:
            return mean, None
        spread = self.variance.predict(codes, draws, scale=True)
        spread *= self.sigma2[draws, None] * np.exp(
            np.clip(self.gamma[draws] @ z.T, -MOST_LOG_RATIO, MOST_LOG_RATIO)
        )
        return mean, spread

    def row_blocks(self, n: int, n_draws: int | None = None) -> Iterator[slice]:
        """Cut rows into blocks whose draws fit in memory.

        Parameters
        ----------
        n : int
            Rows.
        n_draws : int, optional
            Draws to be held; all by default.

        Yields
        ------
        slice
            Rows of a block.
        """
        size = max(1, min(4096, _BLOCK_VALUES // max(n_draws or self.n_draws, 1)))
        for start in range(0, n, size):
            yield slice(start, min(start + size, n))
