"""Best rounds: NaN, ties, direction."""

import math

import pytest

from boostplugins.early_stopping import BestRound


def test_e05_nan_is_not_better():
    watch = BestRound(patience=3, maximize=False)
    stops = [watch.update(value) for value in (1.0, 0.9, math.nan, 0.8, 0.85, math.nan, 0.81)]
    assert stops.index(True) == 6
    assert watch.best_iteration == 3


def test_e05_all_nan_is_an_error():
    watch = BestRound(patience=2, maximize=True, name="AUC")
    watch.update(math.nan)
    with pytest.raises(ValueError, match="AUC is NaN in every round"):
        watch.update(math.nan)


@pytest.mark.parametrize("maximize", [True, False])
def test_first_of_equal_rounds_is_best(maximize):
    watch = BestRound(patience=9, maximize=maximize)
    for value in (1.0, 2.0, 2.0) if maximize else (2.0, 1.0, 1.0):
        watch.update(value)
    assert watch.best_iteration == 1


def test_e02_wrong_direction_is_suspected():
    watch = BestRound(patience=99, maximize=False, name="accuracy")
    for value in (0.5, 0.6, 0.7, 0.8, 0.9):
        watch.update(value)
    with pytest.warns(
        UserWarning, match="accuracy got worse in every round from the first; is maximize=False right"
    ):
        watch.close()
