"""Pictures by content: labels, limits and artists say what the models say."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib import colormaps, pyplot
from matplotlib.collections import PathCollection, QuadMesh

from boostplugins import Predictive, USNRTRegressor, VirtualEnsemble, plots
from boostplugins.estimators.soft_tree import SoftTreeRegressor
from boostplugins.hbart.diagnostics import split_rhat
from boostplugins.metrics import class_ece, ece, pit, prr
from boostplugins.plots._axes import GREYS, LINES, SHADES, line_style
from boostplugins.plots._grid import grid_rows


@pytest.fixture(scope="module")
def usnrt():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(900, 2))
    y = rng.normal(size=900) * np.where(X[:, 0] < 0.4, 0.1, 1.0)
    return USNRTRegressor(min_samples_leaf=200, max_epochs=5).fit(X, y), X


@pytest.fixture(scope="module")
def soft():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(200, 2))
    y = np.tanh(6 * X[:, 0]) + 0.1 * rng.normal(size=200)
    return SoftTreeRegressor(ridge=0.1, max_leaves=4).fit(X, y), X


@pytest.fixture(scope="module")
def normal():
    y = np.random.default_rng(0).normal(size=300)
    return y, Predictive("normal", np.tile([0.0, 1.0], (300, 1)))


def mesh_of(ax):
    [mesh] = [artist for artist in ax.collections if isinstance(artist, QuadMesh)]
    return np.asarray(mesh.get_array()).reshape(-1)


def test_colours_and_lines_survive_greyscale():
    grey = colormaps[SHADES](np.linspace(0, 1, 64))[:, :3] @ [0.299, 0.587, 0.114]
    assert (np.diff(grey) > 0).all()
    styles = [tuple(map(str, line_style(i).values())) for i in range(len(LINES))]
    assert len(set(styles)) == len(styles)
    assert len(set(GREYS)) == len(GREYS)


def test_nothing_is_drawn_on_other_axes(bart, plane):
    X, _ = plane
    figure, (left, right) = pyplot.subplots(1, 2)
    assert plots.uncertainty_map(bart, X, n_grid=4, ax=left) is left
    assert right.has_data() is False
    assert pyplot.get_fignums() == [figure.number]


@pytest.mark.parametrize("part", ["knowledge", "data", "total"])
def test_map_shows_standard_deviations_of_a_regression(part, bart, plane):
    X, _ = plane
    ax = plots.uncertainty_map(bart, X, (1, 0), part, n_grid=6, margin=0.5)
    _, rows = grid_rows(X, [1, 0], 6, 0.5)
    expected = np.sqrt(getattr(bart.predict_uncertainty(rows), part)).reshape(6, 6).T
    np.testing.assert_allclose(mesh_of(ax), expected.ravel())
    low, high = X[:, 1].min(), X[:, 1].max()
    assert ax.get_xlim() == pytest.approx((low - 0.5 * (high - low), high + 0.5 * (high - low)))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x1", "x0")
    assert ax.get_title() == f"{part} uncertainty"
    assert ax.figure.axes[1].get_ylabel() == "standard deviation"
    [dots] = [artist for artist in ax.collections if isinstance(artist, PathCollection)]
    np.testing.assert_allclose(dots.get_offsets(), X[:, ::-1])


def test_maps_share_a_scale_and_show_nats_of_classes(bart_classifier, plane):
    X, _ = plane
    axes = plots.uncertainty_maps(bart_classifier, X, n_grid=5, show_rows=False)
    assert [ax.get_title().split()[0] for ax in axes] == ["knowledge", "data", "total"]
    assert {ax.collections[0].get_clim() for ax in axes} == {axes[2].collections[0].get_clim()}
    np.testing.assert_allclose(mesh_of(axes[0]) + mesh_of(axes[1]), mesh_of(axes[2]))
    assert axes[0].figure.axes[3].get_ylabel() == "nats"
    assert [len(ax.collections) for ax in axes] == [1, 1, 1]


def test_other_features_are_held_at_typical_values():
    X = pd.DataFrame({"a": [0.0, 1.0, 5.0], "b": [1, 1, 2], "c": pd.Categorical(["u", "v", "v"])})
    _, rows = grid_rows(X, [0], 3)
    assert rows["a"].tolist() == [0.0, 2.5, 5.0]
    assert rows["b"].tolist() == [1, 1, 1]
    assert rows["c"].tolist() == ["v", "v", "v"]
    assert (rows.dtypes == X.dtypes).all()
    _, fixed = grid_rows(X, [0], 2, fixed={"c": "u", "b": 2})
    assert fixed["c"].tolist() == ["u", "u"]
    assert fixed["b"].tolist() == [2, 2]


def test_fan_has_the_models_intervals(boosted, plane):
    X, y = plane
    ax = plots.interval_fan(boosted, X, y, feature=0, coverages=(0.5, 0.9), n_grid=7)
    [x], rows = grid_rows(X, [0], 7)
    np.testing.assert_allclose(ax.lines[0].get_xydata(), np.stack([x, boosted.predict(rows)], axis=1))
    dots, wide, narrow = ax.collections
    np.testing.assert_allclose(dots.get_offsets(), np.stack([X[:, 0], y], axis=1))
    for fill, coverage in ((wide, 0.9), (narrow, 0.5)):
        ends = boosted.predict_interval(rows, coverage)
        corners = fill.get_paths()[0].vertices[:, 1]
        assert corners.min() == pytest.approx(ends[:, 0].min())
        assert corners.max() == pytest.approx(ends[:, 1].max())
    assert wide.get_facecolor()[0, 0] > narrow.get_facecolor()[0, 0]  # wider is lighter
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["responses", "90 %", "50 %", "mean"]


def test_the_ece_of_a_reliability_curve_is_that_of_the_curve_for_counts_too():
    """A right Poisson lies on the diagonal once its steps are randomised; half a step off without."""
    y = np.random.default_rng(0).poisson(1.0, 2000)
    ax = plots.reliability_curve(y, Predictive("poisson", np.ones((2000, 1))))
    levels, shares = ax.lines[1].get_xydata()[1:-1].T
    told = float(ax.get_legend().get_texts()[-1].get_text().removeprefix("ECE "))
    assert told == pytest.approx(np.abs(shares - levels).mean(), abs=1e-3)
    assert told < 0.03


def test_reliability_curve_counts_responses_below_quantiles(normal):
    y, dist = normal
    ax = plots.reliability_curve(y, dist, label="right")
    curve = ax.lines[1].get_xydata()
    np.testing.assert_allclose(curve[25], [0.25, (dist.cdf(y) <= 0.25).mean()])
    assert ax.get_legend().get_texts()[-1].get_text() == f"right, ECE {ece(y, dist):.3f}"
    narrow = Predictive("normal", np.tile([0.0, 0.5], (300, 1)))
    plots.reliability_curve(y, narrow, label="narrow", ax=ax)
    assert len(ax.lines) == 3  # one diagonal, two curves
    assert ax.lines[1].get_linestyle() != ax.lines[2].get_linestyle()
    assert len(ax.collections) == 1


def test_right_predictions_stay_in_their_band(normal):
    y, dist = normal
    ax = plots.reliability_curve(y, dist)
    band = ax.collections[0].get_paths()[0]
    # 101 dependent points at 95 %: more than 15 outside has probability below 0.01 (Kolmogorov tail).
    inside = [band.contains_point(point, radius=1e-9) for point in ax.lines[1].get_xydata()[1:-1]]
    assert np.mean(inside) > 0.85


def test_reliability_diagram_shows_frequencies():
    rng = np.random.default_rng(0)
    proba = rng.random(400)
    y = (rng.random(400) < proba).astype(float)
    ax = plots.reliability_diagram(y, proba, n_bins=4)
    dots = ax.collections[0].get_offsets()
    inside = (proba >= 0.25) & (proba < 0.5)
    np.testing.assert_allclose(dots[1], [proba[inside].mean(), y[inside].mean()])
    assert ax.get_title() == f"ECE {class_ece(y, proba, 4):.3f}"
    bars = ax.collections[1].get_segments()
    assert all(bar[0][1] <= p <= bar[1][1] for bar, p in zip(bars, dots[:, 0]))


def test_pit_histogram_is_a_density(normal):
    y, dist = normal
    ax = plots.pit_histogram(y, dist, n_bins=5)
    heights = [bar.get_height() for bar in ax.patches]
    expected = np.histogram(pit(y, dist), bins=5, range=(0, 1))[0] / 300 * 5
    np.testing.assert_allclose(heights, expected)
    level, low, high = (line.get_ydata()[0] for line in ax.lines)
    assert level == 1.0
    assert low < 1.0 < high


def test_rejection_curves_have_the_area_of_the_prr():
    rng = np.random.default_rng(0)
    error = rng.random(50)
    named = {"a": error + 0.3 * rng.random(50), "b": rng.random(50)}
    ax = plots.rejection_curve(error, named)
    area = [np.trapezoid(*line.get_data()[::-1]) for line in ax.lines]
    random, a, b, oracle = area
    assert (random - a) / (random - oracle) == pytest.approx(prr(error, named["a"]))
    assert (random - b) / (random - oracle) == pytest.approx(prr(error, named["b"]))
    assert f"a, PRR {prr(error, named['a']):.2f}" in [t.get_text() for t in ax.get_legend().get_texts()]
    assert len(plots.rejection_curve(np.zeros(3), [1.0, 2.0, 3.0]).lines) == 3


def test_chain_trace_ends_in_the_members(sglb, plane):
    X, _ = plane
    ax = plots.chain_trace(sglb, X, most_rows=2, chain=1)
    ensemble = sglb._ensembles()[1]
    trace, dots = ax.lines[2].get_xydata(), ax.lines[3].get_xydata()
    np.testing.assert_array_equal(dots[:, 0], ensemble.ends)
    np.testing.assert_allclose(dots[-1], trace[-1], rtol=1e-12)  # the last member is the last state
    np.testing.assert_allclose(dots[:, 1], ensemble._reader.states(X[1:2], ensemble.ends)[0, :, 0])
    [right] = [other for other in ax.figure.axes if other is not ax]
    scale = right.lines[0].get_ydata()
    assert [scale[0], scale[5]] == [sglb._ensembles()[0].schedule.scale(t) for t in (0, 5)]
    assert len(right.patches) == 10  # stages of exploration, one a cycle
    assert ax.get_xlim() == (0, 60)


def test_chain_trace_of_a_virtual_ensemble(sglb, plane):
    ensemble = VirtualEnsemble.from_lightgbm(sglb.models_[0])
    ax = plots.chain_trace(ensemble, plane[0], most_rows=1)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["row 0", "gradient scale"]


def test_posterior_trace_shows_each_chain(bart, plane):
    draws = bart.posterior_draws(plane[0][:3])
    ax = plots.posterior_trace(bart, "f", X=plane[0][:3], index=2)
    for chain, line in enumerate(ax.lines):
        np.testing.assert_array_equal(line.get_ydata(), draws["f"][chain, :, 2])
    assert ax.get_ylabel() == "f[2]"
    assert ax.get_title() == f"R-hat {float(split_rhat(draws['f'][:, :, 2])):.3f}"
    assert len({line.get_color() for line in ax.lines}) == 2


def test_rhat_plot_has_a_dot_for_each_entry(bart, bart_classifier, plane):
    ax = plots.rhat_plot(bart, X=plane[0][:4])
    draws = bart.posterior_draws(plane[0][:4])
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == list(draws)
    for name, line in zip(names, ax.lines):
        np.testing.assert_allclose(line.get_xdata(), np.atleast_1d(split_rhat(draws[name])))
    assert [t.get_text() for t in plots.rhat_plot(bart_classifier).get_yticklabels()] == ["n_rules"]


def test_gates_along_a_feature(soft):
    model, X = soft
    ax = plots.soft_gates(model, X, [0], n_grid=9)
    [x], rows = grid_rows(X, [0], 9)
    tree, block = model.model_.predictors[0].tree, model.model_.blocks(rows)[0]
    root = 1.0 / (1.0 + np.exp(-tree.logits(block.x)[:, 0]))
    np.testing.assert_allclose(ax.lines[0].get_xydata(), np.stack([x, root], axis=1))
    assert len(ax.lines) == tree.n_splits
    assert ax.get_title() == f"mu: {tree.n_splits} gate" + "s" * (tree.n_splits != 1)
    assert plots.soft_gates(model, X, [0], parameter="sigma").get_title().startswith("sigma")


def test_gates_over_two_features(soft):
    model, X = soft
    ax = plots.soft_gates(model, X, [0, 1], n_grid=20)
    _, rows = grid_rows(X, [0, 1], 20)
    np.testing.assert_allclose(ax.images[0].get_array().T.ravel(), model.model_.raw(rows)[:, 0])
    # The step is at x0 = 0, and so is the line where the root gives both sides the same weight.
    paths = [path for artist in ax.collections if hasattr(artist, "levels") and artist.levels[0] == 0.5
             for path in artist.get_paths()]  # fmt: skip
    assert paths
    assert np.abs(paths[0].vertices[:, 0]).max() < 0.3


def test_regions_show_their_noise(usnrt):
    model, X = usnrt
    ax = plots.usnrt_regions(model, X, n_grid=30)
    spread = {r["node"]: np.sqrt(r["residual_variance"]) for r in model.tree_data() if r["leaf"]}
    assert sorted(text.get_text() for text in ax.texts) == sorted(f"{s:.3g}" for s in spread.values())
    _, rows = grid_rows(X, [0, 1], 30)
    expected = np.array([spread[node] for node in model.apply(rows)[:, 0]]).reshape(30, 30).T
    np.testing.assert_allclose(mesh_of(ax), expected.ravel())
    for text in ax.texts:  # each number stands in its region
        node = model.apply(np.array([text.get_position()]))[0, 0]
        assert text.get_text() == f"{spread[node]:.3g}"


def test_regions_of_one_feature(usnrt):
    _, X = usnrt
    y = np.random.default_rng(0).normal(size=900) * np.where(X[:, 0] < 0.4, 0.1, 1.0)
    model = USNRTRegressor(min_samples_leaf=200, max_epochs=5).fit(X[:, :1], y)
    ax = plots.usnrt_regions(model, X[:, :1])
    assert len(ax.texts) == sum(row["leaf"] for row in model.tree_data())
    assert ax.get_xlabel() == "x0"


def test_comparison_has_dots_with_two_errors():
    table = pd.DataFrame(
        {"model": ["a", "b", "bad"], "metric": "coverage_90", "better": "nominal",
         "mean": [0.88, 0.93, np.nan], "se": [0.01, 0.02, np.nan]}
    )  # fmt: skip
    ax = plots.comparison_plot(table, "coverage_90")
    np.testing.assert_allclose(ax.lines[0].get_xdata(), table["mean"])
    [bars] = list(ax.collections)
    np.testing.assert_allclose(bars.get_segments()[1][:, 0], [0.89, 0.97])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a", "b", "bad"]
    assert [line.get_xdata()[0] for line in ax.lines[1:]] == [0.88, 0.9]
    other = plots.comparison_plot(table.assign(metric="own_score"), "own_score")
    assert [line.get_xdata()[0] for line in other.lines[1:]] == [0.88]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m, X: plots.uncertainty_map(m, X, (0, 7)), ValueError, "features must be of"),
        (lambda m, X: plots.uncertainty_map(m, X, (0,)), ValueError, "features must be two, got 1"),
        (lambda m, X: plots.uncertainty_map(m, X, part="all"), ValueError, "part must be one of"),
        (lambda m, X: plots.uncertainty_map(object(), X), TypeError, "model must have predict_uncertainty"),
        (lambda m, X: plots.uncertainty_map(m, X, n_grid=1), ValueError, "n_grid must be an integer >= 2"),
        (lambda m, X: plots.uncertainty_maps(m, X, axes=[1]), ValueError, "axes must be three"),
        (lambda m, X: plots.interval_fan(m, X, coverages=[1.0]), ValueError, "coverages must be"),
        (lambda m, X: plots.interval_fan(m, X, coverages=[]), ValueError, "coverages must hold"),
        (lambda m, X: plots.rejection_curve([-1.0, 1.0], [0.0, 1.0]), ValueError, "error must be >= 0"),
        (lambda m, X: plots.chain_trace(m, X), TypeError, "model must be a fitted SGLB estimator"),
        (lambda m, X: plots.posterior_trace(m, "tau"), ValueError, "name must be one of"),
        (lambda m, X: plots.posterior_trace(m, index=1), ValueError, "index must be in"),
        (lambda m, X: plots.posterior_trace({"a": [1.0]}, "a"), ValueError, "draws of 'a' must have shape"),
        (lambda m, X: plots.rhat_plot(3), TypeError, "model must have posterior_draws"),
        (lambda m, X: plots.soft_gates(m, X), TypeError, "model must be a fitted soft tree"),
        (lambda m, X: plots.soft_gates(m, X, (0, 1, 0)), ValueError, "features must be one or two"),
        (lambda m, X: plots.usnrt_regions(m, X), TypeError, "model must be a fitted USNRTRegressor"),
    ],
)
def test_bad_arguments_are_refused(call, error, message, bart, plane):
    with pytest.raises(error, match=message):
        call(bart, plane[0])


def test_bad_arguments_of_chains_gates_and_tables(sglb, soft, plane):
    with pytest.raises(ValueError, match=r"metric must be one of \['rmse'\], got 'crps'"):
        plots.comparison_plot(pd.DataFrame({"metric": ["rmse"]}), "crps")
    with pytest.raises(ValueError, match="output must be below the chain's 1, got 1"):
        plots.chain_trace(sglb, plane[0], output=1)
    with pytest.raises(ValueError, match="chain must be below the model's 2 chains, got 2"):
        plots.chain_trace(sglb, plane[0], chain=2)
    with pytest.raises(ValueError, match="parameter must be one of"):
        plots.soft_gates(*soft, parameter="nu")
    frame = pd.DataFrame({"a": ["u", "v"], "b": [1.0, 2.0]})
    with pytest.raises(ValueError, match="feature 0 must be numeric"):
        grid_rows(frame, [0], 3)


def test_importing_plots_does_not_import_matplotlib():
    code = "import sys, boostplugins.plots; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_matplotlib_is_one_clear_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "boostplugins\[plots\]"'):
        plots.rejection_curve([1.0, 2.0], [1.0, 2.0])
