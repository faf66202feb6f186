"""The slab that one on-policy iteration fills.

The policy writes into its rows itself, and views of them are made once: with few envs, copying and slicing took
longer than a network's forward.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.core.types import Array, EnvStep, Obs, ObsSpec, Rollout, RolloutRow, map_obs
from hotloop.loop.rollout_kernels import add_row
from hotloop.maths.actions import ActionLayout

ALL = np.ones(0, np.bool_)
"""Stands for rows that are all valid."""


class RolloutBuffer:
    """`row` takes what the policy sees and does, `add` what comes of it, until it is `full`; memory is reused."""

    def __init__(self, shape: tuple[int, int], obs_spec: ObsSpec, layout: ActionLayout, mask_width: int | None) -> None:
        steps, num_envs = shape
        numbers = np.zeros((5, steps, num_envs), np.float32)
        flags = np.zeros((2, steps, num_envs), np.bool_)
        self.data = Rollout(
            obs=map_obs(lambda spec: np.zeros((steps, num_envs, *spec.shape), spec.dtype), obs_spec),
            outputs=np.zeros((steps, num_envs, layout.num_outputs), np.float32),
            action=np.zeros((steps, num_envs, layout.width), np.float32),
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
        self._ends: list[tuple[int, Array, Obs]] = []  # step, envs and final observations of time-outs

    @property
    def full(self) -> bool:
        return self._at == self._steps

    def row(self) -> RolloutRow:
        """Where what is seen and done now belongs."""
        return self._rows[self._at]

    def add(self, step: EnvStep) -> None:
        data, at = self.data, self._at
        valid = ALL if step.valid is None else step.valid
        ended = (step.terminated, step.truncated)
        if add_row(at, step.reward, *ended, valid, data.reward, data.terminated, data.truncated, data.weight):
            envs = np.flatnonzero(step.truncated)
            self._ends.append((at, envs, map_obs(lambda part: part[envs], step.final_obs)))
        self._at += 1

    def timeouts(self) -> tuple[Array, Array, Obs] | None:
        """Steps, envs and final observations of the episodes that were cut off, all of the rollout at once."""
        if not self._ends:
            return None
        steps = np.concatenate([np.full(len(envs), at) for at, envs, _ in self._ends])
        envs = np.concatenate([envs for _, envs, _ in self._ends])
        parts: list[Any] = [obs for _, _, obs in self._ends]
        return steps, envs, map_obs(lambda *each: np.concatenate(each), *parts)


def _row(data: Rollout, t: int) -> RolloutRow:
    mask = None if data.action_mask is None else data.action_mask[t]
    return RolloutRow(map_obs(lambda part: part[t], data.obs), data.outputs[t], data.value[t], data.action[t], mask)
