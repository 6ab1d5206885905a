"""The sampler of Bayesian trees, slow and obvious: nodes as objects, rows as sets, no running sums.

It asks the generator for the same numbers in the same order as the compiled sampler, so that both
chains agree draw by draw.
"""

from __future__ import annotations

import math

import numpy as np

MISSING = 65535


class Node:
    def __init__(self, slot, parent, rows, value):
        self.slot, self.parent, self.rows, self.value = slot, parent, rows, value
        self.rule, self.left, self.right = None, None, None

    @property
    def is_leaf(self):
        return self.rule is None

    @property
    def depth(self):
        return 0 if self.parent is None else 1 + self.parent.depth


class NaiveTree:
    """One tree of a forest."""

    def __init__(self, sampler, value, prior):
        self.sampler, self.prior = sampler, prior
        self.nodes = {0: Node(0, None, list(range(sampler.n)), value)}

    def leaves(self):
        return [self.nodes[slot] for slot in sorted(self.nodes) if self.nodes[slot].is_leaf]

    def options(self, node, j):
        """Cuts or levels that the path leaves to column j."""
        levels, cuts = self.sampler.n_levels[j], self.sampler.n_cuts[j]
        left = set(range(levels)) if levels else set(range(cuts))
        while node.parent is not None:
            above = node.parent
            if above.rule[0] == j:
                to_left = above.left is node
                if levels:
                    left &= {v for v in left if bool(above.rule[1] >> v & 1) == to_left}
                else:
                    left = {c for c in left if (c < above.rule[1] if to_left else c > above.rule[1])}
            node = above
        return left if len(left) >= (2 if levels else 1) else set()

    def has_rule(self, node):
        return any(self.options(node, j) for j in range(len(self.sampler.n_cuts)))

    def split_probability(self, node):
        return self.prior.alpha * (1.0 + node.depth) ** -self.prior.beta if self.has_rule(node) else 0.0

    def growable(self):
        return [x for x in self.leaves() if len(x.rows) >= 2 * self.prior.min_leaf and self.has_rule(x)]

    def prunable(self):
        inner = [self.nodes[slot] for slot in sorted(self.nodes) if not self.nodes[slot].is_leaf]
        return [x for x in inner if x.left.is_leaf and x.right.is_leaf]

    def pairs(self):
        """Split children of split nodes."""
        inner = [self.nodes[slot] for slot in sorted(self.nodes) if not self.nodes[slot].is_leaf]
        return [x for x in inner if x.parent is not None]

    def chance(self):
        shares = (self.prior.grow, 1 - self.prior.grow - self.prior.swap, self.prior.swap)
        choices = (self.growable(), self.prunable(), self.pairs())
        return sum(share for share, some in zip(shares, choices) if some)

    def draw_rule(self, rng, node):
        usable = [j for j in range(len(self.sampler.n_cuts)) if self.options(self.nodes[0], j)]
        while True:
            j = usable[int(rng.random() * len(usable))]
            options = sorted(self.options(node, j))
            if options:
                break
        if self.sampler.n_levels[j] == 0:
            cut = options[0] + int(rng.random() * len(options))
        else:
            everything = sum(1 << v for v in options)
            cut = 0
            while cut in (0, everything):
                cut = sum(1 << v for v in options if rng.random() < 0.5)
        return j, cut, int(rng.random() < 0.5)

    def goes_right(self, rule, i):
        j, cut, miss = rule
        code = int(self.sampler.codes[j, i])
        if code == MISSING:
            return bool(miss)
        return not cut >> code & 1 if self.sampler.n_levels[j] else code > cut

    def sides(self, rows, rule):
        right = [i for i in rows if self.goes_right(rule, i)]
        return [i for i in rows if i not in set(right)], right

    def attach(self, node, rule):
        node.rule = rule
        for name, rows in zip(("left", "right"), self.sides(node.rows, rule)):
            slot = min(set(range(1, len(self.nodes) + 2)) - set(self.nodes))
            self.nodes[slot] = Node(slot, node, rows, node.value)
            setattr(node, name, self.nodes[slot])

    def detach(self, node):
        for child in (node.left, node.right):
            del self.nodes[child.slot]
        node.rule = node.left = node.right = None

    def structure_log_prior(self):
        """Log probability of the splits and stops; the rules' own probabilities cancel."""
        total = 0.0
        for node in self.nodes.values():
            p = self.split_probability(node)
            total += math.log1p(-p) if node.is_leaf else math.log(p)
        return total

    def rules_log_prior(self):
        """Log probability of the rules given the splits; -inf where a path leaves a rule out."""
        total = 0.0
        for node in self.nodes.values():
            if node.is_leaf:
                continue
            j, cut, _ = node.rule
            columns = [k for k in range(len(self.sampler.n_cuts)) if self.options(node, k)]
            options = self.options(node, j)
            number = len(options)
            if self.sampler.n_levels[j]:
                left = {v for v in range(62) if cut >> v & 1}
                possible, number = left < options and left, 2**number - 2
            else:
                possible = cut in options
            if not possible:
                return -math.inf
            total -= math.log(len(columns) * number)
        return total

    def log_likelihood(self):
        return sum(self.sampler.leaf_score(self, leaf.rows) for leaf in self.leaves())

    def step(self, rng):
        chance = self.chance()
        if chance > 0:
            growable, prunable, prior = self.growable(), self.prunable(), self.prior
            u = rng.random() * chance + (0.0 if growable else prior.grow)
            move = 0 if u < prior.grow else (1 if u < prior.grow + prior.prune else 2)
            if prior.swap and self.pairs() and u >= 1 - prior.swap:
                move = 3
            choices = (growable, prunable, prunable, self.pairs())[move]
            node = choices[int(rng.random() * len(choices))]
            (self.grow, self.prune, self.change, self.swap)[move](rng, node)
        for leaf in self.leaves():
            leaf.value = self.sampler.draw_value(rng, self, leaf.rows)

    def score(self):
        return self.structure_log_prior() + self.log_likelihood()

    def grow(self, rng, node):
        rule = self.draw_rule(rng, node)
        if min(map(len, self.sides(node.rows, rule))) < self.prior.min_leaf:
            return
        before = self.score() + math.log(self.prior.grow / self.chance() / len(self.growable()))
        self.attach(node, rule)
        after = self.score() + math.log(self.prior.prune / self.chance() / len(self.prunable()))
        if math.log(1 - rng.random()) >= after - before:
            self.detach(node)

    def prune(self, rng, node):
        kept = (node.rule, node.left, node.right)
        before = self.score() + math.log(self.prior.prune / self.chance() / len(self.prunable()))
        self.detach(node)
        after = self.score() + math.log(self.prior.grow / self.chance() / len(self.growable()))
        if math.log(1 - rng.random()) >= after - before:
            node.rule, node.left, node.right = kept
            self.nodes |= {child.slot: child for child in kept[1:]}

    def change(self, rng, node):
        rule, old = self.draw_rule(rng, node), (node.rule, node.left.rows, node.right.rows)
        left, right = self.sides(node.rows, rule)
        if min(len(left), len(right)) < self.prior.min_leaf:
            return
        before = self.score() - math.log(self.chance())
        node.rule, node.left.rows, node.right.rows = rule, left, right
        after = self.score() - math.log(self.chance())
        if math.log(1 - rng.random()) >= after - before:
            node.rule, node.left.rows, node.right.rows = old

    def swap(self, rng, child):
        parent = child.parent
        before = self.rules_log_prior() + self.score() - math.log(self.chance())
        kept = {slot: node.rows for slot, node in self.nodes.items()}
        parent.rule, child.rule = child.rule, parent.rule
        rules = self.rules_log_prior()
        if rules > -math.inf:
            self.deal(parent)
            if min(len(leaf.rows) for leaf in self.leaves()) >= self.prior.min_leaf:
                after = rules + self.score() - math.log(self.chance())
                if math.log(1 - rng.random()) < after - before:
                    return
        parent.rule, child.rule = child.rule, parent.rule
        for slot, rows in kept.items():
            self.nodes[slot].rows = rows

    def deal(self, node):
        """Send a node's rows down again."""
        if not node.is_leaf:
            node.left.rows, node.right.rows = self.sides(node.rows, node.rule)
            self.deal(node.left)
            self.deal(node.right)

    def at_rows(self):
        out = np.empty(self.sampler.n)
        for leaf in self.leaves():
            out[leaf.rows] = leaf.value
        return out


class NaiveSampler:
    """A chain on the problem and hyperparameters that the compiled one takes."""

    def __init__(self, problem, hyper):
        self.codes, self.n = problem.codes, problem.codes.shape[1]
        self.n_cuts, self.n_levels = problem.rules.n_cuts, problem.rules.n_levels
        self.problem, self.hyper = problem, hyper
        self.y, self.sigma2 = problem.target, problem.sigma2
        prior = hyper.mean_prior(spread=problem.spread)
        self.leaf_var, self.leaf_nu, self.leaf_lam = prior.leaf_var[0], prior.leaf_nu, prior.leaf_lam
        self.mean = [NaiveTree(self, 0.0, prior) for _ in range(hyper.n_trees)]
        self.spread = [NaiveTree(self, 1.0, hyper.variance_prior()) for _ in range(hyper.n_variance_trees)]
        self.gamma = np.full(problem.z.shape[1], hyper.gamma_mean)

    def precision(self, without=None):
        """1 / sigma_i^2, without one variance tree."""
        factor = np.ones(self.n)
        for tree in self.spread:
            if tree is not without:
                factor *= tree.at_rows()
        return self.problem.weight * np.exp(-self.problem.z @ self.gamma) / factor / self.sigma2

    def residual(self, without=None):
        return self.y - sum((tree.at_rows() for tree in self.mean if tree is not without), np.zeros(self.n))

    def leaf_score(self, tree, rows):
        if tree.prior.scale:
            a, half = tree.prior.shape, 0.5 * len(rows)
            rest = 0.5 * (self.residual() ** 2 * self.precision(tree))[rows].sum()
            score = math.lgamma(a + half) - math.lgamma(a) + a * math.log(tree.prior.rate)
            return score - (a + half) * math.log(tree.prior.rate + rest)
        r, w, v = self.residual(tree)[rows], self.precision()[rows], self.leaf_var
        return 0.5 * v * (w @ r) ** 2 / (1 + v * w.sum()) - 0.5 * math.log(1 + v * w.sum())

    def draw_value(self, rng, tree, rows):
        if tree.prior.scale:
            rest = 0.5 * (self.residual() ** 2 * self.precision(tree))[rows].sum()
            return (tree.prior.rate + rest) / rng.standard_gamma(tree.prior.shape + 0.5 * len(rows))
        r, w = self.residual(tree)[rows], self.precision()[rows]
        tight = 1 / self.leaf_var + w.sum()
        return w @ r / tight + rng.standard_normal() / math.sqrt(tight)

    def log_posterior(self, gamma):
        eta = self.problem.z @ gamma
        ratio = self.residual() ** 2 * self.problem.weight * np.exp(-eta) / self.sigma2
        off = gamma - self.hyper.gamma_mean
        value = -0.5 * (eta.sum() + ratio.sum() + off @ off / self.hyper.gamma_var)
        return value, 0.5 * self.problem.z.T @ (ratio - 1) - off / self.hyper.gamma_var

    def gamma_step(self, rng):
        z, k = self.problem.z, len(self.gamma)
        information = 0.5 * z.T @ z + np.eye(k) / self.hyper.gamma_var
        mode = self.gamma.copy()
        for _ in range(200):
            step = np.linalg.solve(information, self.log_posterior(mode)[1])
            while self.log_posterior(mode + step)[0] < self.log_posterior(mode)[0] - 1e-9:
                step = step / 2
            mode = mode + step
        upper = np.linalg.cholesky(information).T
        direction = np.linalg.solve(upper, rng.standard_normal(k))
        proposal = mode + direction * math.sqrt(4.0 / rng.standard_gamma(4.0))

        def log_t(gamma):
            return -0.5 * (8 + k) * math.log1p((gamma - mode) @ information @ (gamma - mode) / 8)

        log_ratio = self.log_posterior(proposal)[0] - self.log_posterior(self.gamma)[0]
        log_ratio += log_t(self.gamma) - log_t(proposal)
        if math.log(1 - rng.random()) < log_ratio:
            self.gamma = proposal

    def iterate(self, rng):
        for tree in self.mean:
            tree.step(rng)
        squares = (self.residual() ** 2 * self.precision()).sum() * self.sigma2
        nu, lam = self.hyper.nu, self.problem.lam
        self.sigma2 = 0.5 * (nu * lam + squares) / rng.standard_gamma(0.5 * (nu + self.n))
        if self.leaf_nu:
            values = np.array([leaf.value for tree in self.mean for leaf in tree.leaves()])
            rate = 0.5 * (self.leaf_nu * self.leaf_lam + values @ values)
            self.leaf_var = rate / rng.standard_gamma(0.5 * (self.leaf_nu + len(values)))
        if len(self.gamma):
            self.gamma_step(rng)
        for tree in self.spread:
            tree.step(rng)
