"""Which lane executes the updates. `auto` is a rule, never a stopwatch: the same job always gets the same lane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from hotloop.core.errors import LaneError
from hotloop.lanes.eager import EagerLane
from hotloop.lanes.objective import Objective
from hotloop.lanes.spec import Lane
from hotloop.nets.given_network import SharedNetwork
from hotloop.nets.user_torso import UserTorso
from hotloop.presets.run_settings import Precision

UPDATES_THAT_REPAY_COMPILING = 50_000
"""Compiling takes about 25 s and then saves 0.5 ms or more per update: shorter runs are over sooner without it."""


@dataclass(frozen=True, kw_only=True)
class LaneJob:
    """Everything a choice may depend on."""

    objective: Objective
    layout: Any  # the network as numbers, for the lane that does without modules; None: it is of another kind
    batch_size: int
    device: str
    precision: Precision
    seed: int = 0  # of the noise
    num_envs: int = 0  # the number of rows to act on
    planned_updates: int = 0
    untraceable: str = ""  # why a compiler cannot look into the network; empty where it can
    unreadable: str = ""  # why there is no layout of a network that somebody else wrote
    memory: Any = None  # a `LaneMemory` that somebody lends, which the native lane of the Q family takes


@dataclass(frozen=True)
class LaneChoice:
    name: str
    reason: str


def choose_lane(asked: str, job: LaneJob) -> LaneChoice:
    """The lane asked for, or the rule's choice for `auto`; a lane that cannot do the job refuses by name."""
    if asked == "auto":
        choice = _rule(job)
        exact = choice.name == "native" or job.precision == "float32"
        return choice if exact else LaneChoice(choice.name, f"{choice.reason}; {job.precision}: not exact")
    problem = {"native": native_problem, "compiled": compiled_problem}.get(asked, lambda job: "")(job)
    if problem:
        raise LaneError(f"the {asked} lane cannot train this: {problem}", "`--learner.lane auto` chooses one that can")
    return LaneChoice(asked, "as asked" + ("" if job.precision == "float32" else f"; {job.precision}: not exact"))


def _rule(job: LaneJob) -> LaneChoice:
    problem = native_problem(job)
    if not problem:
        return LaneChoice("native", f"{job.layout.title} on a CPU")
    planned = f"{job.planned_updates:,}" if job.planned_updates else "an unknown number of"
    too_few = f"{planned} updates would not repay its compile time"
    repaid = job.planned_updates >= UPDATES_THAT_REPAY_COMPILING
    against = job.untraceable or (compiled_problem(job) if repaid else too_few)
    if against:
        return LaneChoice("eager", f"native: {problem}; compiled: {against}")
    return LaneChoice("compiled", f"native: {problem}")


def native_problem(job: LaneJob) -> str:
    """Why the native lane cannot do this job; empty where it can."""
    if job.device != "cpu":
        return f"it runs on `cpu`, not `{job.device}`"
    if job.precision != "float32":
        return f"it computes in float32, not {job.precision}"
    return job.unreadable or job.objective.native_problem(job.layout)


def untraceable_torso(network: nn.Module, planned_updates: int) -> str:
    """Why a compiler cannot look into a torso of the user's own; empty where it can, or where there is none. Trying
    takes a second, so that it is tried only where compiling would be repaid."""
    if isinstance(network, SharedNetwork) and planned_updates >= UPDATES_THAT_REPAY_COMPILING:
        from hotloop.lanes.compiled import untraceable

        return f"it {problem}" if (problem := untraceable(network)) else ""
    torsos = (module for module in network.modules() if isinstance(module, UserTorso))
    torso = next(torsos, None) if planned_updates >= UPDATES_THAT_REPAY_COMPILING else None
    return "" if torso is None else torso.untraceable()


def compiled_problem(job: LaneJob) -> str:
    """Why the compiled lane cannot do this job; empty where it can."""
    from hotloop.lanes.compiling import compiler_problem

    return job.untraceable or (compiler_problem() if job.device == "cpu" else "")


def build_lane(choice: LaneChoice, job: LaneJob, network: nn.Module) -> Lane:
    if choice.name == "native":
        lent = () if job.memory is None else (job.memory,)
        return job.objective.native_lane(network, job.layout, job.batch_size, *lent)
    if choice.name == "compiled":
        from hotloop.lanes.compiled import CompiledLane

        return CompiledLane(job.objective, network, job.device, job.seed, job.precision, job.num_envs)
    return EagerLane(job.objective, network, job.device, job.seed, job.precision)
