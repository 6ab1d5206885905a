"""A grown tree: where rows go, what each region looks like, what its networks say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from boostplugins.usnrt.calibration import GROUPS
from boostplugins.usnrt.pair import MeanVariance
from boostplugins.usnrt.splits import Split


@dataclass(frozen=True)
class Tree:
    """Splits in arrays, a node a place; children come after their parent.

    Parameters
    ----------
    feature : ndarray of int of shape (n_nodes,)
        Dividing column, -1 for a leaf.
    threshold : ndarray of shape (n_nodes,)
        Numbers at most this go left.
    left_levels : ndarray of bool of shape (n_nodes, most_levels)
        Levels that go left, where the column is categorical.
    left, right : ndarray of int of shape (n_nodes,)
        Children, -1 for a leaf.
    n_rows : ndarray of int of shape (n_nodes,)
        Training rows.
    statistic, log_p : ndarray of shape (n_nodes,)
        Levene's t and log p-value of the best split, taken or not; NaN where none was looked for.
    residual_variance : ndarray of shape (n_nodes,)
        Mean squared residual of the node's mean network (of the splitting network inside), in
        squared units of the standardised target; NaN where none was trained.

    Examples
    --------
    >>> import numpy as np
    >>> from boostplugins.usnrt.tree import Tree
    >>> Tree.single(10).apply(np.zeros((3, 2)))
    array([0, 0, 0])
    """

    feature: np.ndarray
    threshold: np.ndarray
    left_levels: np.ndarray
    left: np.ndarray
    right: np.ndarray
    n_rows: np.ndarray
    statistic: np.ndarray
    log_p: np.ndarray
    residual_variance: np.ndarray

    @classmethod
    def single(cls, n_rows: int) -> Tree:
        """Make a tree of one leaf.

        Parameters
        ----------
        n_rows : int
            Training rows.

        Returns
        -------
        Tree
            The tree.
        """
        return cls.build([Node(n_rows)], 0)

    @classmethod
    def build(cls, nodes: Sequence[Node], most_levels: int) -> Tree:
        """Put nodes into arrays.

        Parameters
        ----------
        nodes : sequence of Node
            Nodes, each before its children.
        most_levels : int
            Most levels of a column.

        Returns
        -------
        Tree
            The tree.
        """
        left_levels = np.zeros((len(nodes), most_levels), dtype=bool)
        for i, node in enumerate(nodes):
            if node.left >= 0 and node.best is not None:
                left_levels[i, : len(node.best.left_levels)] = node.best.left_levels
        inner = [node.best if node.left >= 0 else None for node in nodes]
        return cls(
            np.array([-1 if split is None else split.feature for split in inner], dtype=np.int64),
            np.array([np.nan if split is None else split.threshold for split in inner]),
            left_levels,
            np.array([node.left for node in nodes], dtype=np.int64),
            np.array([node.right for node in nodes], dtype=np.int64),
            np.array([node.n_rows for node in nodes], dtype=np.int64),
            np.array([np.nan if node.best is None else node.best.statistic for node in nodes]),
            np.array([np.nan if node.best is None else node.best.log_p for node in nodes]),
            np.array([node.residual_variance for node in nodes], dtype=np.float64),
        )

    @property
    def leaves(self) -> np.ndarray:
        """Places of the leaves."""
        return np.flatnonzero(self.feature < 0)

    def split(self, node: int, n_levels: np.ndarray) -> Split:
        """Read the split of an inner node.

        Parameters
        ----------
        node : int
            Its place.
        n_levels : ndarray of int of shape (n_features,)
            Levels of each column, 0 for numbers.

        Returns
        -------
        Split
            The split.
        """
        feature = int(self.feature[node])
        return Split(
            feature,
            float(self.threshold[node]),
            self.left_levels[node, : n_levels[feature]],
            float(self.statistic[node]),
            float(self.log_p[node]),
            int(self.n_rows[self.left[node]]),
            int(self.n_rows[self.right[node]]),
        )

    def apply(self, table: np.ndarray, n_levels: np.ndarray | None = None) -> np.ndarray:
        """Find the leaf of each row.

        Parameters
        ----------
        table : ndarray of shape (n_samples, n_features)
            Numbers (NaN: missing) and level numbers (-1: unknown).
        n_levels : ndarray of int of shape (n_features,), optional
            Levels of each column; by default all are numbers.

        Returns
        -------
        ndarray of int of shape (n_samples,)
            Places of leaves.
        """
        node = np.zeros(len(table), dtype=np.int64)
        for place, rows in self.leaf_rows(table, n_levels):
            node[rows] = place
        return node

    def leaf_rows(
        self, table: np.ndarray, n_levels: np.ndarray | None = None
    ) -> list[tuple[int, np.ndarray]]:
        """Sort rows into leaves.

        Parameters
        ----------
        table : ndarray of shape (n_samples, n_features)
            Numbers (NaN: missing) and level numbers (-1: unknown).
        n_levels : ndarray of int of shape (n_features,), optional
            Levels of each column; by default all are numbers.

        Returns
        -------
        list of tuple of int and ndarray of int
            Place of each leaf, in the order of `leaves`, and its rows in ascending order.
        """
        if n_levels is None:
            n_levels = np.zeros(table.shape[1], dtype=np.int64)
        held = {0: np.arange(len(table))}
        for place in np.flatnonzero(self.feature >= 0):
            rows = held.pop(int(place))
            left = self.split(int(place), n_levels).goes_left(table[rows, self.feature[place]])
            held[int(self.left[place])], held[int(self.right[place])] = rows[left], rows[~left]
        return [(int(place), held[int(place)]) for place in self.leaves]


@dataclass
class Node:
    """A node while the tree grows.

    Parameters
    ----------
    n_rows : int
        Training rows.
    best : Split, optional
        Best split found.
    left, right : int, default=-1
        Children.
    residual_variance : float, default=NaN
        Mean squared residual.
    """

    n_rows: int
    best: Split | None = None
    left: int = -1
    right: int = -1
    residual_variance: float = float("nan")


@dataclass(frozen=True)
class TreeModel:
    """A tree with a pair of networks in each leaf.

    Parameters
    ----------
    tree : Tree
        The regions.
    pairs : tuple of MeanVariance
        Networks, in the order of ``tree.leaves``.
    """

    tree: Tree
    pairs: tuple[MeanVariance, ...]

    def predict(
        self, table: np.ndarray, inputs: np.ndarray, n_levels: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute means and variances.

        Parameters
        ----------
        table : ndarray of shape (n_samples, n_features)
            What the tree sees.
        inputs : ndarray of shape (n_samples, n_inputs)
            What the networks see.
        n_levels : ndarray of int of shape (n_features,)
            Levels of each column.

        Returns
        -------
        tuple of ndarray of shape (n_samples,)
            Means and variances of the standardised target.
        """
        mean, variance = np.empty(len(table)), np.empty(len(table))
        for (_, rows), pair in zip(self.tree.leaf_rows(table, n_levels), self.pairs):
            if len(rows):
                mean[rows], variance[rows] = pair.predict(inputs[rows])
        return mean, variance

    def shapes(self, table: np.ndarray, n_levels: np.ndarray) -> np.ndarray:
        """Look up the shapes of the errors.

        Parameters
        ----------
        table : ndarray of shape (n_samples, n_features)
            What the tree sees.
        n_levels : ndarray of int of shape (n_features,)
            Levels of each column.

        Returns
        -------
        ndarray of shape (n_samples, 2, n_groups)
            Means and standard deviations of equally likely Normals, in units of the predicted
            standard deviation; standard Normals in leaves without a shape.
        """
        found = np.empty((len(table), 2, GROUPS))
        found[:, 0], found[:, 1] = 0.0, 1.0
        for (_, rows), pair in zip(self.tree.leaf_rows(table, n_levels), self.pairs):
            if pair.correction.shape is not None:
                found[rows] = pair.correction.shape
        return found


def describe(
    tree: Tree, names: Sequence[str], levels: Sequence[tuple[str, ...]], unit: float = 1.0
) -> list[dict[str, Any]]:
    """Describe every node: what a picture needs and a text prints.

    Parameters
    ----------
    tree : Tree
        The tree.
    names : sequence of str
        Names of the columns.
    levels : sequence of tuple of str
        Names of the levels of each column.
    unit : float, default=1.0
        Standard deviation of the target, which turns variances into squared units of the target.

    Returns
    -------
    list of dict
        A node each: ``node``, ``parent`` (-1 for the root), ``depth``, ``x`` (place from left to
        right, leaves at 0, 1, ...), ``condition`` that leads from the parent, ``region`` (conditions
        from the root), ``feature``, ``threshold``, ``left_levels``, ``leaf``, ``n_rows``,
        ``residual_variance``, ``statistic``, ``log_p``.
    """
    n_levels = np.array([len(known) for known in levels], dtype=np.int64)
    rows: list[dict[str, Any]] = [{} for _ in tree.feature]
    rows[0] = {"parent": -1, "depth": 0, "condition": "", "region": []}
    for i in range(len(rows)):
        leaf = bool(tree.feature[i] < 0)
        rows[i] |= {
            "node": i,
            "leaf": leaf,
            "n_rows": int(tree.n_rows[i]),
            "residual_variance": float(tree.residual_variance[i]) * unit * unit,
            "statistic": float(tree.statistic[i]),
            "log_p": float(tree.log_p[i]),
            "feature": None if leaf else names[tree.feature[i]],
            "threshold": None,
            "left_levels": None,
        }
        if leaf:
            continue
        split = tree.split(i, n_levels)
        known = levels[split.feature]
        rows[i]["threshold"] = None if known else split.threshold
        rows[i]["left_levels"] = [name for name, to in zip(known, split.left_levels) if to] if known else None
        for child, condition in zip((tree.left[i], tree.right[i]), _conditions(split, names, known)):
            rows[child] = {
                "parent": i,
                "depth": rows[i]["depth"] + 1,
                "condition": condition,
                "region": [*rows[i]["region"], condition],
            }
    for rank, place in enumerate(_in_order(tree)):
        rows[place]["x"] = float(rank)
    for i in range(len(rows) - 1, -1, -1):
        if not rows[i]["leaf"]:
            rows[i]["x"] = 0.5 * (rows[tree.left[i]]["x"] + rows[tree.right[i]]["x"])
    return rows


def write_text(rows: Sequence[dict[str, Any]]) -> str:
    """Write a described tree as text, one node a line.

    Parameters
    ----------
    rows : sequence of dict
        Result of `describe`.

    Returns
    -------
    str
        Lines, indented by depth.
    """
    children: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        children.setdefault(row["parent"], []).append(row)
    lines = []
    pending = [rows[0]]
    while pending:
        row = pending.pop()
        kind = "leaf" if row["leaf"] else "node"
        facts = f"{kind} {row['node']}: {row['n_rows']} rows"
        if np.isfinite(row["residual_variance"]):
            facts += f", residual variance {row['residual_variance']:.4g}"
        if not row["leaf"]:
            facts += f", Levene t {row['statistic']:.3g}"
        lines.append("  " * row["depth"] + (f"{row['condition']}  " if row["condition"] else "") + facts)
        pending.extend(reversed(children.get(row["node"], [])))
    return "\n".join(lines)


def _conditions(split: Split, names: Sequence[str], known: tuple[str, ...]) -> tuple[str, str]:
    name = names[split.feature]
    if known:
        sides = [
            [level for level, to in zip(known, split.left_levels) if to == side] for side in (True, False)
        ]
        return f"{name} in {{{', '.join(sides[0])}}}", f"{name} in {{{', '.join(sides[1])}}}"
    if np.isinf(split.threshold):
        return f"{name} is present", f"{name} is missing"
    return f"{name} <= {split.threshold:.6g}", f"{name} > {split.threshold:.6g} or missing"


def _in_order(tree: Tree) -> list[int]:
    found, pending = [], [0]
    while pending:
        node = pending.pop()
        if tree.feature[node] < 0:
            found.append(node)
        else:
            pending += [int(tree.right[node]), int(tree.left[node])]
    return found
