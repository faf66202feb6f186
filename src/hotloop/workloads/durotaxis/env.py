"""Durotaxis, batched: one kernel call steps every colony, a second one writes what is seen of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from hotloop.core.errors import EnvError
from hotloop.core.graphs import Graphs, GraphSpec
from hotloop.core.settings import build, options_signature
from hotloop.core.types import Array, BoxActions, EnvStep, NodeAction, NodeActions
from hotloop.workloads.durotaxis import state as saved
from hotloop.workloads.durotaxis.baselines import BASELINES
from hotloop.workloads.durotaxis.draw import snapshot
from hotloop.workloads.durotaxis.layout_kernels import (
    HIGH,
    LOW,
    NODE_REWARD,
    NUM_NUMBERS,
    RATIO,
    SUCCEEDED,
    empty_colonies,
    empty_scratch,
    rules_of,
)
from hotloop.workloads.durotaxis.observation_kernels import (
    NUM_EDGE_FEATURES,
    NUM_GRAPH_FEATURES,
    NUM_NODE_FEATURES,
    copy_others,
    observe_all,
)
from hotloop.workloads.durotaxis.reward_kernels import ENTRIES, NUM_NODES, PARTS, TOTAL_NODE
from hotloop.workloads.durotaxis.settings import DurotaxisSettings
from hotloop.workloads.durotaxis.step_kernels import NOT_A_CHOICE, NOT_A_NUMBER, restart_all, step_all

NO_CHOICES = np.empty(0, np.int64)
REWARD_TERMS = tuple(f"reward_{name}" for name in (*ENTRIES, "node_rewards"))
"""The fourteen entries of the reward record as measures of an episode."""


class Durotaxis:
    """Lead a growing cell colony up a stiffness gradient. Options are the fields of `DurotaxisSettings`."""

    settings_type: ClassVar[type] = DurotaxisSettings
    baselines: ClassVar[dict[str, Any]] = BASELINES
    reward_parts: ClassVar[tuple[str, ...]] = PARTS
    reward_terms: ClassVar[tuple[str, ...]] = REWARD_TERMS
    saves_state = True

    def __init__(self, num_envs: int, seeds: Array, *, max_episode_steps: int = 0, **options: Any) -> None:
        self.settings: DurotaxisSettings = build(DurotaxisSettings, options, source="the options of `durotaxis`")
        self.num_envs = num_envs
        self.obs_spec = GraphSpec(NUM_NODE_FEATURES, NUM_EDGE_FEATURES, NUM_GRAPH_FEATURES)
        self.action_spec = _actions(self.settings)
        self.has_action_mask = self.settings.curriculum_steps > 0
        self._colonies = empty_colonies(self.settings, num_envs, seeds)
        self._passed = self._colonies, empty_scratch(self.settings), rules_of(self.settings, max_episode_steps)
        self._rewards = np.zeros((num_envs, len(ENTRIES)))
        self._sums = np.zeros((num_envs, len(ENTRIES)))  # of the rewards, over the episode so far
        self._everybody = np.ones(num_envs, np.bool_)
        self._no_mask = np.empty((0, NUM_NUMBERS), np.bool_)
        self._no_stats = self._stats()
        self._restarts = True

    def reset(self) -> tuple[Graphs, Array | None]:
        offsets = np.empty((2, self.num_envs + 1), np.int64)
        restart_all(*self._passed, self._everybody, offsets)
        self._sums[:] = 0.0
        counts = np.arange(NUM_NUMBERS) == RATIO
        learned = self._colonies[0]["total_steps"] >= self.settings.curriculum_steps
        return self._observe(offsets, self._everybody), counts | learned[:, None] if self.has_action_mask else None

    def step(self, action: Array | NodeAction) -> EnvStep:
        """Numbers [N, 5] as `action_spec` has them, or a `NodeAction` where nodes choose."""
        count = self.num_envs
        reward, parts = np.empty(count, np.float32), np.empty((count, len(PARTS)), np.float32)
        flags, offsets = np.empty((2, count), np.bool_), np.empty((2, count + 1), np.int64)
        mask = np.empty((count, NUM_NUMBERS), np.bool_) if self.has_action_mask else None
        passed_mask = self._no_mask if mask is None else mask
        numbers, choices = self._checked(action)
        done = step_all(*self._passed, numbers, choices, self._rewards, reward, parts, flags, passed_mask, offsets)
        if done < 0:
            raise self._fault(done, choices)
        self._sums += self._rewards
        seen = final = self._observe(offsets, self._everybody)
        stats = self._no_stats
        if done:
            stats = self._stats()
            seen = self.restarted(final, flags[0] | flags[1]) if self._restarts else final
        return EnvStep(seen, reward, flags[0], flags[1], final, mask, mask, stats, reward_parts=parts)

    def hold_finished(self) -> None:
        """From now on leave a finished episode as it ended, for whoever shows it and starts the next with `reset` or
        `restarted`."""
        self._restarts = False

    def restarted(self, final: Graphs, done: Array) -> Graphs:
        """Begin the next episode where `done`: `final` with its first observation there."""
        offsets = np.empty((2, self.num_envs + 1), np.int64)
        restart_all(*self._passed, done, offsets)
        self._sums[done] = 0.0
        seen = self._observe(offsets, done)
        copy_others(done, *final.arrays().values(), *seen.arrays().values())
        return seen

    @property
    def record(self) -> dict[str, Any]:
        """The last step's rewards by name: arrays [N] float64, and `node_rewards`, a row of its nodes per colony."""
        entries: dict[str, Any] = {name: self._rewards[:, column].copy() for column, name in enumerate(ENTRIES)}
        rows = zip(self._colonies[1][:, NODE_REWARD], self._rewards[:, NUM_NODES], strict=True)
        return entries | {"node_rewards": [row[: int(count)].copy() for row, count in rows]}

    def snapshot(self, index: int) -> dict[str, Any]:
        """One colony as it is, for drawing."""
        return snapshot(self.get_state(), index)

    def get_state(self) -> dict[str, Array]:
        return saved.pack(self._colonies, self._passed[2]) | {saved.SUMS: self._sums.copy()}

    def set_state(self, state: Mapping[str, Array]) -> None:
        sums = saved.reward_sums(state, self._sums.shape)
        saved.unpack(state, *self._passed)
        self._sums[:] = sums

    def close(self) -> None:
        """Nothing is held."""

    def _checked(self, action: Any) -> tuple[Array, Array]:
        per_node = isinstance(self.action_spec, NodeActions)
        if isinstance(action, NodeAction) != per_node:
            wanted = "a `NodeAction`" if per_node else f"an array [{self.num_envs}, {NUM_NUMBERS}]"
            raise EnvError(f"an action of `durotaxis` is a {type(action).__name__}", f"expected {wanted}")
        numbers, choices = action if per_node else (action, NO_CHOICES)
        numbers, choices = np.ascontiguousarray(numbers, np.float32), np.ascontiguousarray(choices, np.int64)
        if numbers.shape != (self.num_envs, *self.action_spec.shape) or choices.ndim != 1:
            shape = (self.num_envs, *self.action_spec.shape)
            raise EnvError(f"the numbers of an action have shape {numbers.shape}", f"expected {shape}")
        return numbers, choices

    def _fault(self, code: int, choices: Array) -> EnvError:
        if code == NOT_A_NUMBER:
            return EnvError("an action of `durotaxis` holds NaN or infinity", "look at the policy that chose it")
        if code == NOT_A_CHOICE:
            return EnvError("a node's choice is neither 0 nor 1", "0 spawns, 1 deletes")
        num_nodes = self._colonies[0]["num_nodes"].sum()
        return EnvError(f"{len(choices)} choices were given for {num_nodes} nodes", "give one for each node of `obs`")

    def _observe(self, offsets: Array, wanted: Array) -> Graphs:
        """Graphs of the sizes that `offsets` tells, written where `wanted`."""
        num_nodes, num_edges = offsets[0, -1], offsets[1, -1]
        nodes = np.empty((num_nodes, NUM_NODE_FEATURES), np.float32)
        edges = np.empty((num_edges, 2), np.int32)
        edge_features = np.empty((num_edges, NUM_EDGE_FEATURES), np.float32)
        graph = np.empty((self.num_envs, NUM_GRAPH_FEATURES), np.float32)
        observe_all(*self._passed, wanted, offsets, nodes, edges, edge_features, graph)
        return Graphs(nodes, edges, edge_features, graph, offsets[0], offsets[1])

    def _stats(self) -> dict[str, Array]:
        records = self._colonies[0]
        return {
            "success": records["outcome"] == SUCCEEDED,
            "final_centroid": records["centroid"][:, 0].copy(),
            "colony_size": records["num_nodes"].copy(),
            **self._terms(),
        }

    def _terms(self) -> dict[str, Array]:
        """Sums over the episode so far; `num_nodes` is a mean over steps, `node_rewards` one over steps and nodes."""
        sums, steps = self._sums, np.maximum(self._colonies[0]["steps"], 1)
        terms = {f"reward_{name}": sums[:, column].copy() for column, name in enumerate(ENTRIES)}
        terms["reward_num_nodes"] = sums[:, NUM_NODES] / steps
        return terms | {"reward_node_rewards": sums[:, TOTAL_NODE] / np.maximum(sums[:, NUM_NODES], 1)}


def _actions(settings: DurotaxisSettings) -> BoxActions | NodeActions:
    low, high = LOW.tolist(), [settings.max_delete_ratio, *HIGH[RATIO + 1 :].tolist()]
    if settings.action == "per_node":
        return NodeActions(2, BoxActions(tuple(low[1:]), tuple(high[1:]), (NUM_NUMBERS - 1,)))
    return BoxActions(tuple(low), tuple(high), (NUM_NUMBERS,), masked=settings.curriculum_steps > 0)


Durotaxis.__signature__ = options_signature(DurotaxisSettings, max_episode_steps=0)  # type: ignore[attr-defined]
