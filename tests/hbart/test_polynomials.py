"""OrthogonalPolynomials under scikit-learn's checks."""

import numpy as np
import pandas as pd
from sklearn.utils.estimator_checks import parametrize_with_checks

from boostplugins.hbart.polynomials import OrthogonalPolynomials


@parametrize_with_checks([OrthogonalPolynomials()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_names_and_frames():
    frame = pd.DataFrame({"a": np.arange(6.0), "b": np.arange(6.0) ** 2})
    found = OrthogonalPolynomials(2).set_output(transform="pandas").fit_transform(frame)
    assert list(found.columns) == ["a^1", "a^2", "b^1", "b^2"]
    np.testing.assert_allclose((found**2).sum(), 1.0)
