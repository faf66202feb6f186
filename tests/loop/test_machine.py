"""A run sets up its process, and leaves it as it was."""

from __future__ import annotations

import torch

from hotloop.core.arithmetic import denormals_are_flushed
from hotloop.core.schedules import Counters
from hotloop.loop.machine import StopAfter, machine_for


def test_denormals_are_flushed_while_a_run_trains_and_kept_afterwards() -> None:
    assert not denormals_are_flushed()
    with machine_for(threads=1):
        assert denormals_are_flushed()
        assert float(torch.tensor([1e-40]) * 1.0) == 0.0
    assert not denormals_are_flushed()


def test_a_loop_can_be_ended_at_a_count_of_env_steps() -> None:
    counters = Counters()
    stop = StopAfter(counters, 10)
    assert not stop.requested
    counters.env_steps = 10
    assert stop.requested
    stop.check()  # what is under way is finished: it never raises
