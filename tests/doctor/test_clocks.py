"""On a busy machine a trace is told in processor time, every figure of it; the numbers can be checked by eye."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hotloop.doctor.clocks import gain_by_the_wall, kept_from_running, with_clock
from hotloop.doctor.trace import Counts, LineCost, Slice, StackCost, Subject, Trace


def line(where: str, phase: str, seconds: float) -> LineCost:
    return LineCost(where=where, function="f", source="x = 1", phase=phase, seconds=seconds)


def busy_trace(**changed: Any) -> Trace:
    """10 s of loop: env 4 s (1 of processor), update 4 s (2), waiting 2 s; 5 s in the queue for one core."""
    fields: dict[str, Any] = {
        "subject": Subject(kind="script", name="train.py"),
        "machine": {"cores": 1},
        "seconds": 13.0,
        "phases": {"start-up": 3.0, "env": 4.0, "update": 4.0, "wait": 2.0},
        "processor": {"env": 1.0, "update": 2.0},
        "update_parts": {"forward": 1.0, "backward": 3.0},
        "counts": Counts(env_steps=100, updates=100, queued_seconds=5.0, own_threads_seconds=3.0),
        "lines": (line("a.py:1", "env", 4.0), line("a.py:2", "update", 2.0), line("a.py:3", "wait", 2.0)),
        "stacks": (StackCost(phase="env", frames=("f (a.py:1)",), seconds=4.0),),
        "timeline": (
            Slice(
                start_seconds=0.0,
                seconds=10.0,
                env_steps=100,
                episodes=0,
                updates=100,
                phases={"env": 4.0, "update": 4.0, "wait": 2.0},
                processor={"env": 1.0, "update": 2.0},
            ),
        ),
    }
    return Trace(**fields | changed)


def test_every_figure_of_a_busy_machine_is_processor_time_and_own_waiting() -> None:
    told = with_clock(busy_trace())
    assert told.clock == "processor"
    assert told.phases == {"start-up": 3.0, "env": 1.0, "update": 2.0, "wait": 2.0, "queued": 5.0}
    assert sum(told.phases.values()) == told.seconds
    assert told.loop_seconds == 5.0
    assert (told.share("env"), told.share("update"), told.share("wait")) == (0.2, 0.4, 0.4)
    assert told.update_parts == {"forward": 0.5, "backward": 1.5}
    assert [one.seconds for one in told.lines] == [1.0, 1.0, 2.0]
    assert [one.seconds for one in told.stacks] == [1.0]
    assert (told.timeline[0].seconds, told.timeline[0].phases) == (5.0, {"env": 1.0, "update": 2.0, "wait": 2.0})
    assert "50 % of its time" in told.notes[-1]


@pytest.mark.parametrize(
    ("why", "changed"),
    [
        ("a twentieth in the queue", {"counts": Counts(queued_seconds=0.5, own_threads_seconds=9.0)}),
        ("its own threads had the core", {"counts": Counts(queued_seconds=5.0, own_threads_seconds=9.5)}),
        (
            "its own workers had the core",
            {"counts": Counts(queued_seconds=5.0, own_threads_seconds=2.0, worker_seconds=4.5)},
        ),
        ("nothing was measured", {"processor": {}}),
    ],
)
def test_a_quiet_machine_is_told_by_the_wall_clock(why: str, changed: dict[str, Any]) -> None:
    trace = busy_trace(**changed)
    assert not kept_from_running(trace), why
    assert with_clock(trace) is trace


def test_without_waiting_the_queue_is_all_that_stretches_a_loop() -> None:
    """10 s by the wall clock. By its own queue the loop's 3 s of computing take (3 + 5) / 3 times as long."""
    told = with_clock(busy_trace())
    assert told.wall_seconds == 10.0
    assert gain_by_the_wall(told, 3.0, 0.0) == pytest.approx(10 / 8)
    before = replace(
        told, counts=replace(told.counts, crowding=2.0, worker_seconds=1.0)
    )  # by the queue before the loop
    assert gain_by_the_wall(before, 3.0, 1.0) == pytest.approx(10 / 7)


def test_samples_of_the_update_are_fitted_to_its_parts() -> None:
    """Of 4 s all but one were seen in the forward, which computed for one of two."""
    seen = (
        replace(line("a.py:1", "update", 3.0), part="forward"),
        replace(line("a.py:2", "update", 1.0), part="backward"),
    )
    told = with_clock(busy_trace(lines=seen, processor={"env": 1.0, "update": 2.0, "forward": 1.0, "backward": 1.0}))
    assert [one.seconds for one in told.lines] == [1.0, 1.0]


def test_a_phase_never_becomes_longer_by_another_clock() -> None:
    told = with_clock(busy_trace(processor={"env": 4.1, "update": 2.0}))
    assert told.phases["env"] == 4.0


def test_parts_of_the_update_are_each_on_the_processors_clock() -> None:
    """The update took 4 s, of which 2 computed: all of the forward's second, and one of the backward's three."""
    told = with_clock(busy_trace(processor={"env": 1.0, "update": 2.0, "forward": 1.0, "backward": 1.0}))
    assert told.update_parts == {"forward": 1.0, "backward": 1.0}
