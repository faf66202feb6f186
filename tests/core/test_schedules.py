"""Schedules by hand numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.errors import SettingsError
from hotloop.core.schedules import Counters, Schedule


def test_a_constant_stays():
    assert [Schedule(start=0.3).at(count) for count in (0, 1, 10**18)] == [0.3, 0.3, 0.3]


def test_linear_goes_from_start_to_end_and_stays_there():
    schedule = Schedule(kind="linear", start=1.0, end=0.2, over=4)
    assert [schedule.at(count) for count in range(7)] == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2, 0.2, 0.2], rel=1e-12)
    assert schedule.at(4) == 0.2  # exactly, not nearly


def test_linear_may_rise():
    assert Schedule(kind="linear", start=0.0, end=1.0, over=10).at(5) == 0.5


def test_decay_multiplies_once_per_interval_and_stops_at_its_end():
    schedule = Schedule(kind="decay", start=1.0, end=0.2, factor=0.5, every=3)
    assert [schedule.at(count) for count in (0, 2, 3, 5, 6, 8, 9, 300)] == [1.0, 1.0, 0.5, 0.5, 0.25, 0.25, 0.2, 0.2]


def test_the_unit_says_which_counter_counts():
    counters = Counters(env_steps=1, updates=2, episodes=3)
    values = [
        Schedule(kind="linear", start=0.0, end=4.0, over=4, unit=unit).now(counters)
        for unit in ("env_steps", "updates", "episodes")
    ]
    assert values == [1.0, 2.0, 3.0]


def test_a_share_is_of_the_env_steps_that_the_run_was_begun_for():
    schedule = Schedule(kind="linear", start=1.0, end=0.0, over="12.5%")
    assert schedule.resolve(800).over == 100
    assert schedule.resolve(800).at(50) == 0.5
    assert schedule.resolve(1).over == 1  # never none at all
    assert Schedule(over=7).resolve(800).over == 7


@given(
    start=st.floats(0, 1),
    end=st.floats(0, 1),
    over=st.integers(1, 10**20),
    counts=st.lists(st.integers(0, 10**21), min_size=2, max_size=2),
)
def test_linear_never_leaves_its_ends_and_never_turns_back(start, end, over, counts):
    schedule = Schedule(kind="linear", start=start, end=end, over=over)
    early, late = (schedule.at(count) for count in sorted(counts))
    low, high = min(start, end), max(start, end)
    slack = 1e-15
    assert low - slack <= early <= high + slack
    assert abs(late - end) <= abs(early - end) + slack


@pytest.mark.parametrize(
    "wrong",
    [
        {"over": 0},
        {"over": "0%"},
        {"over": "101%"},
        {"over": "many%"},
        {"over": "10k"},
        {"over": "5%", "unit": "updates"},
    ]
    + [{"every": 0}, {"factor": 0.0}, {"factor": 1.1}, {"factor": float("nan")}],
)
def test_schedules_that_mean_nothing_are_refused(wrong):
    with pytest.raises(SettingsError):
        Schedule(kind="decay", **wrong)
