"""A soft tree: gates, coefficients of its nodes, path weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from boostplugins.soft_trees.kernels import evaluate


@dataclass(frozen=True)
class SoftTree:
    r"""One soft tree: a smooth function of the standardised features.

    Split s divides node ``node[s]`` by the gate
    :math:`p = 1 / (1 + e^{-(\omega_0 + x'\omega)})` into the nodes 2s + 1 (left, weight p) and
    2s + 2 (right, weight 1 - p). The tree's value is the sum over nodes of path weight times
    coefficient, :math:`\eta(x) = \beta_0 + \sum_j P_j(x) \beta_j` (equation 5 of Umlauf and Klein).
    A tree with coefficients in its leaves alone (inner ones 0) is a SoRT, one with coefficients
    everywhere an AdaSoRT.

    Parameters
    ----------
    node : ndarray of shape (n_splits,)
        The node that each split divides.
    intercept : ndarray of shape (n_splits,)
        Gate intercepts.
    omega : ndarray of shape (n_splits, n_features)
        Gate weights.
    beta : ndarray of shape (2 n_splits + 1,)
        Coefficients of the nodes, the root first.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.soft_trees.tree import SoftTree
    >>> tree = SoftTree(np.array([0]), np.array([0.0]), np.array([[2.0]]), np.array([1.0, -1.0, 1.0]))
    >>> tree.value(np.array([[0.0], [1e9]]))
    array([1., 0.])
    """

    node: np.ndarray
    intercept: np.ndarray
    omega: np.ndarray
    beta: np.ndarray

    @classmethod
    def stump(cls, value: float, n_features: int) -> SoftTree:
        """Make a tree of the root alone.

        Parameters
        ----------
        value : float
            Its coefficient.
        n_features : int
            Number of features.

        Returns
        -------
        SoftTree
            A constant.
        """
        return cls(np.empty(0, dtype=np.int64), np.empty(0), np.empty((0, n_features)), np.array([value]))

    @property
    def n_splits(self) -> int:
        """Number of splits."""
        return len(self.node)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.node) + 1

    @property
    def leaves(self) -> np.ndarray:
        """Numbers of the leaf nodes."""
        return np.setdiff1d(np.arange(len(self.beta)), self.node)

    @property
    def depths(self) -> np.ndarray:
        """Depth of each node, 0 for the root."""
        depth = np.zeros(len(self.beta), dtype=np.int64)
        for s, node in enumerate(self.node):
            depth[2 * s + 1 : 2 * s + 3] = depth[node] + 1
        return depth

    def split(self, leaf: int, intercept: float, omega: np.ndarray, pair: np.ndarray) -> SoftTree:
        """Divide a leaf.

        Parameters
        ----------
        leaf : int
            The leaf's node number.
        intercept : float
            Gate intercept.
        omega : ndarray of shape (n_features,)
            Gate weights.
        pair : ndarray of shape (2,)
            Coefficients of the left and right child.

        Returns
        -------
        SoftTree
            The larger tree.
        """
        return SoftTree(
            np.append(self.node, leaf),
            np.append(self.intercept, intercept),
            np.vstack([self.omega, omega]),
            np.append(self.beta, pair),
        )

    def logits(self, x: np.ndarray) -> np.ndarray:
        """Linear predictors of the gates.

        Parameters
        ----------
        x : ndarray of shape (n_samples, n_features)
            Standardised features.

        Returns
        -------
        ndarray of shape (n_samples, n_splits)
            Logits, in Fortran order. A row's values do not depend on its neighbours.
        """
        out = np.empty((self.n_splits, len(x)))
        # A BLAS product rounds a row differently by the number of rows; a sum over features does not.
        out[:] = self.intercept[:, None]
        for weights, column in zip(self.omega.T, np.ascontiguousarray(x.T)):
            out += weights[:, None] * column
        return out.T

    def value(self, x: np.ndarray) -> np.ndarray:
        """Value of the tree.

        Parameters
        ----------
        x : ndarray of shape (n_samples, n_features)
            Standardised features.

        Returns
        -------
        ndarray of shape (n_samples,)
            Sum over nodes of path weight times coefficient.
        """
        eta = np.empty(len(x))
        evaluate(self.logits(x), self.node, self.beta, eta)
        return eta

    def log_path_weights(self, x: np.ndarray) -> np.ndarray:
        """Logarithms of the path weights of all nodes, finite at any depth.

        Parameters
        ----------
        x : ndarray of shape (n_samples, n_features)
            Standardised features.

        Returns
        -------
        ndarray of shape (n_samples, 2 n_splits + 1)
            Log weights; those of one level sum to 1 on the plain scale.
        """
        logits = self.logits(x)
        out = np.zeros((len(x), len(self.beta)))
        for s, node in enumerate(self.node):
            out[:, 2 * s + 1] = out[:, node] - np.logaddexp(0.0, -logits[:, s])
            out[:, 2 * s + 2] = out[:, node] - np.logaddexp(0.0, logits[:, s])
        return out

    def path_weights(self, x: np.ndarray) -> np.ndarray:
        """Path weights of all nodes.

        Parameters
        ----------
        x : ndarray of shape (n_samples, n_features)
            Standardised features.

        Returns
        -------
        ndarray of shape (n_samples, 2 n_splits + 1)
            Weights in [0, 1], the root's being 1.
        """
        return np.exp(self.log_path_weights(x))

    def harden(self, x: np.ndarray) -> np.ndarray:
        """Value when every gate is a hard decision.

        Parameters
        ----------
        x : ndarray of shape (n_samples, n_features)
            Standardised features.

        Returns
        -------
        ndarray of shape (n_samples,)
            One of at most `n_leaves` values.
        """
        logits = self.logits(x)
        place = np.zeros(len(x), dtype=np.int64)
        value = np.full(len(x), self.beta[0])
        for s, node in enumerate(self.node):
            here = place == node
            place[here] = np.where(logits[here, s] >= 0, 2 * s + 1, 2 * s + 2)
            value[here] += self.beta[place[here]]
        return value

    def leaf_values(self) -> np.ndarray:
        """Sum of coefficients from the root to each leaf.

        Returns
        -------
        ndarray of shape (n_leaves,)
            The values that `harden` can take; `value` stays between the least and the greatest.
        """
        total = self.beta.copy()
        for s, node in enumerate(self.node):
            total[2 * s + 1 : 2 * s + 3] += total[node]
        return total[self.leaves]

    def push_down(self) -> SoftTree:
        """Move every inner coefficient to the leaves below: the same function as a SoRT.

        Returns
        -------
        SoftTree
            A tree whose inner coefficients are 0.
        """
        beta = np.zeros_like(self.beta)
        beta[self.leaves] = self.leaf_values()
        return SoftTree(self.node, self.intercept, self.omega, beta)
