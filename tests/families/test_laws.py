"""Laws that every family obeys, whatever discovery finds."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest

import boostplugins.families as package
from boostplugins.families import families, family_from_dict, get_family
from boostplugins.families._crps import numeric_crps
from tests.families.cases import FAMILIES, IDS, draws, raws

each = pytest.mark.parametrize("family", FAMILIES, ids=IDS)
N_ROWS = 6


def panels(family, theta):
    """Ends between which the density is smooth, far into both tails."""
    levels = np.array([*10.0 ** np.arange(-14, -1), 0.05, 0.2, 0.4, 0.5])
    bottom, top = 0.0, 1.0
    for atom in family.atoms:
        if atom == family.support.low:
            bottom = float(family.cdf(atom, theta))
        else:
            top = float(family.cdf(np.nextafter(atom, -np.inf), theta))
    q = bottom + (top - bottom) * np.unique([*levels, *(1 - levels)])
    ends = np.append(family.ppf(np.append(q, 0.6), theta), family.atoms)
    return np.unique(np.append(ends, family.support.low) if np.isfinite(family.support.low) else ends)


def integral(family, theta, function):
    """Integral of function(y) times the density of one set of parameters."""
    if family.discrete:
        top = max(float(family.ppf(1 - 1e-13, theta)), 1.0) + 40
        y = np.arange(0.0, top + 1)
        y = y[family.support.contains(y)]
        return np.tensordot(np.exp(family.log_pdf(y, theta)), function(y), axes=(0, 0))
    nodes, weights = np.polynomial.legendre.leggauss(60)
    total = 0.0
    ends = panels(family, theta)
    for left, right in itertools.pairwise(ends):
        # Square the distance from a lower end that is a limit: densities may be infinite there.
        s = 0.5 * (nodes + 1)
        power = 8 if left in (family.support.low, *family.atoms) else 1
        y = left + (right - left) * s**power
        step = 0.5 * weights * (right - left) * power * s ** (power - 1)
        inside = family.support.contains(y)
        y, step = y[inside], step[inside]
        total = total + np.tensordot(step * np.exp(family.log_pdf(y, theta)), function(y), axes=(0, 0))
    for atom in family.atoms:
        y = np.array([atom])
        total = total + np.exp(family.log_pdf(y, theta))[0] * function(y)[0]
    return total


@each
def test_score_equals_finite_difference(family):
    raw = raws(family, 60)
    y = draws(family, family.theta(raw))
    score, _ = family.score_and_fisher(y, raw)
    for k in range(family.n_params):
        step = np.zeros(family.n_params)
        step[k] = 1e-4
        value = [family.log_pdf(y, family.theta(raw + m * step)) for m in (-2, -1, 1, 2)]
        numeric = (value[0] - 8 * value[1] + 8 * value[2] - value[3]) / (12 * 1e-4)
        kink = np.ones(len(y), bool)
        if family.name == "laplace":
            kink = np.abs(y - raw[:, 0]) > 1e-3
        np.testing.assert_allclose(score[kink, k], numeric[kink], rtol=1e-6, atol=1e-6)


@each
def test_density_integrates_to_one_and_score_has_mean_zero_and_fisher_variance(family):
    raw = raws(family, N_ROWS, seed=2)
    theta = family.theta(raw)
    matrix = family.fisher_matrix(raw)
    for i in range(N_ROWS):

        def moments(y, i=i):
            score = family.score_and_fisher(y, np.tile(raw[i], (len(y), 1)))[0]
            products = score[:, :, None] * score[:, None, :]
            return np.concatenate([np.ones((len(y), 1)), score, products.reshape(len(y), -1)], axis=1)

        found = integral(family, theta[i], moments)
        k = family.n_params
        assert found[0] == pytest.approx(1.0, abs=1e-7)
        np.testing.assert_allclose(found[1 : 1 + k], 0.0, atol=2e-5)
        outer = found[1 + k :].reshape(k, k)
        median = np.broadcast_to(family.ppf(0.5, theta[i]), (1,)).astype(float)
        diagonal = family.score_and_fisher(median, raw[i : i + 1])[1][0]
        assert (diagonal > 0).all()
        if family.fisher_exact:
            np.testing.assert_allclose(diagonal, np.diag(outer), rtol=2e-3)
            if type(family).fisher_matrix is not get_base().fisher_matrix:
                np.testing.assert_allclose(matrix[i], outer, rtol=2e-3, atol=2e-3)


def get_base():
    from boostplugins.families import Family

    return Family


@each
def test_cdf_inverts_ppf(family):
    theta = family.theta(raws(family, 40, seed=3))
    for q in (1e-6, 0.01, 0.3, 0.5, 0.77, 0.99, 1 - 1e-6):
        x = family.ppf(q, theta)
        f = family.cdf(x, theta)
        if family.discrete:
            assert (f >= q * (1 - 1e-12)).all()
            assert (family.cdf(x - 1, theta) < q).all()
        else:
            smooth = ~np.isin(x, family.atoms)
            np.testing.assert_allclose(f[smooth], q, rtol=1e-8)
            assert (f >= q - 1e-12).all()
        np.testing.assert_allclose(f + family.sf(x, theta), 1.0, atol=1e-12)
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(family.log_cdf(x, theta), np.log(f), rtol=1e-9, atol=1e-12)
    assert (np.diff(np.stack([family.ppf(q, theta) for q in np.linspace(0.01, 0.99, 99)]), axis=0) >= 0).all()


@each
def test_cdf_is_the_integral_of_the_density(family):
    theta = family.theta(raws(family, 3, seed=4))
    for row in theta:
        at = float(family.ppf(0.6, row))
        mass = integral(family, row, lambda y, at=at: (y <= at).astype(float)[:, None])[0]
        # The step falls on a panel's end for 0.6 only: `panels` lists it.
        assert mass == pytest.approx(float(family.cdf(at, row)), abs=1e-7)


@each
def test_moments_are_those_of_the_density(family):
    theta = family.theta(raws(family, 4, spread=0.15, seed=5))
    for row in theta:
        mean, var = float(family.mean(row)), float(family.var(row))
        found = integral(family, row, lambda y, m=mean: np.stack([y, (y - m) ** 2], axis=1))
        assert mean == pytest.approx(found[0], rel=1e-4, abs=1e-6)
        heavy = family.name in ("student_t", "jsu")
        assert var == pytest.approx(found[1], rel=0.02 if heavy else 1e-4)


@each
def test_samples_have_the_distribution(family):
    theta = family.theta(raws(family, 3, seed=6))
    sample = family.sample(theta, 4000, np.random.default_rng(0))
    assert sample.shape == (3, 4000)
    assert family.support.contains(sample).all()
    for q in (0.1, 0.35, 0.5, 0.8, 0.95):
        x = family.ppf(q, theta)
        expected = family.cdf(x, theta)
        share = (sample <= x[:, None]).mean(axis=1)
        # Five standard errors: a false alarm once in some ten thousand families.
        assert (np.abs(share - expected) <= 5 * np.sqrt(expected * (1 - expected) / 4000) + 1e-12).all()


@each
def test_crps_equals_numerical_integration(family):
    theta = family.theta(raws(family, 5, seed=7))
    y = draws(family, theta, seed=8)
    extreme = np.where(np.arange(5) % 2, family.ppf(1 - 1e-6, theta), family.ppf(1e-6, theta))
    for at in (y, extreme):
        if family.name == "normal_mixture":  # too steep between its parts for the quadrature
            break
        np.testing.assert_allclose(
            family.crps(at, theta), numeric_crps(family, at, theta), rtol=2e-5, atol=1e-8
        )
    if not family.discrete:
        i, at = 0, float(y[0])
        ends = [*panels(family, theta[i]), at]
        low, high = min(ends), max(ends)
        mid = sorted(e for e in ends if low < e < high)
        points = [low, *mid, high]
        nodes, weights = np.polynomial.legendre.leggauss(40)
        direct = 0.0
        for a, b in itertools.pairwise(points):
            x = a + 0.5 * (b - a) * (nodes + 1)
            direct += 0.5 * (b - a) * weights @ (family.cdf(x, theta[i]) - (x >= at)) ** 2
        assert float(family.crps(at, theta[i])) == pytest.approx(direct, rel=1e-4)


@each
def test_start_maximises_the_weighted_likelihood(family):
    theta = np.tile(family.theta(raws(family, 1, seed=9)), (400, 1))
    y = draws(family, theta, seed=10)
    weight = np.random.default_rng(1).integers(0, 3, 400).astype(float)
    start = family.init(y, weight)

    def value(raw):
        return weight @ family.log_pdf(y, family.theta(raw))

    for k in range(family.n_params):
        for step in (-0.02, 0.02):
            moved = start.copy()
            moved[k] += step
            assert value(moved) <= value(start) + 1e-9
    repeated = family.init(np.repeat(y, weight.astype(int)))
    np.testing.assert_allclose(start, repeated, atol=2e-5)


def extremes(support):
    """The least, the greatest and other far responses of a support."""
    far = [0.0, 1.0, 1e3, 1e6, 1e15] if support.integer else [1e-300, 1e-3, 1e3, 1e6, 1e100, 1e300]
    far = [*far, *(-value for value in far), support.low, support.high]
    far += [np.nextafter(support.low, np.inf), np.nextafter(support.high, -np.inf)]
    return np.array([value for value in far if support.contains(value)])


@each
def test_extreme_raw_scores_and_responses_stay_finite(family):
    """B07, C01: derivatives and log densities are finite, every curvature is positive; no warning."""
    y = draws(family, family.theta(raws(family, 10, seed=11)), seed=12)
    y = np.concatenate([y, extremes(family.support)])
    for level in (-1e3, -700.0, -50.0, 0.0, 50.0, 700.0, 1e3):
        for other in (-700.0, 0.0, 700.0):
            raw = np.full((len(y), family.n_params), other)
            for k in range(family.n_params):
                raw[:, k] = level
                with np.errstate(all="raise", under="ignore"):
                    score, fisher = family.score_and_fisher(y, raw)
                assert np.isfinite(score).all()
                assert np.isfinite(fisher).all()
                assert (fisher > 0).all()
                assert np.isfinite(family.log_pdf(y, family.theta(raw))).all()


@each
def test_impossible_responses_have_no_density(family):
    theta = family.theta(raws(family, 1))[0]
    bad = [np.inf, -np.inf]
    if family.support.low > -np.inf:
        bad.append(family.support.low - 1.0)
    if family.support.integer:
        bad.append(0.5)
    assert not family.support.contains(bad).any()
    assert (family.log_pdf(np.array(bad), theta) == -np.inf).all()
    with pytest.raises(ValueError, match=f"family {family.name}"):
        family.check_support(np.array([*bad, 1.0]))


@each
def test_rescaled_parameters_are_those_of_the_rescaled_response(family):
    theta = family.theta(raws(family, 20, seed=13))
    if family.equivariance is None:
        with pytest.raises(ValueError, match="does not follow"):
            family.rescale(theta, 2.0)
        return
    scale, shift = 3.7, -2.0 if family.equivariance == "affine" else 0.0
    if family.equivariance == "scale":
        for bad in (1.0, -1.0):
            with pytest.raises(ValueError, match="does not follow"):
                family.rescale(theta, scale, bad)
    moved = family.rescale(theta, scale, shift)
    np.testing.assert_array_equal(family.rescale(theta[0], scale, shift), moved[0])
    y = draws(family, theta, seed=14)
    np.testing.assert_allclose(family.cdf(scale * y + shift, moved), family.cdf(y, theta), rtol=1e-9)
    np.testing.assert_allclose(family.mean(moved), scale * family.mean(theta) + shift, rtol=1e-9)


@each
def test_families_are_values(family):
    assert pickle.loads(pickle.dumps(family)) == family
    assert copy.deepcopy(family) == family
    assert family_from_dict(family.to_dict()) == family
    assert get_family(family) is family
    raw = raws(family, 5)
    np.testing.assert_allclose(family.theta(family.raw(family.theta(raw))), family.theta(raw), rtol=1e-12)
    for name in ("theta", "log_pdf", "cdf", "ppf", "sample"):
        assert callable(getattr(family, name))
    assert len(family.params) == len(family.links) == family.n_params


@each
def test_functions_broadcast_over_leading_axes(family):
    theta = family.theta(raws(family, 6)).reshape(3, 2, family.n_params)
    y = draws(family, theta[:, 0])
    assert family.log_pdf(y[:, None], theta).shape == (3, 2)
    np.testing.assert_allclose(family.cdf(y[:, None], theta)[:, 1], family.cdf(y, theta[:, 1]), rtol=1e-12)
    assert family.ppf(0.3, theta).shape == family.mean(theta).shape == family.var(theta).shape == (3, 2)
    assert family.crps(y[:, None], theta).shape == (3, 2)
    assert family.sample(theta, 5, np.random.default_rng(0)).shape == (3, 2, 5)
    assert family.sample(theta[0, 0], 5, np.random.default_rng(0)).shape == (5,)


def test_names_and_aliases_are_unique():
    names = [name for kind in families().values() for name in (kind.name, *kind.aliases)]
    assert len(names) == len(set(names))
    for name in names:
        assert get_family("".join(list(name))).name in families()
    assert {family.name for family in FAMILIES} == set(families())


def test_classes_are_attributes_of_the_package():
    for kind in families().values():
        assert getattr(package, kind.__name__) is kind
    with pytest.raises(AttributeError, match="NoSuchFamily"):
        _ = package.NoSuchFamily


def test_unknown_families_are_refused():
    with pytest.raises(ValueError, match="family must be one of"):
        get_family("no such family")
    with pytest.raises(TypeError, match="family must be a name"):
        get_family(3)
    with pytest.raises(ValueError, match="family must be one of"):
        family_from_dict({"name": "no such family"})
    with pytest.raises(ValueError, match="does not fit"):
        family_from_dict({"name": "normal", "colour": 1})
