"""Loops run interleaved, on a clock that is part of the loop itself."""

import pytest

from hotloop.doctor.loops import LoopInterval, compare_loops, record, stretch_length


class MadeUpLoop:
    """Takes `seconds_per_env_step` for each env step, `at_once` of them per iteration, until `end`."""

    def __init__(self, seconds_per_env_step, at_once=1, end=10**9):
        self.cost, self.at_once, self.end, self.env_steps = seconds_per_env_step, at_once, end, 0

    def advance(self, env_steps):
        made = 0
        while made < env_steps and self.env_steps < self.end:
            made += self.at_once
            self.env_steps += self.at_once
        return LoopInterval(
            seconds=made * self.cost, env_steps=made, episodes=0, updates=made, phases={"env": made * self.cost}
        )

    def close(self):
        """Nothing to close."""


def test_the_ratio_is_the_cost_per_env_step_of_the_first_over_that_of_the_second():
    found = compare_loops(MadeUpLoop(3e-3), MadeUpLoop(1e-3, at_once=8), seconds=1.0)
    assert (found.ratio, found.low, found.high) == pytest.approx((3.0, 3.0, 3.0))
    assert (found.first_cost, found.second_cost) == pytest.approx((3e-3, 1e-3))


def test_a_stretch_is_long_enough_to_be_timed_and_a_whole_number_of_iterations():
    assert stretch_length(MadeUpLoop(1e-3)) == 64  # 1, 2, 4 ... until 40 ms are reached
    assert stretch_length(MadeUpLoop(1.0, at_once=5)) == 5


def test_a_recording_is_cut_into_slices_that_sum_to_it_and_stops_at_its_bound():
    loop = MadeUpLoop(1e-3)
    slices = record(loop, seconds=1.0, slices=10)
    assert sum(part.env_steps for part in slices) == loop.env_steps
    assert sum(part.seconds for part in slices) == pytest.approx(loop.env_steps * 1e-3)
    assert 1.0 <= loop.env_steps * 1e-3 <= 1.1
    assert slices[-1].start_seconds == pytest.approx(sum(part.seconds for part in slices[:-1]))


def test_a_recording_ends_with_its_loop():
    slices = record(MadeUpLoop(1e-3, end=20), seconds=1.0)
    assert sum(part.env_steps for part in slices) == 20
