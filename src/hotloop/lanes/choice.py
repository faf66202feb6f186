"""Which lane executes the updates. `auto` is a rule, never a stopwatch: the same job always gets the same lane."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from hotloop.core.errors import LaneError
from hotloop.lanes.eager import EagerLane
from hotloop.lanes.spec import Lane, UpdateSpec
from hotloop.nets.build import MLPLayout

UPDATES_THAT_REPAY_COMPILING = 200_000
"""Compiling takes 10-30 s and then saves some 0.1 to 0.4 ms per update: shorter runs are over sooner without it."""


@dataclass(frozen=True, kw_only=True)
class LaneJob:
    """Everything a choice may depend on."""

    spec: UpdateSpec
    layout: MLPLayout | None  # None: not a plain multilayer network
    rows: int  # of one update
    device: str
    seed: int  # of the noise
    planned_updates: int


@dataclass(frozen=True)
class LaneChoice:
    name: str
    reason: str


def choose_lane(asked: str, job: LaneJob) -> LaneChoice:
    """The lane asked for, or the rule's choice for `auto`; a lane that cannot do the job refuses by name."""
    if asked == "auto":
        return _rule(job)
    if asked == "native" and (problem := native_problem(job)):
        raise LaneError(f"the native lane cannot train this: {problem}", "use `--learner.lane auto`")
    return LaneChoice(asked, "as asked")


def _rule(job: LaneJob) -> LaneChoice:
    problem = native_problem(job)
    if not problem:
        return LaneChoice("native", "a multilayer network on a CPU")
    return LaneChoice("eager", f"native: {problem}")


def native_problem(job: LaneJob) -> str:
    """Why the native lane cannot do this job; empty where it can."""
    if job.device != "cpu":
        return f"it runs on `cpu`, not `{job.device}`"
    if job.spec.noisy:
        return "it has no noisy layers"
    if job.layout is None:
        return "the network is not a plain multilayer network on float observations"
    return ""


def build_lane(choice: LaneChoice, job: LaneJob, network: nn.Module) -> Lane:
    if choice.name == "native":
        from hotloop.lanes.native.lane import NativeLane

        assert job.layout is not None
        return NativeLane(job.spec, network, job.layout, job.rows)
    return EagerLane(job.spec, network, job.device, job.seed)
