"""The smallest envs there are to learn: the right answer is the observation itself."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Identity(gymnasium.Env):
    """Four states one after the other at random; reward 1 for naming the state, ten steps an episode."""

    observation_space: spaces.Space = spaces.Discrete(4)
    action_space: spaces.Space = spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.clock = 0
        return self.look(), self.info()

    def step(self, action: Any) -> Any:
        reward = self.reward(action)
        self.clock += 1
        return self.look(), reward, False, self.clock >= 10, self.info()

    def look(self) -> Any:
        self.state = int(self.np_random.integers(4))
        return self.state

    def reward(self, action: Any) -> float:
        return float(action == self.state)

    def info(self) -> dict:
        return {}


class MaskedIdentity(Identity):
    """Only the right answer and its neighbor are allowed; anything else is an error."""

    def info(self) -> dict:
        mask = np.zeros(4, np.int8)
        mask[[self.state, (self.state + 1) % 4]] = 1
        return {"action_mask": mask}

    def step(self, action: Any) -> Any:
        assert action in (self.state, (self.state + 1) % 4)
        return super().step(action)


class TwoQuestions(Identity):
    """The state as two binary digits, the second counted from 5."""

    action_space = spaces.MultiDiscrete([2, 2], start=[0, 5])

    def reward(self, action: Any) -> float:
        return 0.5 * float(action[0] == self.state // 2) + 0.5 * float(action[1] - 5 == self.state % 2)


class Both(Identity):
    """Name the state and say a number that goes with it."""

    action_space = spaces.Tuple([spaces.Discrete(4, start=1), spaces.Box(-2.0, 2.0, (1,), np.float32)])

    def reward(self, action: Any) -> float:
        assert self.action_space.contains(action)
        return float(action[0] - 1 == self.state) - abs(float(action[1][0]) - 0.5 * self.state)


class Numbers(Identity):
    """Say the number: the reward is minus the distance."""

    observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = spaces.Box(-3.0, 3.0, (1,), np.float32)

    def look(self) -> Any:
        self.state = self.np_random.uniform(-1.0, 1.0, 1).astype(np.float32)
        return self.state

    def reward(self, action: Any) -> float:
        assert self.action_space.contains(action)
        return -abs(float(action[0] - 2.0 * self.state[0]))
