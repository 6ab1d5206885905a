"""HBARTRegressor, BARTRegressor, BARTClassifier: the contract with scikit-learn, and what they estimate."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from boostplugins import BARTClassifier, BARTRegressor, HBARTRegressor, HBARTRegressorCV
from boostplugins.estimators._bart_base import MixingWarning
from boostplugins.hbart.polynomials import OrthogonalPolynomials

SHORT = {"n_trees": 5, "n_burn": 15, "n_draws": 15, "n_chains": 2, "random_state": 0}
FEW = {"n_trees": 20, "n_burn": 100, "n_draws": 100, "n_chains": 2, "random_state": 0}
quiet = pytest.mark.filterwarnings("ignore::boostplugins.estimators._bart_base.MixingWarning")
PRECISIONS = {
    "check_sample_weight_equivalence_on_dense_data": "weights are precisions, and repeated rows change "
    "the order in which random numbers are used",
}


def line(n=250, seed=0):
    """Eq. 12 of the paper: y = 100 x + N(0, exp(7 x))."""
    x = np.linspace(0, 1, n)
    return x[:, None], 100 * x + np.exp(3.5 * x) * np.random.default_rng(seed).standard_normal(n)


@quiet
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:y is constant:UserWarning")
@parametrize_with_checks(
    [
        BARTRegressor(**SHORT),
        HBARTRegressor(**SHORT),
        HBARTRegressor(variance="forest", **SHORT),
        BARTClassifier(**SHORT),
    ],
    expected_failed_checks=lambda estimator: {} if isinstance(estimator, BARTClassifier) else PRECISIONS,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@quiet
@pytest.mark.parametrize("variance", ["log-linear", "forest"])
def test_noise_follows_the_features(variance):
    X, y = line()
    model = HBARTRegressor(variance=variance, **FEW).fit(X, y)
    constant = BARTRegressor(**FEW).fit(X, y)
    noise = model.posterior_draws(X[[25, 225]])["noise"].mean(axis=(0, 1))
    truth = np.exp(3.5 * X[[25, 225], 0])
    # Within a factor of 1.6 where the truth differs by 16 between the two rows.
    assert (np.abs(np.log(noise / truth)) < np.log(1.6)).all()
    error = np.sqrt(np.mean((model.predict(X) - 100 * X[:, 0]) ** 2))
    assert error < np.sqrt(np.mean((constant.predict(X) - 100 * X[:, 0]) ** 2))
    fresh = line(seed=1)[1]
    assert model.log_score(X, fresh) > constant.log_score(X, fresh) + 0.3


@quiet
def test_gamma_is_reported_in_the_users_units():
    X, y = line()
    one = HBARTRegressor(**FEW).fit(X, y).posterior_draws()["gamma"]
    other = HBARTRegressor(**FEW).fit(1000 * X + 7, y).posterior_draws()["gamma"]
    np.testing.assert_allclose(other * 1000, one, rtol=1e-2)
    # The oracle's estimate from the true errors of these data is 7.2; half the widths cover the rest.
    assert 5.5 < one.mean() < 8.5


@quiet
def test_swap_is_off_unless_given_a_chance():
    X, y = line(100)
    without = HBARTRegressor(**FEW).fit(X, y)
    zero = HBARTRegressor(**FEW, moves=(2.5 / 9, 2.5 / 9, 4 / 9, 0.0)).fit(X, y)
    np.testing.assert_array_equal(without.predict(X), zero.predict(X))
    assert set(without.acceptance_) == {"grow", "prune", "change", "gamma"}
    assert zero.acceptance_["swap"] == 0.0
    X = np.column_stack([X, np.random.default_rng(0).random(100)])
    model = HBARTRegressor(**FEW, beta=0.5, moves=(0.25, 0.25, 0.25, 0.25)).fit(X, y)
    assert 0.0 < model.acceptance_["swap"] < 1.0


@quiet
def test_the_interfaces_agree():
    X, y = line(80)
    model = HBARTRegressor(**FEW).fit(X, y)
    dist = model.predict_dist(X)
    assert dist.n_members == model.n_draws_ == 200
    np.testing.assert_allclose(model.predict(X), dist.mean(), rtol=1e-10)
    np.testing.assert_allclose(model.predict_interval(X), dist.interval(0.9))
    np.testing.assert_allclose(model.predict_quantiles(X, [0.05, 0.95]), dist.interval(0.9))
    np.testing.assert_allclose(model.predict_uncertainty(X).total, dist.var())
    assert model.log_score(X, y) == pytest.approx(dist.log_pdf(y).mean())
    draws = model.posterior_draws(X)
    assert draws["f"].shape == draws["noise"].shape == (2, 100, 80)
    assert draws["sigma"].shape == (2, 100)
    assert draws["gamma"].shape == (2, 100, 1)
    np.testing.assert_allclose(draws["f"].mean(axis=(0, 1)), model.predict(X))
    band = model.predict_credible_interval(X, 0.8)
    np.testing.assert_allclose(band.T, np.quantile(draws["f"].reshape(200, 80), [0.1, 0.9], axis=0))


@quiet
def test_mixture_is_thinned_only_beyond_its_limit(monkeypatch):
    X, y = line(50)
    model = BARTRegressor(**FEW).fit(X, y)
    monkeypatch.setattr("boostplugins.estimators._bart_results._LARGEST_MIXTURE", 50 * 100)
    assert model.predict_dist(X).n_members == 100
    assert model.predict_dist(X[:20]).n_members == 200


@quiet
def test_continuing_equals_a_longer_fit():
    X, y = line(60)
    long = HBARTRegressor(**FEW).fit(X, y)
    short = clone(long).set_params(n_draws=60).fit(X, y).sample_more(40)
    np.testing.assert_array_equal(long.predict(X), short.predict(X))
    np.testing.assert_array_equal(long.posterior_draws()["gamma"], short.posterior_draws()["gamma"])
    assert short.n_draws_ == 200


@quiet
def test_interruption_keeps_the_draws(monkeypatch):
    X, y = line(60)
    model = BARTRegressor(**{**FEW, "verbose": True}).fit(X, y)
    from boostplugins.hbart import chains

    calls = iter([False, True])

    def stop(name, start, total):
        def told(done):
            if start == FEW["n_burn"] and next(calls):
                raise KeyboardInterrupt

        return told

    monkeypatch.setattr("boostplugins.estimators._bart_base.show_progress", stop)
    monkeypatch.setattr(chains, "round_length", lambda run: 10)
    other = clone(model)
    with pytest.raises(KeyboardInterrupt):
        other.fit(X, y)
    assert other.interrupted_
    assert other.n_draws_ == 40
    expected = model.posterior_draws(X)["f"][:, :20]
    np.testing.assert_array_equal(other.posterior_draws(X)["f"], expected)


def test_mixing_warning_names_the_quantity():
    X, y = line(60)
    hasty = BARTRegressor(n_trees=5, n_burn=0, n_draws=10, n_chains=2, random_state=0)
    with pytest.warns(MixingWarning, match="split R-hat of .* is .*; raise n_burn and n_draws"):
        hasty.fit(X, y)
    other = clone(hasty)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(MixingWarning):
            other.fit(X, y)
    np.testing.assert_array_equal(other.predict(X), hasty.predict(X))  # the draws are there all the same


@quiet
def test_progress_goes_to_the_error_stream(capsys):
    BARTRegressor(**{**SHORT, "verbose": 1}).fit(*line(30))
    shown = capsys.readouterr()
    assert "BARTRegressor: iteration 30 of 30" in shown.err
    assert shown.out == ""


@quiet
def test_variance_features():
    X, y = line(60)
    X = np.column_stack([X, np.random.default_rng(0).random(60)])
    two = HBARTRegressor(**SHORT).fit(X, y)
    assert two.variance_names_ == ("x0", "x1")
    assert HBARTRegressor(variance_features=[0], **SHORT).fit(X, y).variance_names_ == ("x0",)
    none = HBARTRegressor(variance_features="none", **SHORT).fit(X, y)
    np.testing.assert_array_equal(none.predict(X), BARTRegressor(**SHORT).fit(X, y).predict(X))
    poly = HBARTRegressor(variance_features=OrthogonalPolynomials(2), **SHORT).fit(X, y)
    assert poly.posterior_draws()["gamma"].shape == (2, 15, 4)
    own = HBARTRegressor(variance_features=lambda X: np.log1p(X[:, 0]), **SHORT).fit(X, y)
    assert own.posterior_draws()["gamma"].shape == (2, 15, 1)


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"n_trees": 0}, "n_trees must be an integer >= 1, got 0"),
        ({"n_draws": 2.5}, "n_draws must be an integer"),
        ({"alpha": 1.0}, r"alpha must be a finite number in \(0, 1\)"),
        ({"k": -1}, "k must be"),
        ({"q": 1.5}, "q must be"),
        ({"moves": (0.5, 0.5, 0.5)}, "moves must be three or four chances"),
        ({"max_bins": 1}, "max_bins must be an integer >= 2"),
        ({"n_jobs": 0}, "n_jobs must be None or a non-zero integer"),
        ({"n_jobs": 1.5}, "n_jobs must be None or a non-zero integer"),
        ({"variance": "trees"}, "variance must be one of"),
        ({"variance_features": "x0"}, r"write \['x0'\] for one column"),
        ({"variance_features": ["nope"]}, "column 'nope' is not in X"),
        ({"variance": "forest", "variance_features": [0]}, "belong to variance='log-linear'"),
        ({"variance_features": lambda X: X[:5]}, "must return finite numbers of shape"),
    ],
)
def test_refusals(params, error):
    X, y = line(30)
    with pytest.raises((ValueError, TypeError), match=error):
        HBARTRegressor(**{**SHORT, **params}).fit(X, y)


@quiet
def test_classifier_estimates_a_probit():
    # 4000 rows of a smooth probability: mean error of 100 cells of 40 rows is about .03.
    rng = np.random.default_rng(0)
    X = rng.random((1500, 2))
    p = norm.cdf(3 * X[:, 0] - 1.5)
    model = BARTClassifier(**FEW).fit(X, rng.random(1500) < p)
    found = model.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert np.abs(found[:, 1] - p).mean() < 0.06
    low, high = model.predict_credible_interval(X).T
    assert ((low < found[:, 1]) & (found[:, 1] < high)).mean() > 0.99
    uncertainty = model.predict_uncertainty(X)
    assert (uncertainty.knowledge >= 0).all()
    assert model.posterior_draws(X[:3])["p"].shape == (2, 100, 3)


@quiet
def test_what_the_trees_use():
    rng = np.random.default_rng(0)
    X = rng.random((300, 4))
    y = 10 * ((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)) + 0.5 * rng.standard_normal(300)
    model = BARTRegressor(**FEW).fit(X, y)
    share = model.inclusion_proportions()
    assert share.sum() == pytest.approx(1)
    assert share[:2].min() > share[2:].max()
    pairs = model.interaction_counts()
    np.testing.assert_array_equal(pairs, pairs.T)
    off = pairs - np.diag(np.diag(pairs))
    assert off.max() == off[0, 1]
    curve = BARTRegressor(**FEW).fit(X, 10 * X[:, 2]).partial_dependence(X, 2, grid=[0.1, 0.9])
    assert curve["mean"][1] - curve["mean"][0] == pytest.approx(8, abs=1)
    assert (curve["lower"] <= curve["mean"]).all()


@quiet
def test_cross_validation_prefers_the_better_prior():
    X, y = line(200)
    order = np.random.default_rng(0).permutation(200)
    base = HBARTRegressor(**{**FEW, "n_chains": 1})
    grid = {"gamma_prior_variance": [1e-4, 1000.0]}
    model = HBARTRegressorCV(base, grid, cv=3).fit(X[order], y[order])
    assert model.best_params_ == {"gamma_prior_variance": 1000.0}
    assert len(model.cv_results_) == 2
    assert model.predict_interval(X[:2]).shape == (2, 2)


@quiet
def test_to_arviz_hands_over_the_dictionary(monkeypatch):
    import sys
    import types

    stub = types.SimpleNamespace(__version__="0.18.0", from_dict=lambda posterior: posterior)
    monkeypatch.setitem(sys.modules, "arviz", stub)
    X, y = line(30)
    draws = HBARTRegressor(**SHORT).fit(X, y).to_arviz(X[:2])
    assert set(draws) == {"sigma", "gamma", "f", "noise"}
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match="arviz"):
        HBARTRegressor(**SHORT).fit(X, y).to_arviz()
