"""Which lane executes actor-critic updates: a rule, never a stopwatch."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.core.errors import LaneError
from hotloop.lanes.choice import UPDATES_THAT_REPAY_COMPILING, LaneChoice
from hotloop.lanes.policy_eager import EagerPolicyLane
from hotloop.lanes.policy_spec import PolicyLane, PolicySpec
from hotloop.lanes.spec import Precision
from hotloop.nets.actor_critic import ActorCritic, ActorCriticLayout


@dataclass(frozen=True, kw_only=True)
class PolicyJob:
    """Everything a choice may depend on."""

    spec: PolicySpec
    layout: ActorCriticLayout | None  # None: not a plain multilayer network
    device: str
    precision: Precision
    num_envs: int = 0  # the number of rows to act on
    planned_updates: int = 0


def choose_policy_lane(asked: str, job: PolicyJob) -> LaneChoice:
    """The lane asked for, or the rule's choice for `auto`; a lane that cannot do the job refuses by name."""
    if asked == "auto":
        return _rule(job)
    problem = {"native": native_policy_problem, "compiled": compiled_policy_problem}.get(asked, lambda job: "")(job)
    if problem:
        raise LaneError(f"the {asked} lane cannot train this: {problem}", "`--learner.lane auto` chooses one that can")
    return LaneChoice(asked, "as asked" + _exactness(job))


def _rule(job: PolicyJob) -> LaneChoice:
    problem = native_policy_problem(job)
    if not problem:
        return LaneChoice("native", "a multilayer network on a CPU")
    why = f"native: {problem}"
    if job.planned_updates < UPDATES_THAT_REPAY_COMPILING:
        why += f"; compiled: {job.planned_updates:,} updates would not repay its compile time"
        return LaneChoice("eager", why + _exactness(job))
    if problem := compiled_policy_problem(job):
        return LaneChoice("eager", f"{why}; compiled: {problem}{_exactness(job)}")
    return LaneChoice("compiled", why + _exactness(job))


def _exactness(job: PolicyJob) -> str:
    return "" if job.precision == "float32" else f"; {job.precision}: not exact"


def compiled_policy_problem(job: PolicyJob) -> str:
    """Why the compiled lane cannot do this job; empty where it can."""
    from hotloop.lanes.compiled_build import compiler_problem

    return compiler_problem() if job.device == "cpu" else ""


def native_policy_problem(job: PolicyJob) -> str:
    """Why the native lane cannot do this job; empty where it can."""
    if job.device != "cpu":
        return f"it runs on `cpu`, not `{job.device}`"
    if job.precision != "float32":
        return f"it computes in float32, not {job.precision}"
    if job.layout is None:
        return "the network is not a plain multilayer network on float observations"
    return ""


def build_policy_lane(choice: LaneChoice, job: PolicyJob, network: ActorCritic) -> PolicyLane:
    if choice.name == "native":
        from hotloop.lanes.native.policy_lane import NativePolicyLane

        assert job.layout is not None
        return NativePolicyLane(job.spec, network, job.layout)
    if choice.name == "compiled":
        from hotloop.lanes.policy_compiled import CompiledPolicyLane

        return CompiledPolicyLane(job.spec, network, job.device, job.precision, job.num_envs)
    return EagerPolicyLane(job.spec, network, job.device, job.precision)
