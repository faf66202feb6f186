"""What every node of a deployed colony was and did, step by step: a row each, as they play."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from hotloop.core.graphs import Graphs
from hotloop.core.types import Array, EnvStep, NodeAction
from hotloop.workloads.durotaxis.baselines import leftmost
from hotloop.workloads.durotaxis.draw import snapshot
from hotloop.workloads.durotaxis.env import Durotaxis
from hotloop.workloads.durotaxis.layout_kernels import RATIO

SPAWN, DELETE, END = "spawn", "delete", ""


class NodeRow(NamedTuple):
    """One node before step `step` + 1 of an episode, and what it did in it; `action` is empty once the episode is over.

    Ids count from 0 in the order of birth within an episode; a node keeps its own.
    """

    episode: int
    step: int
    id: int
    x: float
    y: float
    intensity: float
    age: int
    action: str


class LoggedColonies:
    """`Durotaxis` as it is, every node of every counted episode handed to `write`.

    Env i is looked on for `quota[i]` episodes of at most `max_episode_steps`: those that an evaluation counts. Episode
    j of env i has the number j * num_envs + i + 1.
    """

    def __init__(
        self, envs: Durotaxis, quota: Array, max_episode_steps: int, write: Callable[[Iterator[NodeRow]], None]
    ) -> None:
        envs.hold_finished()
        self.envs, self._write = envs, write
        self._quota, self._limit = quota, max_episode_steps
        self._begun = np.zeros(envs.num_envs, np.int64)
        self._lengths = np.zeros(envs.num_envs, np.int64)
        self._ids: list[Array] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.envs, name)

    def reset(self) -> tuple[Graphs, Array | None]:
        first = self.envs.reset()
        self._ids = [np.arange(count) for count in self.envs.get_state()["num_nodes"]]
        self._born = [len(ids) for ids in self._ids]
        return first

    def step(self, action: Any) -> EnvStep:
        before = self.envs.get_state()
        step = self.envs.step(action)
        after = self.envs.get_state()
        done = step.terminated | step.truncated
        per_node, ends = isinstance(action, NodeAction), np.cumsum(before["num_nodes"])[:-1]
        choices = np.split(action.choices, ends) if per_node else []
        for index in range(self.envs.num_envs):
            colony = snapshot(before, index)
            k = math.floor(float(after["action"][index][RATIO]) * len(colony["ages"]))
            chosen = choices[index] == 1 if choices else _leftmost(colony["positions"][:, 0], k)
            self._log(index, colony, np.where(chosen, DELETE, SPAWN))
            self._follow(index, chosen, int(after["num_nodes"][index]))
            self._lengths[index] += 1
            if done[index] or self._lengths[index] >= self._limit:
                self._end(index, after, bool(done[index]))
        if done.any():
            seen = self.envs.restarted(step.final_obs, done)
            for index in np.flatnonzero(done).tolist():
                self._ids[index] = np.arange(seen.num_nodes[index])
                self._born[index] = len(self._ids[index])
            step = dataclasses.replace(step, obs=seen)
        return step

    def _follow(self, index: int, chosen: Array, num_nodes: int) -> None:
        """Who is there after a step: those who stayed in their order, then the newborn."""
        stayed, born = self._ids[index][~chosen], self._born[index]
        newborn = np.arange(born, born + num_nodes - len(stayed))
        self._ids[index], self._born[index] = np.concatenate([stayed, newborn]), born + len(newborn)

    def _end(self, index: int, after: Mapping[str, Array], is_over: bool) -> None:
        if is_over:
            colony = snapshot(after, index)
            self._log(index, colony, np.full(len(colony["ages"]), END))
        self._lengths[index] = 0
        self._begun[index] += 1

    def _log(self, index: int, colony: dict[str, Any], actions: Array) -> None:
        if self._begun[index] >= self._quota[index]:
            return
        episode = int(self._begun[index]) * self.envs.num_envs + index + 1
        x, y = colony["positions"].T
        m, b = colony["m"], colony["b"]
        intensity = m * x + b if colony["substrate"] == "linear" else b * np.exp(m * x)
        columns = (self._ids[index], x, y, intensity, colony["ages"], actions)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        self._write(NodeRow(episode, colony["step"], *row) for row in rows)


def _leftmost(x: Array, k: int) -> Array:
    chosen = np.zeros(len(x), bool)
    chosen[leftmost(x, k)] = True
    return chosen
