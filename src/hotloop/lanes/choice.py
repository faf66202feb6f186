"""Which lane executes the updates. `auto` is a rule, never a stopwatch: the same job always gets the same lane."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from hotloop.core.errors import LaneError
from hotloop.lanes.eager import EagerLane
from hotloop.lanes.spec import Lane, Precision, UpdateSpec
from hotloop.nets.branches import BranchLayout
from hotloop.nets.layouts import MLPLayout

UPDATES_THAT_REPAY_COMPILING = 50_000
"""Compiling takes about 25 s and then saves 0.5 ms or more per update: shorter runs are over sooner without it."""


@dataclass(frozen=True, kw_only=True)
class LaneJob:
    """Everything a choice may depend on."""

    spec: UpdateSpec
    layout: MLPLayout | BranchLayout | None  # None: neither a plain multilayer network nor branches with attention
    rows: int  # of one update
    device: str
    seed: int  # of the noise
    precision: Precision
    num_envs: int  # the number of rows to act on
    planned_updates: int
    traceable: bool = True  # False: the network calls machine code that a compiler cannot look into


@dataclass(frozen=True)
class LaneChoice:
    name: str
    reason: str


def choose_lane(asked: str, job: LaneJob) -> LaneChoice:
    """The lane asked for, or the rule's choice for `auto`; a lane that cannot do the job refuses by name."""
    if asked == "auto":
        return _rule(job)
    problem = {"native": native_problem, "compiled": compiled_problem}.get(asked, lambda job: "")(job)
    if problem:
        raise LaneError(f"the {asked} lane cannot train this: {problem}", "`--learner.lane auto` chooses one that can")
    return LaneChoice(asked, "as asked" + _exactness(job))


def _rule(job: LaneJob) -> LaneChoice:
    problem = native_problem(job)
    if not problem:
        kind = "branches with attention" if isinstance(job.layout, BranchLayout) else "a multilayer network"
        return LaneChoice("native", f"{kind} on a CPU")
    why = f"native: {problem}"
    if job.planned_updates < UPDATES_THAT_REPAY_COMPILING:
        too_few = f"{why}; compiled: {job.planned_updates:,} updates would not repay its compile time"
        return LaneChoice("eager", too_few + _exactness(job))
    problem = compiled_problem(job)
    if problem:
        return LaneChoice("eager", f"{why}; compiled: {problem}" + _exactness(job))
    return LaneChoice("compiled", why + _exactness(job))


def _exactness(job: LaneJob) -> str:
    return "" if job.precision == "float32" else f"; {job.precision}: not exact"


def native_problem(job: LaneJob) -> str:
    """Why the native lane cannot do this job; empty where it can."""
    if job.device != "cpu":
        return f"it runs on `cpu`, not `{job.device}`"
    if job.precision != "float32":
        return f"it computes in float32, not {job.precision}"
    if job.spec.noisy:
        return "it has no noisy layers"
    if job.layout is None:
        return "the network is not a plain multilayer network or branches with attention, on float observations"
    return ""


def compiled_problem(job: LaneJob) -> str:
    """Why the compiled lane cannot do this job; empty where it can."""
    from hotloop.lanes.compiled_build import compiler_problem

    if not job.traceable:
        return "the network is a graph of nodes, one compiled operation already"
    if job.device == "cpu":
        return compiler_problem()
    return ""


def build_lane(choice: LaneChoice, job: LaneJob, network: nn.Module) -> Lane:
    if choice.name == "native":
        from hotloop.lanes.native.lane import NativeLane

        assert job.layout is not None
        return NativeLane(job.spec, network, job.layout, job.rows)
    if choice.name == "compiled":
        from hotloop.lanes.compiled import CompiledLane

        return CompiledLane(job.spec, network, job.device, job.seed, job.precision, job.num_envs)
    return EagerLane(job.spec, network, job.device, job.seed, job.precision)
