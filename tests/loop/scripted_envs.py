"""Envs that follow a script: every env's rewards and episode lengths are known in advance."""

from __future__ import annotations

import numpy as np

from hotloop.core.types import ArraySpec, DiscreteActions, EnvStep


class ScriptedEnvs:
    """Env i plays episodes of `lengths[i]` (in turn); the reward of every step is 1, the return its length.

    With `resets_take_a_step`, the step after an episode's end only resets, and its row is not valid.
    """

    saves_state = False

    def __init__(self, lengths: list[list[int]], resets_take_a_step: bool = False, masks: bool = False) -> None:
        self.num_envs = len(lengths)
        self.obs_spec, self.action_spec, self.has_action_mask = ArraySpec((2,)), DiscreteActions(2), masks
        self._lengths, self._resets_take_a_step = lengths, resets_take_a_step
        self.steps = 0

    def reset(self):
        self._turn, self._age = np.zeros(self.num_envs, int), np.zeros(self.num_envs, int)
        self._ended = np.zeros(self.num_envs, bool)
        return self._obs(), self._mask()

    def _obs(self):
        return np.stack([self._turn, self._age], axis=1).astype(np.float32)

    def _mask(self):
        return np.ones((self.num_envs, 2), bool) if self.has_action_mask else None

    def step(self, action) -> EnvStep:
        self.steps += 1
        valid = ~self._ended
        self._age += valid
        final = self._obs()
        ages = self._age.copy()
        due = [script[turn % len(script)] for script, turn in zip(self._lengths, self._turn, strict=True)]
        ended = valid & (self._age >= np.array(due))
        self._turn += ended
        self._age[ended] = 0
        self._ended = ended if self._resets_take_a_step else np.zeros_like(ended)
        reward = np.where(valid, 1.0, 77.0).astype(np.float32)  # what an ignored row says must not count
        terminated = ended & (np.arange(self.num_envs) % 2 == 0)
        return EnvStep(
            self._obs(),
            reward,
            terminated,
            ended & ~terminated,
            final,
            self._mask(),
            episode_stats={"age": ages.astype(np.float32)},
            valid=valid if self._resets_take_a_step else None,
        )

    def close(self) -> None:
        pass


class Zeros:
    """Always action 0; remembers what it saw."""

    def __init__(self) -> None:
        self.seen = []

    def act(self, obs, action_mask):
        self.seen.append((obs, action_mask))
        return np.zeros(len(obs), np.int64)
