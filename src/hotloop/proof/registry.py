"""All cases by name: family/variant/lane/size, where parts may be left out (`dqn-update/native`: all native ones)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hotloop.core.errors import SettingsError
from hotloop.core.values import nearest
from hotloop.lanes.spec import LANES
from hotloop.proof.case import Case
from hotloop.proof.cases import (
    acting,
    branch_attention,
    durotaxis_loop,
    durotaxis_step,
    loop,
    loss,
    ppo_update,
    prioritised,
    replay,
    sac_update,
    sfc_loop,
    sfc_step,
    snake_loop,
    snake_parts,
    snake_step,
    topology,
    update,
)
from hotloop.proof.cases.learners import lane_problem

FAMILIES: dict[str, tuple[Callable[[bool], list[Case]], str]] = {
    "q-loss": (loss.q_loss_cases, "the loss alone, and with its gradient"),
    "combined-forward": (loss.combined_forward_cases, "states and next states in one forward"),
    "buffers": (loss.buffers_cases, "targets computed into preallocated buffers"),
    "dqn-update": (update.dqn_update_cases, "loss, gradient, clipping, Adam and target"),
    "multi-batch": (update.multi_batch_cases, "k sequential updates in one call"),
    "target-polyak": (update.polyak_cases, "the target moves a little towards the online network"),
    "epsilon-act": (acting.epsilon_cases, "exploring and greedy actions"),
    "replay-add": (replay.add_cases, "storing one transition of each of N envs"),
    "replay-sample": (replay.sample_cases, "drawing k batches of B transitions"),
    "replay-disk": (replay.replay_disk_cases, "storing a step of N envs and drawing a batch, on mapped files"),
    "replay-prioritised": (prioritised.prioritised_cases, "drawing a batch by priority and setting its new priorities"),
    "n-step": (prioritised.n_step_cases, "summing n rewards, then storing"),
    "loop-cartpole": (loop.loop_cases, "the whole training loop"),
    "snake-step": (snake_step.snake_step_cases, "one step of N games of snake, with what the policy sees"),
    "flood-fill": (snake_parts.flood_fill_cases, "which cells of a board can be reached"),
    "replay-push": (snake_parts.replay_push_cases, "storing the transitions of 256 games one by one, or in one call"),
    "snake-loop": (snake_loop.snake_loop_cases, "the whole training loop on 256 games, U updates per vector step"),
    "topology-forward": (topology.topology_forward_cases, "a network wired by a graph: its outputs"),
    "topology-backward": (topology.topology_backward_cases, "its outputs and all gradients"),
    "topology-update": (topology.topology_update_cases, "a DQN update of it"),
    "gae": (acting.gae_cases, "generalised advantages of T steps of N envs"),
    "gae-front-insertion": (acting.gae_front_insertion_cases, "the same against a list that grows at its front"),
    "gae-on-tensors": (acting.gae_on_tensors_cases, "the same against a loop over preallocated tensors"),
    "entropy-kl": (acting.entropy_cases, "entropy and KL in closed form, against drawing, within its error"),
    "ppo-update": (ppo_update.ppo_update_cases, "all epochs of a PPO update on a rollout"),
    "sac-update": (sac_update.sac_update_cases, "4 updates of SAC or TD3: critics, actor, temperature and targets"),
    "leftmost": (durotaxis_step.leftmost_cases, "the third of N nodes that lies left-most, against sorting all"),
    "leftmost-argpartition": (
        durotaxis_step.leftmost_argpartition_cases,
        "the same by numpy's partial selection, which takes any of equal ones",
    ),
    "durotaxis-step": (durotaxis_step.durotaxis_step_cases, "one step of 32 colonies of N nodes, with what is seen"),
    "reward-record": (durotaxis_step.reward_record_cases, "a step's rewards as a dictionary, against our whole step"),
    "graph-forward": (durotaxis_loop.graph_forward_cases, "a graph transformer over 64 graphs of N nodes"),
    "graph-forward-singly": (
        durotaxis_loop.graph_forward_singly_cases,
        "the same against one graph per forward",
    ),
    "durotaxis-rollout": (durotaxis_loop.durotaxis_rollout_cases, "a rollout of 16 colonies, all but the network"),
    "durotaxis-loop": (durotaxis_loop.durotaxis_loop_cases, "the whole PPO loop on 16 colonies of 4 to 10 nodes"),
    "durotaxis-loop-singly": (durotaxis_loop.durotaxis_loop_singly_cases, "the same against one graph per forward"),
    "sfc-step": (sfc_step.sfc_step_cases, "one step of service chains in 8 networks of D data centres"),
    "sfc-step-all-paths": (sfc_step.sfc_step_all_paths_cases, "the same against listing all paths each time"),
    "sfc-paths": (sfc_loop.sfc_paths_cases, "shortest paths between all pairs of D data centres, against Dijkstra's"),
    "sfc-all-paths": (sfc_loop.sfc_all_paths_cases, "the same against listing all paths"),
    "sfc-loop": (sfc_loop.sfc_loop_cases, "the whole training loop on service chains, an update per action"),
    "sfc-loop-all-paths": (sfc_loop.sfc_loop_all_paths_cases, "the same against listing all paths each time"),
    "sfc-loop-16-envs": (
        sfc_loop.sfc_loop_16_envs_cases,
        "the same with 16 envs stepped together, then 16 updates: another order, so not the same learning",
    ),
    "branch-attention": (
        branch_attention.branch_attention_cases,
        "the three-branch attention network: 32 states, an update",
    ),
}
"""Family -> what makes its cases (at small sizes, if asked), and what it is about."""


@dataclass(frozen=True)
class Registry:
    cases: list[Case]
    missing: dict[str, str] = field(default_factory=dict)
    """Lanes that cannot run here, and why."""

    def select(self, names: Sequence[str], full: bool) -> list[Case]:
        """Those named, in the order of the registry; without names the default set, or all."""
        if not names:
            return [case for case in self.cases if full or case.is_default]
        chosen = [set(self._named(name)) for name in names]
        return [case for case in self.cases if any(case.name in found for found in chosen)]

    def families(self) -> list[str]:
        """Those that have cases, with what they are about: lines for a terminal."""
        present = {case.family for case in self.cases}
        return [f"{family}: {about}" for family, (_, about) in FAMILIES.items() if family in present]

    def listed(self, cases: Sequence[Case]) -> list[str]:
        """`cases` by family, those of the default set marked, and the lanes that are missing: lines for a terminal."""
        lines = []
        for family, (_, about) in FAMILIES.items():
            members = [case for case in cases if case.family == family]
            lines += [f"{family}: {about}"] if members else []
            lines += [f"  {'*' if case.is_default else ' '} {case.name}" for case in members]
        return [*lines, "* in the small set (`--own`)", *self.not_available()]

    def not_available(self) -> list[str]:
        return [f"{lane} lane not available: {reason}" for lane, reason in self.missing.items()]

    def _named(self, name: str) -> list[str]:
        wanted = name.strip("/").split("/")
        found = [case.name for case in self.cases if fits(wanted, case.parts)]
        if found:
            return found
        for lane, reason in self.missing.items():
            if lane in wanted:
                raise SettingsError(f"`{name}` cannot run here: the {lane} lane is not available", reason)
        raise SettingsError(f"there is no case `{name}`", self._hint(name, wanted))

    def _hint(self, name: str, wanted: list[str]) -> str:
        """The nearest full name, or the nearest part where only one is wrong."""
        families = {case.family for case in self.cases}
        if wanted[0] not in families:
            near = nearest(wanted[0], families)
            return f"did you mean `{near}`?" if near else f"one of {', '.join(FAMILIES)}"
        names = {"/".join(case.parts[: len(wanted)]) for case in self.cases} | {case.name for case in self.cases}
        near = nearest(name, names)
        return f"did you mean `{near}`?" if near else f"`hotloop prove --list` shows all of `{wanted[0]}`"


def fits(wanted: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether `wanted` starts with the family and names further parts in their order."""
    if wanted[0] != parts[0]:
        return False
    rest = iter(parts)
    return all(part in rest for part in wanted)


def build_registry(small: bool = False) -> Registry:
    """Every case whose lane can run here; `small`: the same cases at sizes for tests."""
    missing = {lane: problem for lane in LANES if (problem := lane_problem(lane))}
    cases = [case for make, _ in FAMILIES.values() for case in make(small) if case.lane not in missing]
    return Registry(cases, missing)
