"""Metrics against scoringrules, scikit-learn and numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scoringrules as sr
from scipy import stats
from sklearn.metrics import roc_auc_score

from boostplugins import metrics
from boostplugins.predictive import Predictive

RNG = np.random.default_rng(0)
N = 400
MU, SIGMA = RNG.normal(size=N), np.exp(RNG.normal(size=N) * 0.5)
Y = MU + SIGMA * RNG.normal(size=N)
DIST = Predictive("normal", np.stack([MU, SIGMA], axis=1))
WEIGHT = RNG.integers(0, 4, N).astype(float)


def repeated(values, axis=0):
    return np.repeat(values, WEIGHT.astype(int), axis=axis)


def test_nll_equals_scipy_with_its_constant():
    assert metrics.nll(Y, DIST) == pytest.approx(-stats.norm.logpdf(Y, MU, SIGMA).mean(), abs=1e-12)


def test_crps_equals_scoringrules():
    assert metrics.crps(Y, DIST) == pytest.approx(sr.crps_normal(Y, MU, SIGMA).mean(), abs=1e-12)


@pytest.mark.parametrize(("estimator", "theirs"), [("plain", "nrg"), ("fair", "fair")])
def test_ensemble_crps_equals_scoringrules(estimator, theirs):
    members = DIST.sample(7, random_state=1)
    ours = metrics.crps_ensemble(Y, members, estimator=estimator)
    assert ours == pytest.approx(sr.crps_ensemble(Y, members, estimator=theirs).mean(), abs=1e-12)


def test_ensemble_crps_keeps_its_digits_far_from_zero():
    members = DIST.sample(7, random_state=1)
    near, far = metrics.crps_ensemble(Y, members), metrics.crps_ensemble(Y + 1e8, members + 1e8)
    assert far == pytest.approx(near, rel=1e-6)


def test_j03_crps_of_few_or_missing_members():
    assert metrics.crps_ensemble(Y, MU[:, None]) == pytest.approx(np.abs(Y - MU).mean())
    assert metrics.crps_ensemble(2.0, [[1.0]]) == 1.0
    with pytest.raises(ValueError, match="needs at least 2 members a row, got 1"):
        metrics.crps_ensemble(Y, MU[:, None], estimator="fair")
    many = DIST.sample(2000, random_state=2)
    assert metrics.crps_ensemble(Y, many) == pytest.approx(metrics.crps(Y, DIST), rel=0.01)
    members = DIST.sample(3, random_state=3)
    members[5, 1] = np.nan
    with pytest.raises(ValueError, match="nan='skip'"):
        metrics.crps_ensemble(Y, members)
    alone = metrics.crps_ensemble(Y[5:6], members[5:6, [0, 2]])
    assert metrics.crps_ensemble(Y[5:6], members[5:6], nan="skip") == pytest.approx(alone, abs=1e-14)


def test_interval_score_equals_scoringrules():
    ends = DIST.interval(0.8)
    theirs = sr.interval_score(Y, ends[:, 0], ends[:, 1], 0.2).mean()
    assert metrics.interval_score(Y, ends, 0.8) == pytest.approx(theirs, abs=1e-10)
    with pytest.raises(ValueError, match=r"lower <= upper, got \[nan, 1.0\] \(1 rows in all\)"):
        metrics.coverage([0.0, 0.0], [[np.nan, 1.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="lower <= upper"):
        metrics.interval_score(Y, ends[:, ::-1], 0.8)


def test_calibration_errors_by_hand():
    # q(tau) of a standard normal against y = 0: below it for tau > 1/2 only.
    dist = Predictive("normal", np.tile([0.0, 1.0], (3, 1)))
    tau = np.arange(1, 100) / 100
    by_hand = np.abs((tau > 0.5) - tau).mean()
    assert metrics.ece(np.zeros(3), dist) == pytest.approx(by_hand, abs=1e-12)
    assert metrics.tce(np.zeros(3), dist) == pytest.approx(np.mean([0.1, 0.2, 0.3, 0.4]), abs=1e-12)
    width = np.mean([2 * stats.norm.ppf(1 - t) for t in tau[:49]])
    assert metrics.sharpness(dist) == pytest.approx(width, abs=1e-12)
    assert metrics.coverage([0.0, 2.0], [[0.0, 1.0], [0.0, 1.0]]) == 0.5


def test_pit_is_uniform_for_the_true_distribution():
    # False-alarm rate 0.1 % a family with this fixed seed.
    assert stats.kstest(metrics.pit(Y, DIST), "uniform").pvalue > 0.001


def test_rejection_ratio():
    error = (Y - MU) ** 2
    assert metrics.prr(error, error) == pytest.approx(1.0)
    assert metrics.prr(error, -error) < 0
    assert metrics.prr(error, np.zeros(N)) == 0.0
    assert metrics.prr(np.ones(N), error) == 0.0
    # Three rows by hand: shares of the error removed after each third of the rows.
    oracle = np.trapezoid([0, 3 / 4, 1, 1], [0, 1 / 3, 2 / 3, 1]) - 0.5
    swapped = np.trapezoid([0, 1 / 4, 1, 1], [0, 1 / 3, 2 / 3, 1]) - 0.5
    assert metrics.prr([3.0, 1.0, 0.0], [2.0, 3.0, 1.0]) == pytest.approx(swapped / oracle)


def test_rejection_ratio_of_ties_is_the_mean_over_orders():
    error = np.array([3.0, 1.0, 0.0, 2.0])
    tied = metrics.prr(error, [1.0, 1.0, 0.0, 0.0])
    orders = [metrics.prr(error, np.array([1.0, 1.0 + a, 0.0, b])) for a in (-0.1, 0.1) for b in (-0.1, 0.1)]
    assert tied == pytest.approx(np.mean(orders))


def test_ood_auc_equals_scikit_learn():
    inside, outside = np.round(RNG.normal(size=80), 1), np.round(RNG.normal(size=50) + 1, 1)
    weight_in, weight_out = RNG.random(80), RNG.random(50)
    label = np.r_[np.zeros(80), np.ones(50)]
    score = np.r_[inside, outside]
    assert metrics.ood_auc(inside, outside) == pytest.approx(roc_auc_score(label, score), abs=1e-12)
    ours = metrics.ood_auc(inside, outside, weight_in, weight_out)
    theirs = roc_auc_score(label, score, sample_weight=np.r_[weight_in, weight_out])
    assert ours == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("n_bins", range(1, 21))
def test_j01_probabilities_of_zero_and_one_are_binned(n_bins):
    proba, y = np.array([0.0, 1.0, 1.0, 0.5]), np.array([0, 1, 1, 1])
    table = metrics.reliability(y, proba, n_bins)
    assert table.count.sum() == 4
    # The lone error is 0.5, of one row in four, unless its bin also holds another row.
    shared = {1: abs(3 / 4 - 2.5 / 4), 2: 3 / 4 * abs(1 - 2.5 / 3)}
    assert metrics.class_ece(y, proba, n_bins) == pytest.approx(shared.get(n_bins, 0.125))


@pytest.mark.parametrize("n_bins", [10, 100])
def test_probabilities_at_edges_belong_to_the_bin_above(n_bins):
    edges = np.array([float(f"{k / n_bins:.2f}") for k in range(n_bins)])
    assert (metrics.reliability(np.ones(n_bins), edges, n_bins).count == 1).all()


def test_j05_quantiles_do_not_cross_and_cover():
    grid = np.arange(1, 100) / 100
    mixture = Predictive("normal", np.stack([DIST.theta, DIST.theta[::-1]], axis=1))
    for dist in (DIST, mixture):
        assert (np.diff([dist.ppf(q) for q in grid], axis=0) >= 0).all()
    hits = metrics.coverage(Y, DIST.interval(0.9)) * N
    assert stats.binom.ppf(0.005, N, 0.9) <= hits <= stats.binom.ppf(0.995, N, 0.9)
    with pytest.raises(ValueError, match="sigma of family normal must be finite and > 0"):
        Predictive("normal", [[0.0, 0.0]])


def test_scores_refuse_nan_and_keep_infinity():
    with pytest.raises(ValueError, match="finite"):
        metrics.nll([np.nan], DIST[:1])
    assert metrics.nll([-1.0], Predictive("gamma", [[1.0, 2.0]])) == np.inf  # an impossible response
    far = metrics.nll([1.0], Predictive("normal", [[0.0, 1e-200]]))  # squares beyond floating point
    assert far >= 1e300


@pytest.mark.parametrize(
    "metric",
    [
        lambda y, d, w: metrics.nll(y, d, w),
        lambda y, d, w: metrics.crps(y, d, w),
        lambda y, d, w: metrics.ece(y, d, w),
        lambda y, d, w: metrics.tce(y, d, w),
        lambda y, d, w: metrics.sharpness(d, w),
        lambda y, d, w: metrics.coverage(y, d.interval(0.5), w),
        lambda y, d, w: metrics.interval_score(y, d.interval(0.5), 0.5, w),
        lambda y, d, w: metrics.prr((y - d.mean()) ** 2, d.std(), w),
        lambda y, d, w: metrics.class_ece(y > 0, d.cdf(0.5), 7, w),
    ],
)
def test_whole_weights_equal_repeated_rows(metric):
    rows = repeated(np.arange(N))
    assert metric(Y, DIST, WEIGHT) == pytest.approx(metric(Y[rows], DIST[rows], None))


def test_whole_weights_equal_repeated_rows_of_draws():
    rows, draws = repeated(np.arange(N)), DIST.sample(5, random_state=0)
    weighted = metrics.crps_ensemble(Y, draws, WEIGHT)
    assert weighted == pytest.approx(metrics.crps_ensemble(Y[rows], draws[rows]))


@pytest.mark.parametrize("weight", [-1.0, np.nan])
def test_bad_weights_are_refused(weight):
    weights = np.ones(N)
    weights[3] = weight
    with pytest.raises(ValueError, match="sample_weight must be"):
        metrics.nll(Y, DIST, weights)
