"""Prior functions on LightGBM that the chain fits to its own rows."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest

from boostplugins import CosineCycle, RandomPrior, VirtualEnsemble
from boostplugins.lightgbm import CyclicalSGLB
from boostplugins.losses import NormalLikelihood, Softmax, SquaredError
from tests.lightgbm.common import QUIET, regression


def fit(chain, data, n_steps=10, **options):
    params = {"objective": chain} | QUIET | chain.lightgbm_params()
    return lgb.train(params, data, n_steps, callbacks=[chain.callback()], **options)


@pytest.mark.parametrize(
    "loss", [SquaredError(0.1), NormalLikelihood(), Softmax(3)], ids=lambda loss: loss.name
)
def test_an_unfitted_prior_is_fitted_to_the_rows(loss):
    X, y = regression(150)
    if loss.classification:
        y = np.digitize(y, [0.0, 1.0])
    settings = {"schedule": CosineCycle(length=5, max_scale=2.0), "random_state": 3}
    fitted = RandomPrior(scale=1.5).fit(X).in_units(loss.prior_units(np.asarray(y, dtype=np.float32)))
    found = []
    for prior in (RandomPrior(scale=1.5), fitted):
        chain = CyclicalSGLB(loss, prior=prior, **settings)
        booster = fit(chain, lgb.Dataset(X, y, free_raw_data=False))
        again = lgb.Booster(model_str=booster.model_to_string())
        found.append(VirtualEnsemble.from_lightgbm(again).members(X + 5.0))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6, atol=1e-6)
    assert found[0].var(axis=1).mean() > 0.01


@pytest.mark.parametrize("how", ["dtype", "names", "numbers"])
def test_categories_take_no_part(how):
    X, y = regression(150, 3)
    frame = pd.DataFrame(X, columns=["a", "kind of", "b"])
    frame["kind of"] = np.arange(150) % 3
    options = {"names": ["kind of"], "numbers": [1]}.get(how, "auto")
    if how == "dtype":
        frame["kind of"] = pd.Categorical(np.array(["x", "y", "z"])[np.arange(150) % 3])
    chain = CyclicalSGLB(SquaredError(0.1), schedule=CosineCycle(length=5), prior=RandomPrior())
    data = lgb.Dataset(frame, y, categorical_feature=options, free_raw_data=False)
    ensemble = VirtualEnsemble.from_lightgbm(fit(chain, data))
    assert ensemble.prior.columns == (0, 2)
    expected = RandomPrior().fit(X[:, [0, 2]]).in_units([np.sqrt(0.1)])
    np.testing.assert_array_equal(ensemble.prior.values(1, frame), expected.values(1, X[:, [0, 2]]))
    assert np.isfinite(ensemble.members(frame)).all()


def test_going_on_with_a_model_needs_the_fitted_prior():
    X, y = regression(150)
    chain = CyclicalSGLB(SquaredError(0.1), schedule=CosineCycle(length=5), prior=RandomPrior())
    first = fit(chain, lgb.Dataset(X, y, free_raw_data=False))
    with pytest.raises(ValueError, match="prior must be a fitted one to go on with a model"):
        fit(chain, lgb.Dataset(X, y, free_raw_data=False), init_model=first)
    held = VirtualEnsemble.from_lightgbm(first).prior
    chain = CyclicalSGLB(SquaredError(0.1), schedule=CosineCycle(length=5), prior=held)
    both = fit(chain, lgb.Dataset(X, y, free_raw_data=False), init_model=first)
    assert VirtualEnsemble.from_lightgbm(both).members(X).shape == (150, 4, 1)
