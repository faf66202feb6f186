"""The slab that one on-policy iteration fills. Views of its rows are made once: with few envs, slicing took longer than
a network's forward. A second slab takes observations that are graphs of changing size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.graphs import Graphs, join_graphs
from hotloop.core.types import (
    Array,
    ArraySpec,
    EnvStep,
    GraphRollout,
    GraphRolloutRow,
    Obs,
    ObsSpec,
    RolloutRow,
    RolloutSlab,
    map_obs,
)
from hotloop.maths.distributions import ActionLayout
from hotloop.replay.rollout_kernels import add_row

ALL = np.ones(0, np.bool_)
"""Stands for rows that are all valid."""


class Timeouts:
    """Where episodes were cut off, and what was seen last of them."""

    def __init__(self) -> None:
        self._ends: list[tuple[int, Array, Obs]] = []  # step, envs, final observations

    def note(self, at: int, truncated: Array, final_obs: Any) -> None:
        envs = np.flatnonzero(truncated)
        self._ends.append((at, envs, map_obs(lambda part: part[envs], final_obs)))

    def joined(self) -> tuple[Array, Array, Obs] | None:
        """Steps, envs and final observations, all of the rollout at once."""
        if not self._ends:
            return None
        steps = np.concatenate([np.full(len(envs), at) for at, envs, _ in self._ends])
        envs = np.concatenate([envs for _, envs, _ in self._ends])
        parts: list[Any] = [obs for _, _, obs in self._ends]
        return steps, envs, map_obs(lambda *each: np.concatenate(each), *parts)


class RolloutBuffer:
    """`add` takes what a policy saw and did and what came of it, until it is `full`; memory is reused.

    Actions are rows of a policy as `action` lays them out, kept with its outputs; or, where `action` is what one env
    takes, as envs take them, with their log-probabilities in the place of outputs. It checks nothing, as our loop gives
    it what is right: `Rollout` looks at what others do.
    """

    def __init__(
        self, shape: tuple[int, int], obs_spec: ObsSpec, action: ActionLayout | ArraySpec, mask_width: int | None = None
    ) -> None:
        steps, num_envs = shape
        kept = action if isinstance(action, ArraySpec) else ArraySpec((action.width,))
        noted = () if isinstance(action, ArraySpec) else (action.num_outputs,)
        numbers = np.zeros((5, steps, num_envs), np.float32)
        flags = np.zeros((2, steps, num_envs), np.bool_)
        self.data = RolloutSlab(
            obs=map_obs(lambda spec: np.zeros((steps, num_envs, *spec.shape), spec.dtype), obs_spec),
            outputs=np.zeros((steps, num_envs, *noted), np.float32),
            action=np.zeros((steps, num_envs, *kept.shape), kept.dtype),
            value=np.zeros((steps + 1, num_envs), np.float32),
            reward=numbers[0],
            terminated=flags[0],
            truncated=flags[1],
            weight=numbers[1],
            final_value=numbers[2],
            advantage=numbers[3],
            returns=numbers[4],
            action_mask=None if mask_width is None else np.ones((steps, num_envs, mask_width), np.bool_),
        )
        self._steps = steps
        self._rows = [_row(self.data, t) for t in range(steps)]
        self.clear()

    def clear(self) -> None:
        self._at = 0
        self._timeouts = Timeouts()

    @property
    def full(self) -> bool:
        return self._at == self._steps

    def __len__(self) -> int:
        """Steps added."""
        return self._at

    def row(self) -> RolloutRow:
        """Where what is seen and done now belongs: a policy may write it there itself."""
        return self._rows[self._at]

    def add(self, acted: RolloutRow, step: EnvStep[Obs]) -> None:
        data, at = self.data, self._at
        if acted is not self._rows[at]:
            self._copy(acted, self._rows[at])
        valid = ALL if step.valid is None else step.valid
        ended = (step.terminated, step.truncated)
        if add_row(at, step.reward, *ended, valid, data.reward, data.terminated, data.truncated, data.weight):
            self._timeouts.note(at, step.truncated, step.final_obs)
        self._at += 1

    def _copy(self, acted: RolloutRow, own: RolloutRow) -> None:
        for slab, rows in zip(_parts(own.obs), _parts(acted.obs), strict=True):
            slab[:] = rows
        own.outputs[:], own.value[:], own.action[:] = acted.outputs, acted.value, acted.action
        if own.action_mask is not None:
            own.action_mask[:] = acted.action_mask

    def timeouts(self) -> tuple[Array, Array, Obs] | None:
        """Steps, envs and final observations of the episodes that were cut off."""
        return self._timeouts.joined()


def _parts(obs: Obs) -> list[Array]:
    return [obs[name] for name in sorted(obs)] if isinstance(obs, dict) else [obs]


def _row(data: RolloutSlab, t: int) -> RolloutRow:
    mask = None if data.action_mask is None else data.action_mask[t]
    return RolloutRow(map_obs(lambda part: part[t], data.obs), data.outputs[t], data.value[t], data.action[t], mask)


class GraphRolloutBuffer:
    """`add` takes what a policy saw and did and what came of it, until it is `full`."""

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

    def row(self) -> None:
        """Graphs have no place of their own before they are seen."""

    def add(self, acted: GraphRolloutRow, step: EnvStep[Graphs]) -> None:
        data, at, outputs = self._data, self._at, acted.outputs
        self._graphs.append(acted.obs)
        data.mean[at], data.log_std[at], data.numbers[at] = outputs.mean, outputs.log_std, acted.numbers
        data.value[:, at] = outputs.value.T
        if acted.counts is not None:
            data.counts[at] = acted.counts
        if acted.choices is not None:
            assert outputs.node_logits is not None
            self._logits.append(outputs.node_logits)
            self._choices.append(acted.choices)
        data.reward[:, at] = step.reward if step.reward_parts is None else step.reward_parts.T
        data.terminated[at], data.truncated[at] = step.terminated, step.truncated
        if step.truncated.any():
            envs = np.flatnonzero(step.truncated)
            self._ends.append((at, envs, step.final_obs.take(envs)))
        self._at += 1

    def timeouts(self) -> tuple[Array, Array, Graphs] | None:
        """Steps, envs and final observations of the episodes that were cut off."""
        if not self._ends:
            return None
        steps = np.concatenate([np.full(len(envs), at) for at, envs, _ in self._ends])
        envs = np.concatenate([envs for _, envs, _ in self._ends])
        return steps, envs, join_graphs([graphs for _, _, graphs in self._ends])
