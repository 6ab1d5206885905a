"""How rows are dealt to machines, without a cluster: parts joined, ranges, classes that all must hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from boostplugins.lightgbm import CyclicalSGLB
from boostplugins.lightgbm.network import check_classes
from boostplugins.losses import Softmax, SquaredError

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")


@pytest.fixture(autouse=True)
def _one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


class Recorder:
    """Stands for a Dask estimator: keeps what it is given."""

    def set_params(self, objective):
        self.objective = objective

    def fit(self, X, y, sample_weight=None, callbacks=(), **options):
        self.X, self.y, self.weight, self.callbacks, self.options = X, y, sample_weight, callbacks, options
        return self


class Classifier(Recorder):
    def predict_proba(self, X):
        raise NotImplementedError


def sizes(collection):
    return [len(part.compute()) for part in np.ravel(collection.to_delayed())]


def test_parts_of_a_classifier_hold_every_class_and_none_is_empty():
    X, y = np.arange(60.0).reshape(30, 2), np.array([0, 1, 2] * 3 + [0] * 6 + [1, 2, 0] * 2 + [1] * 9)
    weight = np.arange(1.0, 31.0)
    chunks = (6, 0, 3, 6, 5, 1, 9)
    model = CyclicalSGLB(Softmax(3)).fit_dask(
        Classifier(),
        da.from_array(X, chunks=(chunks, 2)),
        da.from_array(y, chunks=(chunks,)),
        sample_weight=da.from_array(weight, chunks=(chunks,)),
        eval_metric="none",
    )
    assert sizes(model.y) == sizes(model.X) == sizes(model.weight) == [6, 3, 21]
    for part in model.y.to_delayed().ravel():
        assert set(part.compute()) == {0, 1, 2}
    for whole, expected in ((model.X, X), (model.y, y), (model.weight, weight)):
        np.testing.assert_array_equal(whole.compute(), expected)
    assert model.options == {"eval_metric": "none"}
    shares = np.bincount(y, weights=weight) / weight.sum()
    start = np.exp(model.objective.start)
    np.testing.assert_allclose(start / start.sum(), shares, rtol=1e-6)


def test_parts_of_frames_and_unknown_sizes_are_joined():
    frames = pytest.importorskip("dask.dataframe")
    table = pd.DataFrame({"a": np.arange(12.0), "y": np.arange(12.0) % 5})
    parts = frames.from_pandas(table, npartitions=3)
    parts = parts[(parts.a < 4) | (parts.a > 7)]  # the middle part is empty
    chain = CyclicalSGLB(SquaredError(0.1))
    model = chain.fit_dask(Recorder(), parts[["a"]], parts["y"])
    assert sizes(model.X) == sizes(model.y) == [4, 4]
    expected = table["y"].drop(index=[4, 5, 6, 7])
    assert model.y.compute().tolist() == expected.tolist()
    assert model.objective.start == pytest.approx((expected.mean(),))
    unknown = chain.fit_dask(Recorder(), parts[["a"]].to_dask_array(), parts["y"].to_dask_array())
    assert sizes(unknown.X) == sizes(unknown.y) == [4, 4]


def test_settled_chains_need_a_noise_variance():
    y = da.from_array(np.arange(6.0), chunks=3)
    settled = CyclicalSGLB(SquaredError(0.1)).distributed(y, np.array([1.0, 0, 0, 0, 0, 1.0]))
    assert settled.start == (2.5,)
    with pytest.raises(ValueError, match="noise_variance must be given"):
        CyclicalSGLB("regression").distributed(y)


def test_a_machine_without_every_class_is_refused():
    seen = {"__name__": "lightgbm.sklearn", "check_classes": check_classes}
    exec("def fit(self):\n    check_classes(3)", seen)

    class Model:
        _classes = ("a", "b", "c")

    check_classes(3)  # no classifier of LightGBM's calls
    seen["fit"](Model())
    Model._classes = ("a", "c")
    with pytest.raises(ValueError, match="every machine must hold all 3 classes"):
        seen["fit"](Model())
