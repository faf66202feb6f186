"""How a DQN agent acts: greedily, and with a share of random actions while it learns."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotloop.algos.policy_kernels import draw_exploration, draw_masked_exploration
from hotloop.core.schedules import Counters, Schedule
from hotloop.core.types import Array, Obs
from hotloop.lanes.spec import Lane


class Greedy:
    """Always the best action, without noise: for evaluation."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    def act(self, obs: Obs, action_mask: Array | None) -> Array:
        return self._lane.infer(obs, action_mask)[0]


class EpsilonGreedy:
    """A uniform random (allowed) action with probability epsilon, the best one otherwise.

    The network is not asked when no env needs it, which halves the cost of acting while epsilon is high.
    """

    def __init__(self, lane: Lane, schedule: Schedule, counters: Counters, num_actions: int, seed: int) -> None:
        self._lane = lane
        self._schedule = schedule
        self._counters = counters
        self._num_actions = num_actions
        self._rng = np.array([seed], dtype=np.uint64)

    @property
    def epsilon(self) -> float:
        return self._schedule.now(self._counters)

    def act(self, obs: Obs, action_mask: Array | None) -> Array:
        num_envs = len(next(iter(obs.values())) if isinstance(obs, dict) else obs)
        action = np.empty(num_envs, dtype=np.int64)
        if action_mask is None:
            num_greedy = draw_exploration(self._rng, self.epsilon, self._num_actions, action)
        else:
            num_greedy = draw_masked_exploration(self._rng, self.epsilon, action_mask, action)
        if num_greedy == 0:
            return action
        (greedy,) = self._lane.infer(obs, action_mask, True)
        return greedy if num_greedy == num_envs else np.where(action < 0, greedy, action)

    def state(self) -> dict[str, Any]:
        return {"rng": self._rng.copy()}

    def load_state(self, state: dict[str, Any]) -> None:
        self._rng[:] = state["rng"]
