"""Which lane executes actor-critic updates: a rule, never a stopwatch."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.core.errors import LaneError
from hotloop.lanes.choice import LaneChoice
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


def choose_policy_lane(asked: str, job: PolicyJob) -> LaneChoice:
    """The lane asked for, or the rule's choice for `auto`; a lane that cannot do the job refuses by name."""
    note = "" if job.precision == "float32" else f"; {job.precision}: not exact"
    problem = native_policy_problem(job)
    if asked == "auto":
        if problem:
            return LaneChoice("eager", f"native: {problem}{note}")
        return LaneChoice("native", "a multilayer network on a CPU")
    if asked == "native" and problem:
        raise LaneError(f"the native lane cannot train this: {problem}", "`--learner.lane auto` chooses one that can")
    return LaneChoice(asked, "as asked" + note)


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
    return EagerPolicyLane(job.spec, network, job.device, job.precision)
