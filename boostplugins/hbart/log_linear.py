"""The log-linear variance model: log sigma_i^2 = log sigma^2 + z_i' gamma, and its Metropolis step.

Given the residuals, log p(gamma) = -sum(z_i' gamma)/2 - sum(e_i^2 w_i exp(-z_i' gamma)) / (2 sigma^2)
- (gamma - gamma_0)' S^-1 (gamma - gamma_0) / 2, which is concave. Its expected information,
P = Z'Z / 2 + S^-1, does not depend on gamma.

* ``"mode"``: propose from a multivariate t with 8 degrees of freedom at the mode with scale P^-1.
  The mode is found by damped Fisher scoring to far below a standard error, so the proposal does
  not depend on the current gamma and its tails are heavier than the target's.
* ``"gamerman"``: propose from N(a(gamma), P^-1) with a(gamma) = gamma + P^-1 grad(gamma), one scoring
  step. The ratio printed as eq. 16 of Bleich and Kapelner (2014) has the proposal densities inverted;
  here they are q(gamma | gamma*) / q(gamma* | gamma), as Metropolis-Hastings requires. Far from the
  mode this proposal overshoots and the chain may never move.
* ``"slice"``: no proposal of the whole vector hits the posterior of dozens of covariates. The
  elliptical slice sampler of Murray, Adams and MacKay (2010), around the same t as Nishihara, Murray
  and Adams (2014) have it, always moves: given the scale s of the t as a mixture of normals, along an
  ellipse through gamma and a draw of N(mode, s P^-1), to a point of the slice under posterior / t.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from boostplugins.hbart.compiling import inner, inner_new, inner_sum

# Rows' variances differ from sigma^2 by factors within exp(+-60): the prior excludes more, so that
# many covariates under a vague prior cannot overflow. Predictions for new rows keep to it too.
MOST_LOG_RATIO = 60.0
# After so many cuts at random an ellipse's bracket is below rounding: gamma stays, as it almost does.
_MOST_SHRINKS = 100


class LogLinear(NamedTuple):
    """The variance model's data, prior and state."""

    zt: np.ndarray  # float32 (k, n): covariates, centred and scaled
    sums: np.ndarray  # float64 (k,): sums of zt over rows
    given: np.ndarray  # float32 (n,): observation weights
    centre: np.ndarray  # float64 (k,): prior mean gamma_0
    tight: np.ndarray  # float64 (k,): prior precisions
    factor: np.ndarray  # float64 (k, k): lower Cholesky factor of P
    gamma: np.ndarray  # float64 (k,): current value
    mode: np.ndarray  # float64 (k,): where the last search for the mode ended
    gamerman: bool
    slices: bool
    tally: np.ndarray  # int64 (2,): proposed, accepted


@inner_new
def log_posterior(model, residual, gamma, precision, slope):  # type: ignore[no-untyped-def]
    """Log posterior of gamma up to a constant; its gradient goes to `slope`."""
    k, n = model.zt.shape
    total = 0.0
    for j in range(k):
        off = gamma[j] - model.centre[j]
        total -= 0.5 * (gamma[j] * model.sums[j] + model.tight[j] * off * off)
        slope[j] = -0.5 * model.sums[j] - model.tight[j] * off
    scaled = np.empty(1024, dtype=np.float32)
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        part = scaled[: stop - start]
        predictor(model.zt[:, start:stop], gamma, part)
        ratio = standardise(residual[start:stop], model.given[start:stop], precision, part)
        total -= 0.5 * ratio
        for j in range(k):
            slope[j] += 0.5 * dot(model.zt[j, start:stop], part)
    return total


@inner
def predictor(zt, gamma, out):  # type: ignore[no-untyped-def]
    """Set out to z' gamma for each column of zt."""
    for i in range(len(out)):
        out[i] = np.float32(0.0)
    for j in range(len(gamma)):
        by = np.float32(gamma[j])
        for i in range(len(out)):
            out[i] += by * zt[j, i]


@inner_sum
def dot(a, b):  # type: ignore[no-untyped-def]
    """Inner product of two short vectors."""
    total = np.float32(0.0)
    for i in range(len(a)):
        total += a[i] * b[i]
    return np.float64(total)


@inner
def standardise(residual, given, precision, out):  # type: ignore[no-untyped-def]
    """Turn z' gamma into e^2 w exp(-z' gamma) / sigma^2 in place, and return the sum.

    The sum is infinite where |z' gamma| exceeds `MOST_LOG_RATIO`, which the prior excludes.
    """
    by = np.float32(precision)
    total = 0.0
    for i in range(len(out)):
        if np.abs(out[i]) > 60.0:
            total = np.inf
        out[i] = residual[i] * residual[i] * given[i] * by * np.exp(-out[i])
        total += np.float64(out[i])
    return total


@inner
def solve_factor(factor, b, transpose):  # type: ignore[no-untyped-def]
    """Solve L x = b, or L' x = b, in place."""
    k = len(b)
    for step in range(k):
        i = k - 1 - step if transpose else step
        for other in range(step):
            j = k - 1 - other if transpose else other
            b[i] -= (factor[j, i] if transpose else factor[i, j]) * b[j]
        b[i] /= factor[i, i]


@inner
def scoring_step(factor, slope, step):  # type: ignore[no-untyped-def]
    """Set step to P^-1 slope and return its squared length in units of posterior standard errors."""
    for j in range(len(step)):
        step[j] = slope[j]
    solve_factor(factor, step, False)
    length = 0.0
    for j in range(len(step)):
        length += step[j] * step[j]
    solve_factor(factor, step, True)
    return length


@inner_new
def find_mode(model, residual, precision, slope, step):  # type: ignore[no-untyped-def]
    """Move `model.mode` to the mode by Fisher scoring; a step that lowers the log posterior is halved."""
    mode = model.mode
    here = log_posterior(model, residual, mode, precision, slope)
    work = np.empty((2, len(mode)))
    trial, trial_slope = work[0], work[1]
    for _ in range(100):
        length = scoring_step(model.factor, slope, step)
        if length < 1e-7:
            break
        better = False
        for _ in range(30):
            for j in range(len(mode)):
                trial[j] = mode[j] + step[j]
            there = log_posterior(model, residual, trial, precision, trial_slope)
            better = there >= here - 1e-5 * (1.0 + abs(here))
            if better:
                break
            for j in range(len(mode)):
                step[j] *= 0.5
        if not better:
            break
        for j in range(len(mode)):
            mode[j] = trial[j]
            slope[j] = trial_slope[j]
        here = there


@inner
def distance(factor, a, b):  # type: ignore[no-untyped-def]
    """Squared distance (a - b)' P (a - b) = |L' (a - b)|^2."""
    total = 0.0
    for j in range(len(a)):
        part = 0.0
        for i in range(j, len(a)):
            part += factor[i, j] * (a[i] - b[i])
        total += part * part
    return total


@inner_new
def gamma_step(rng, model, residual, weight, precision):  # type: ignore[no-untyped-def]
    """One Metropolis-Hastings update of gamma; an accepted one also sets the rows' weights."""
    k = len(model.gamma)
    work = np.empty((5, k))
    slope, step, from_here, proposal, back = work[0], work[1], work[2], work[3], work[4]
    if not model.gamerman:
        find_mode(model, residual, precision, slope, step)
    if model.slices:
        model.tally[0] += 1
        if slice_step(rng, model, residual, precision, work):
            model.tally[1] += 1
            set_weights(model, weight)
        return
    here = log_posterior(model, residual, model.gamma, precision, slope)
    scoring_step(model.factor, slope, step)
    for j in range(k):
        from_here[j] = model.gamma[j] + step[j] if model.gamerman else model.mode[j]
        step[j] = rng.standard_normal()
    solve_factor(model.factor, step, True)
    spread = 1.0 if model.gamerman else math.sqrt(4.0 / rng.standard_gamma(4.0))
    for j in range(k):
        proposal[j] = from_here[j] + spread * step[j]
    there = log_posterior(model, residual, proposal, precision, slope)
    scoring_step(model.factor, slope, step)
    for j in range(k):
        back[j] = proposal[j] + step[j] if model.gamerman else model.mode[j]
    log_jump = log_proposal(model, model.gamma, back) - log_proposal(model, proposal, from_here)
    model.tally[0] += 1
    if math.log(1.0 - rng.random()) < there - here + log_jump:
        model.tally[1] += 1
        for j in range(k):
            model.gamma[j] = proposal[j]
        set_weights(model, weight)


@inner_new
def slice_step(rng, model, residual, precision, work):  # type: ignore[no-untyped-def]
    """Move gamma along an ellipse around the mode; returns whether it moved."""
    k = len(model.gamma)
    slope, draw, start, trial = work[0], work[1], work[2], work[3]
    shape = 4.0 + 0.5 * distance(model.factor, model.gamma, model.mode)
    spread = math.sqrt(shape / rng.standard_gamma(4.0 + 0.5 * k))
    for j in range(k):
        start[j] = model.gamma[j] - model.mode[j]
        draw[j] = rng.standard_normal()
    solve_factor(model.factor, draw, True)
    level = log_posterior(model, residual, model.gamma, precision, slope)
    level += math.log(1.0 - rng.random()) - log_proposal(model, model.gamma, model.mode)
    high = 2.0 * math.pi * rng.random()
    low, angle = high - 2.0 * math.pi, high
    for _ in range(_MOST_SHRINKS):
        for j in range(k):
            trial[j] = model.mode[j] + math.cos(angle) * start[j] + math.sin(angle) * spread * draw[j]
        height = log_posterior(model, residual, trial, precision, slope)
        if height - log_proposal(model, trial, model.mode) > level:
            for j in range(k):
                model.gamma[j] = trial[j]
            return True
        if angle < 0.0:
            low = angle
        else:
            high = angle
        angle = low + (high - low) * rng.random()
    return False


@inner
def log_proposal(model, to, centre):  # type: ignore[no-untyped-def]
    """Log density of a proposal around its centre, up to a constant."""
    squared = distance(model.factor, to, centre)
    if model.gamerman:
        return -0.5 * squared
    return -0.5 * (8.0 + len(to)) * math.log1p(squared / 8.0)


@inner
def set_weights(model, weight):  # type: ignore[no-untyped-def]
    """Set the rows' relative precisions, w_i exp(-z_i' gamma)."""
    n = len(weight)
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        predictor(model.zt[:, start:stop], model.gamma, weight[start:stop])
    for i in range(n):
        weight[i] = model.given[i] * np.exp(-weight[i])
