"""Schedules: closed form, stages, member ends, errors."""

import json
import math
from dataclasses import dataclass

import numpy as np
import pytest

from boostplugins.schedules import Constant, CosineCycle, GradientSchedule, schedule_from_dict


@pytest.mark.parametrize(("length", "top", "floor"), [(1, 2.0, 1.0), (7, 10.0, 1.0), (200, 10.0, 0.5)])
def test_scale_is_the_closed_form(length, top, floor):
    cycle = CosineCycle(length=length, max_scale=top, min_scale=floor)
    for t in range(3 * length):
        expected = max(top / 2 * (math.cos(math.pi * (t % length) / length) + 1), floor)
        assert cycle.scale(t) == pytest.approx(expected, rel=1e-15)
        assert cycle.cycle(t) == t // length
    assert cycle.scale(0) == top
    assert min(cycle.scale(t) for t in range(length)) >= floor


def test_paper_setting_sits_on_the_floor_for_the_last_fifth():
    cycle = CosineCycle(length=200, max_scale=10.0, min_scale=1.0)
    on_floor = [t for t in range(200) if cycle.scale(t) == 1.0]
    assert on_floor == list(range(160, 200))
    assert np.mean([cycle.scale(t) for t in range(200)]) == pytest.approx(5.16, abs=0.01)


@pytest.mark.parametrize("exploration", [0.0, 0.3, 0.8, 1.0])
def test_exploration_stage(exploration):
    cycle = CosineCycle(length=10, exploration=exploration)
    assert [cycle.exploring(t) for t in range(10)] == [t / 10 < exploration for t in range(10)]
    assert not Constant().exploring(0)


def test_member_ends():
    cycle = CosineCycle(length=20)
    assert cycle.member_ends(100).tolist() == [20, 40, 60, 80, 100]
    assert cycle.member_ends(119, n_members=2).tolist() == [80, 100]
    assert cycle.member_ends(19).tolist() == []
    # CatBoost's own virtual ensembles: period floor(T / 2V), members at T - (V - 1 - v) period.
    assert Constant().member_ends(1000, 10).tolist() == list(range(550, 1001, 50))
    assert Constant().member_ends(3, 10).tolist() == [2, 3]
    assert Constant().member_ends(1).tolist() == [1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 0}, r"length must be an integer >= 1, got 0; use Constant\(\) for no cycles"),
        ({"length": 1.5}, "length must be an integer"),
        ({"length": True}, "length must be an integer"),
        ({"max_scale": 0.0}, "max_scale must be a finite number"),
        ({"max_scale": math.nan}, "max_scale"),
        ({"min_scale": 11.0}, r"min_scale must be a finite number in \(0, 10\]"),
        ({"exploration": 1.5}, "exploration"),
    ],
)
def test_bad_settings_name_the_rule(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        CosineCycle(**options)


@pytest.mark.parametrize("schedule", [Constant(), CosineCycle(length=5, max_scale=3.0, exploration=0.5)])
def test_json_round_trip(schedule):
    assert schedule_from_dict(json.loads(json.dumps(schedule.to_dict()))) == schedule


def test_unknown_descriptions_are_refused():
    with pytest.raises(ValueError, match="schedule kind must be one of"):
        schedule_from_dict({"kind": "square"})
    with pytest.raises(ValueError, match="does not fit"):
        schedule_from_dict({"kind": "cosine", "period": 3})


def test_cycles_of_ones_own_schedule_end_where_their_number_changes():
    class Uneven(GradientSchedule):
        def scale(self, iteration):
            return 1.0

        def cycle(self, iteration):
            return (iteration >= 3) + (iteration >= 7)

    schedule = Uneven()
    assert schedule.member_ends(10).tolist() == [3, 7]
    assert schedule.member_ends(6).tolist() == [3]
    assert schedule.member_ends(7).tolist() == [3, 7]
    assert schedule.member_ends(10, 1).tolist() == [7]
    assert schedule.member_ends(10, 5).tolist() == [3, 7]
    assert schedule.member_ends(2).tolist() == []
    with pytest.raises(ValueError, match="n_members must be an integer >= 1"):
        schedule.member_ends(10, 0)
    assert not schedule.exploring(0)


def test_only_data_classes_with_a_kind_describe_themselves():
    class Bare(GradientSchedule):
        kind = "bare schedule of the tests"

        def scale(self, iteration):
            return 1.0

    @dataclass(frozen=True)
    class Nameless(GradientSchedule):
        def scale(self, iteration):
            return 1.0

    for schedule in (Bare(), Nameless()):
        with pytest.raises(TypeError, match="must be a data class with a `kind` of its own"):
            schedule.to_dict()


def test_defaults_and_limits():
    assert {Constant().scale(t) for t in range(5)} == {1.0}
    assert len(Constant().member_ends(1000)) == 10
    assert Constant().member_ends(6).tolist() == [4, 5, 6]
    assert CosineCycle(length=20).member_ends(100, 1).tolist() == [100]
    assert CosineCycle(length=20).member_ends(40, 9).tolist() == [20, 40]
    with pytest.raises(ValueError, match="n_members must be an integer >= 1, got 0"):
        CosineCycle(length=20).member_ends(40, 0)
    low = CosineCycle(length=4, max_scale=0.5, min_scale=0.25)
    assert low.scale(0) == 0.5
    assert low.scale(3) == 0.25
    assert CosineCycle(length=1, min_scale=10.0).scale(0) == 10.0
    with pytest.raises(ValueError, match="exploration must be a finite number"):
        CosineCycle(exploration=-0.1)
