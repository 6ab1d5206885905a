"""HBARTRegressorCV shows how far it is."""

from __future__ import annotations

from boostplugins import HBARTRegressor, HBARTRegressorCV
from tests.estimators.bart_cases import SHORT, data, quiet


@quiet
def test_a_search_shows_the_fits_done(capsys, tmp_path):
    X, y = data(40)
    search = HBARTRegressorCV(HBARTRegressor(**SHORT), {"k": [2.0, 3.0]}, cv=2, verbose=True).fit(X, y)
    shown = capsys.readouterr().err
    assert [f"HBARTRegressorCV: fit {done} of 5" in shown for done in range(1, 6)] == [True] * 5
    search.save(tmp_path / "model")
    assert HBARTRegressorCV.load(tmp_path / "model").verbose
    search.set_params(verbose=False).fit(X, y)
    assert capsys.readouterr().err == ""
