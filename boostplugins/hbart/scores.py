"""What all moves weigh: marginal likelihoods of leaves, and the chances of the moves.

A mean forest adds leaf values to f, with the marginal likelihood of eq. 19 (Bleich and Kapelner,
2014); a variance forest multiplies the variance by leaf factors with inverse-gamma priors (Pratola
et al., 2020).
"""

from __future__ import annotations

import math

from boostplugins.hbart.compiling import inner
from boostplugins.hbart.trees import census, n_pairs


@inner
def leaf_score(total, weight, count, prior, precision):  # type: ignore[no-untyped-def]
    """Log marginal likelihood of a leaf, less what all partitions of the rows share.

    Mean: eq. 19 with total = sum of w R and weight = sum of w, both times 1 / sigma^2. Variance:
    log of the integral of s^-n exp(-S / (2 s^2)) against the inverse-gamma prior of s^2.
    """
    if prior.scale:
        half = 0.5 * count * prior.informed
        score = (
            math.lgamma(prior.shape + half) - math.lgamma(prior.shape) + prior.shape * math.log(prior.rate)
        )
        return score - (prior.shape + half) * math.log(prior.rate + 0.5 * precision * total)
    leaf_var = prior.leaf_var[0]
    spread = 1.0 + leaf_var * precision * weight
    return 0.5 * (leaf_var * (precision * total) ** 2 / spread - math.log(spread))


@inner
def node_score(t, node, forest, precision):  # type: ignore[no-untyped-def]
    """Log marginal likelihood of a leaf from its gathered sums."""
    scratch = forest.scratch
    count = forest.trees.rows[t, node]
    return leaf_score(scratch.sum_of[node], scratch.weight_of[node], count, forest.prior, precision)


@inner
def allowed(t, forest):  # type: ignore[no-untyped-def]
    """Numbers of growable leaves and prunable nodes, and the sum of the chances of the moves allowed."""
    trees, prior = forest.trees, forest.prior
    growable, prunable = census(trees, t, forest.rules, prior)
    chance = prior.grow if growable > 0 else 0.0
    if prunable > 0:
        chance += 1.0 - prior.grow - prior.swap
    if n_pairs(trees, t) > 0:
        chance += prior.swap
    return growable, prunable, chance
