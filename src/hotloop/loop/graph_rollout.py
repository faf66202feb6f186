"""What one on-policy iteration collects where observations are graphs of changing size."""

from __future__ import annotations

import numpy as np

from hotloop.core.graphs import Graphs, join_graphs
from hotloop.core.types import Array, EnvStep, GraphRollout
from hotloop.lanes.graph_objective import GraphOutputs


class GraphRolloutBuffer:
    """`note` takes what the policy sees and does, `add` what comes of it, until it is `full`."""

    def __init__(self, shape: tuple[int, int], numbers: int, parts: int) -> None:
        self._steps, self._num_envs = shape
        steps, num_envs = shape
        continuous = np.zeros((3, steps, num_envs, numbers), np.float32)
        by_part = np.zeros((3, parts, steps, num_envs), np.float32)
        flags = np.zeros((2, steps, num_envs), np.bool_)
        self._data = GraphRollout(
            obs=Graphs(*(np.empty(0) for _ in range(6))),
            mean=continuous[0],
            log_std=continuous[1],
            numbers=continuous[2],
            counts=np.ones((steps, num_envs, numbers), np.bool_),
            value=np.zeros((parts, steps + 1, num_envs), np.float32),
            reward=by_part[0],
            terminated=flags[0],
            truncated=flags[1],
            final_value=by_part[1],
            advantage=np.zeros((steps, num_envs), np.float32),
            returns=by_part[2],
        )
        self.clear()

    def clear(self) -> None:
        self._at = 0
        self._graphs: list[Graphs] = []
        self._logits: list[Array] = []
        self._choices: list[Array] = []
        self._ends: list[tuple[int, Array, Graphs]] = []  # step, envs and final observations of time-outs

    @property
    def full(self) -> bool:
        return self._at == self._steps

    @property
    def data(self) -> GraphRollout:
        """The whole, its graphs joined; asked for once it is full."""
        if len(self._data.obs) != self._steps * self._num_envs or self._graphs:
            self._data.obs = join_graphs(self._graphs)
            self._data.node_logits = np.concatenate(self._logits) if self._logits else None
            self._data.choices = np.concatenate(self._choices) if self._choices else None
            self._graphs = []
        return self._data

    def note(
        self, obs: Graphs, outputs: GraphOutputs, numbers: Array, choices: Array | None, counts: Array | None
    ) -> None:
        data, at = self._data, self._at
        self._graphs.append(obs)
        data.mean[at], data.log_std[at], data.numbers[at] = outputs.mean, outputs.log_std, numbers
        data.value[:, at] = outputs.value.T
        if counts is not None:
            data.counts[at] = counts
        if choices is not None:
            assert outputs.node_logits is not None
            self._logits.append(outputs.node_logits)
            self._choices.append(choices)

    def add(self, step: EnvStep) -> None:
        data, at = self._data, self._at
        data.reward[:, at] = step.reward if step.reward_parts is None else step.reward_parts.T
        data.terminated[at], data.truncated[at] = step.terminated, step.truncated
        if step.truncated.any():
            envs = np.flatnonzero(step.truncated)
            assert isinstance(step.final_obs, Graphs)
            self._ends.append((at, envs, step.final_obs.take(envs)))
        self._at += 1

    def timeouts(self) -> tuple[Array, Array, Graphs] | None:
        """Steps, envs and final observations of the episodes that were cut off."""
        if not self._ends:
            return None
        steps = np.concatenate([np.full(len(envs), at) for at, envs, _ in self._ends])
        envs = np.concatenate([envs for _, envs, _ in self._ends])
        return steps, envs, join_graphs([graphs for _, _, graphs in self._ends])
