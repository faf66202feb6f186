"""Phases on a clock that the test turns: every nanosecond is charged exactly once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.timer import PhaseTimer


class Clock:
    def __init__(self) -> None:
        self.now = 1_000

    def __call__(self) -> int:
        return self.now


def made() -> tuple[Clock, PhaseTimer]:
    clock = Clock()
    return clock, PhaseTimer(clock)


def test_time_outside_every_phase_is_other():
    clock, timer = made()
    clock.now += 5
    with timer.phase("act"):
        clock.now += 7
    clock.now += 11
    assert timer.totals_ns() == {"other": 16, "act": 7}


def test_a_phase_inside_another_takes_its_time_from_it():
    clock, timer = made()
    with timer.phase("outer"):
        clock.now += 1
        with timer.phase("inner"):
            clock.now += 10
        clock.now += 100
    assert timer.totals_ns() == {"other": 0, "outer": 101, "inner": 10}
    assert timer.counts() == {"other": 0, "outer": 1, "inner": 1}


def test_a_phase_inside_itself_is_charged_once():
    clock, timer = made()
    with timer.phase("a"):
        clock.now += 1
        with timer.phase("a"):
            clock.now += 2
        clock.now += 4
    assert timer.totals_ns() == {"other": 0, "a": 7}
    assert timer.counts()["a"] == 2


def test_a_phase_under_way_is_counted_up_to_now():
    clock, timer = made()
    with timer.phase("a"):
        clock.now += 3
        assert timer.totals_ns()["a"] == 3
        clock.now += 4
    assert timer.totals_ns() == {"other": 0, "a": 7}


def test_an_error_closes_its_phase():
    clock, timer = made()

    def fail() -> None:
        with timer.phase("a"):
            clock.now += 2
            raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        fail()
    clock.now += 3
    assert timer.totals_ns() == {"other": 3, "a": 2}


def test_time_of_an_earlier_part_of_the_run_is_added():
    clock, timer = made()
    timer.add_ns({"act": 100, "evaluate": 50})
    with timer.phase("act"):
        clock.now += 1
    assert timer.totals_ns() == {"other": 0, "act": 101, "evaluate": 50}


def test_a_phase_is_the_same_object_every_time():
    _, timer = made()
    assert timer.phase("a") is timer.phase("a")


trees = st.recursive(
    st.integers(0, 10**12),
    lambda inner: st.tuples(st.sampled_from(["a", "b", "c", "other"]), st.lists(inner, max_size=4)),
    max_leaves=20,
)


def play(tree, clock: Clock, timer: PhaseTimer, current: str, expected: dict[str, int]) -> None:
    if isinstance(tree, int):
        clock.now += tree
        expected[current] = expected.get(current, 0) + tree
        return
    name, inside = tree
    with timer.phase(name):
        for part in inside:
            play(part, clock, timer, name, expected)


@given(st.lists(trees, max_size=6))
def test_any_nesting_sums_to_the_elapsed_time_and_charges_the_innermost_phase(parts):
    clock, timer = made()
    expected: dict[str, int] = {}
    for part in parts:
        play(part, clock, timer, "other", expected)
    totals = timer.totals_ns()
    assert sum(totals.values()) == clock.now - 1_000
    assert {name: total for name, total in totals.items() if total} == {n: t for n, t in expected.items() if t}
