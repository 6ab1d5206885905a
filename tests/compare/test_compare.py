"""`compare` against a loop written by hand, and what it does with failures, broken runs and backends."""

import json

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.model_selection import GroupKFold, KFold

from boostplugins.compare import compare, summary
from tests.compare.models import (
    Counting,
    Distance,
    Failing,
    Interrupted,
    Intervals,
    Mean,
    NotNumbers,
    Shares,
    TooShort,
)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    return X, 2.0 * X[:, 0] + rng.normal(size=120)


def value(table, model, metric, column="mean"):
    found = table[(table["model"] == model) & (table["metric"] == metric)]
    assert len(found) == 1
    return found[column].iloc[0]


def fits(log):
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_scores_errors_and_differences_equal_a_loop_by_hand(rows):
    X, y = rows
    models = {"ridge": BayesianRidge(), "tight": BayesianRidge(alpha_1=50.0, alpha_2=1e-6)}
    table = compare(models, X, y, cv=4, random_state=3)
    log_score, rmse, inside = (np.zeros((2, 4)) for _ in range(3))
    for fold, (train, test) in enumerate(KFold(4, shuffle=True, random_state=3).split(X)):
        for m, model in enumerate(models.values()):
            mean, std = model.fit(X[train], y[train]).predict(X[test], return_std=True)
            log_score[m, fold] = norm(mean, std).logpdf(y[test]).mean()
            rmse[m, fold] = np.sqrt(((y[test] - mean) ** 2).mean())
            inside[m, fold] = (np.abs(y[test] - mean) <= norm.ppf(0.95) * std).mean()
    factor = np.sqrt(1 / 4 + 30 / 90)
    for name, scores in (("log_score", log_score), ("rmse", rmse), ("coverage_90", inside)):
        for m, model in enumerate(models):
            difference = scores[m] - scores[0]
            assert value(table, model, name) == pytest.approx(scores[m].mean(), rel=1e-9)
            assert value(table, model, name, "se") == pytest.approx(scores[m].std(ddof=1) * factor, abs=1e-9)
            assert value(table, model, name, "difference") == pytest.approx(difference.mean(), abs=1e-9)
            assert value(table, model, name, "difference_se") == pytest.approx(
                difference.std(ddof=1) * factor, abs=1e-9
            )


def test_table_is_tidy(rows):
    table = compare([Mean(), Mean(), BayesianRidge()], *rows, cv=3)
    assert list(table["model"].unique()) == ["Mean", "Mean-2", "BayesianRidge"]
    assert not table.duplicated(["model", "metric"]).any()
    assert set(table["better"]) == {"higher", "lower", "nominal"}
    assert (table["n_folds"] == 3).all()
    assert table["error"].isna().all()


def test_what_a_model_does_not_say_is_nan(rows):
    X, y = rows
    table = compare(
        {"mean": Mean(), "interval": Intervals(), "mix": Distance()}, X, y, cv=3, shift=X[:, 0] > 1
    )
    point = table[table["model"] == "mean"].set_index("metric")["mean"]
    assert point[["rmse", "crps", "fit_cpu"]].notna().all()
    assert point[["log_score", "coverage_90", "width_50", "ece", "prr", "ku_auc", "tu_auc"]].isna().all()
    assert value(table, "interval", "width_90") == pytest.approx(1.8)
    assert np.isnan(value(table, "interval", "log_score"))
    assert table[table["model"] == "mix"]["mean"].notna().all()


def test_failures_are_rows(rows):
    X, y = rows
    models = {
        "good": Mean(),
        "fit": Failing(),
        "nan": NotNumbers(),
        "short": TooShort(),
        "silent": Failing("", RuntimeError),
        "trace": Failing("somewhere: Traceback (most recent call last):\n  deep\nKeyError: 'x'"),
        "family:nonsense": "family:nonsense",
    }
    table = compare(models, X, y, cv=3)
    errors = table.groupby("model")["error"].first()
    assert pd.isna(errors["good"])
    assert errors["fit"] == "fold 0: ValueError: no luck (and 2 more folds)"
    assert "point of NotNumbers must not be NaN, got 40" in errors["nan"]
    assert "predictions must have 40 rows, got 39" in errors["short"]
    assert "RuntimeError: no message" in errors["silent"]
    assert "ValueError: KeyError: 'x'" in errors["trace"]
    assert "nonsense" in errors["family:nonsense"]
    failed = table[table["model"] != "good"]
    assert failed["mean"].isna().all()
    assert (failed["n_folds"] == 0).all()
    assert value(table, "good", "rmse") > 0


def test_differences_are_nan_where_the_first_model_fails(rows):
    table = compare({"bad": Failing(), "good": Mean()}, *rows, cv=3)
    assert np.isnan(value(table, "good", "rmse", "difference"))
    assert value(table, "good", "rmse") > 0


def test_a_run_goes_on_where_it_stopped(rows, tmp_path):
    X, y = rows
    log, folder = tmp_path / "log", tmp_path / "fits"
    with pytest.raises(KeyboardInterrupt):
        compare({"count": Counting(log), "stop": Interrupted()}, X, y, cv=3, results=folder)
    assert fits(log) == 1
    models = {"count": Counting(log), "mean": Mean()}
    first = compare(models, X, y, cv=3, results=folder)
    assert fits(log) == 3  # the fold before the interruption was kept
    again = compare(models, X, y, cv=3, results=folder)
    assert fits(log) == 3
    pd.testing.assert_frame_equal(first, again)
    held = [json.loads(path.read_text()) for path in folder.glob("count-*.json")]
    assert sorted(record["fold"] for record in held) == [0, 1, 2]


@pytest.mark.parametrize(
    "change",
    [
        {"models": {"count": "level"}},
        {"X": 1e-9},
        {"y": 1e-9},
        {"random_state": 1},
        {"shift": True},
    ],
    ids=["parameters", "features", "responses", "folds", "shift"],
)
def test_anything_that_decides_a_fit_makes_a_new_one(change, rows, tmp_path):
    X, y = rows
    log = tmp_path / "log"
    compare({"count": Counting(log)}, X, y, cv=3, results=tmp_path / "fits")
    compare(
        {"count": Counting(log, level=1.0 if "models" in change else 0.0)},
        X + change.get("X", 0.0),
        y + change.get("y", 0.0),
        cv=3,
        results=tmp_path / "fits",
        random_state=change.get("random_state", 0),
        shift=X[:5] if "shift" in change else None,
    )
    assert fits(log) == 6


def test_failures_and_broken_files_are_tried_again(rows, tmp_path, caplog):
    X, y = rows
    log, folder = tmp_path / "log", tmp_path / "fits"
    models = {"count": Counting(log), "bad": Failing()}
    compare(models, X, y, cv=3, results=folder)
    assert not list(folder.glob("bad-*"))
    sorted(folder.glob("count-*"))[0].write_text("{}")
    table = compare(models, X, y, cv=3, results=folder)
    assert fits(log) == 4
    assert "it is fitted again" in caplog.text
    assert value(table, "count", "rmse") > 0


def test_results_survive_infinities(rows, tmp_path):
    X, y = rows

    def impossible(y, forecast):
        return -np.inf

    for _ in range(2):
        table = compare([Mean()], X, y, cv=3, metrics=[impossible], results=tmp_path)
        assert value(table, "Mean", "impossible") == -np.inf
    assert summary(table).loc["Mean", "impossible"] == "-inf"


@pytest.mark.parametrize(
    "backend", [pytest.param("loky", marks=pytest.mark.slow), "threading", "multiprocessing"]
)
def test_backends_give_the_same_table(backend, rows, tmp_path):
    models = {"ridge": BayesianRidge(), "bad": Failing(), "mean": Mean()}
    alone = compare(models, *rows, cv=3)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        together = compare(models, *rows, cv=3, results=tmp_path)
    timed = ["fit_cpu", "predict_cpu"]
    pd.testing.assert_frame_equal(
        alone[~alone["metric"].isin(timed)], together[~together["metric"].isin(timed)]
    )
    assert len(list(tmp_path.glob("*.json"))) == 6


def test_shifted_rows_are_never_trained_on_and_found(rows, tmp_path):
    X, y = rows
    mask = np.abs(X[:, 0]) > 1.5
    log = tmp_path / "log"
    table = compare({"mix": Distance(), "count": Counting(log)}, X, y, cv=3, shift=mask)
    assert value(table, "mix", "ku_auc") == pytest.approx(1.0)  # knowledge is the distance from 0, cut at 1.5
    assert value(table, "mix", "tu_auc") == pytest.approx(1.0)
    n = int((~mask).sum())
    assert sum(int(line) for line in log.read_text().split()) == 2 * n  # each row in two of three folds
    as_table = compare({"mix": Distance()}, X[~mask], y[~mask], cv=3, shift=X[mask])
    assert value(as_table, "mix", "ku_auc") == pytest.approx(1.0)


def test_groups_and_given_splits(rows):
    X, y = rows
    groups = np.arange(len(y)) % 4
    grouped = compare([Mean()], X, y, cv=GroupKFold(4), groups=groups)
    by_hand = [(groups != g, groups == g) for g in range(4)]
    given = compare([Mean()], X, y, cv=by_hand)
    assert value(grouped, "Mean", "rmse") == pytest.approx(value(given, "Mean", "rmse"))
    one = compare([Mean()], X, y, cv=[(np.arange(60), np.arange(60, 120))])
    assert np.isnan(value(one, "Mean", "rmse", "se"))


def test_chosen_and_own_scores(rows):
    X, y = rows

    def bias(y, forecast):
        return float((forecast.point - y).mean())

    bias.better = "lower"
    table = compare([Mean()], X, y, cv=3, metrics=["rmse", bias])
    assert list(table["metric"]) == ["rmse", "bias"]
    assert list(table["better"]) == ["lower", "lower"]


def test_data_frames_keep_their_categories(rows):
    X, y = rows
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame["c"] = pd.Categorical(np.where(y > 0, "high", "low"))
    table = compare(["linear"], frame, y, cv=3)
    plain = compare(["linear"], frame[["a", "b"]], y, cv=3)
    assert value(table, "linear", "rmse") < value(plain, "linear", "rmse")


def test_progress_on_demand(rows, tmp_path, capsys):
    for expected in ("2 of 6: bad, fold 0: ValueError: no luck", "kept from before"):
        compare({"mean": Mean(), "bad": Failing()}, *rows, cv=3, verbose=True, results=tmp_path)
        assert expected in capsys.readouterr().err
    compare([Mean()], *rows, cv=3)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"estimators": []}, ValueError, "estimators must name at least one model"),
        ({"estimators": "linear"}, TypeError, "estimators must be a mapping or a sequence"),
        ({"estimators": ["linaer"]}, ValueError, "unknown model 'linaer'; did you mean 'linear'"),
        ({"X": np.zeros((3, 2))}, ValueError, "X and y must have as many rows, and some, got 3 and 120"),
        ({"X": np.zeros(120)}, ValueError, r"X must have shape \(n_samples, n_features\)"),
        ({"y": np.full(120, np.nan)}, ValueError, "y must be finite"),
        ({"cv": 1}, ValueError, "cv must be an integer >= 2, got 1"),
        ({"cv": []}, ValueError, "cv must give at least one pair"),
        ({"cv": [(np.arange(3), np.array([500]))]}, ValueError, "cv must give row numbers below 120"),
        ({"shift": np.zeros(120, bool)}, ValueError, "shift must mark some rows, and not all, got 0 of 120"),
        ({"shift": np.zeros(120)}, ValueError, "shift must be a boolean mask of 120 rows"),
        ({"shift": np.zeros((5, 3))}, ValueError, "shift must have the 2 columns of X, got 3"),
        ({"metrics": ["auc"]}, ValueError, "metrics must be functions or of"),
        ({"task": "ranking"}, ValueError, "task must be one of"),
        ({"random_state": -1}, ValueError, "random_state must be an integer >= 0"),
    ],
)
def test_bad_arguments_are_refused_before_any_fit(change, error, message, rows, tmp_path):
    log = tmp_path / "log"
    arguments = {"estimators": {"count": Counting(log)}, "X": rows[0], "y": rows[1], "cv": 3} | change
    with pytest.raises(error, match=message):
        compare(**arguments)
    assert not log.exists()


def test_labels_may_not_be_missing(rows):
    y = np.array(["a", None] * 60, dtype=object)
    with pytest.raises(ValueError, match="y must have a label in every row, got 60 without"):
        compare([Shares()], rows[0], y)


def test_results_must_be_a_folder(rows, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="results must be a folder"):
        compare([Mean()], *rows, results=tmp_path / "file")


def test_summary_marks_differences_beyond_two_errors(rows):
    table = compare({"line": LinearRegression(), "mean": Mean(), "bad": Failing()}, *rows, cv=5)
    short = summary(table)
    assert short.loc["mean", "rmse"].endswith("*")
    assert not short.loc["line", "rmse"].endswith("*")
    assert "log_score" not in short
    assert short.loc["bad", "rmse"] == ""
    assert short.loc["bad", "error"].startswith("fold 0: ValueError")
    paired = summary(table, ["rmse"], differences=True)["rmse"]
    assert paired["line"] == "0"
    found = value(table, "mean", "rmse", "difference")
    assert float(paired["mean"].split(" ± ")[0]) == pytest.approx(found, abs=0.05)
    assert paired["mean"].startswith("+")
    assert paired["mean"].endswith("*")


@pytest.mark.slow
def test_dask_carries_the_fits(rows):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        table = compare({"ridge": BayesianRidge(), "bad": Failing()}, *rows, cv=3)
    alone = compare({"ridge": BayesianRidge()}, *rows, cv=3)
    assert value(table, "ridge", "rmse") == value(alone, "ridge", "rmse")
    assert "no luck" in value(table, "bad", "rmse", "error")


@pytest.mark.slow
def test_ray_carries_the_fits(rows):
    ray = pytest.importorskip("ray", reason="needs ray: pip install ray")
    from ray.util.joblib import register_ray

    register_ray()
    ray.init(num_cpus=1, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    try:
        with joblib.parallel_config(backend="ray"):
            table = compare({"ridge": BayesianRidge(), "bad": Failing()}, *rows, cv=3)
    finally:
        ray.shutdown()
    alone = compare({"ridge": BayesianRidge()}, *rows, cv=3)
    assert value(table, "ridge", "rmse") == value(alone, "ridge", "rmse")
    assert "no luck" in value(table, "bad", "rmse", "error")
