"""Gymnasium's own CartPole-v1, made to continue from any state: the oracle of the native one."""

from __future__ import annotations

import gymnasium
import numpy as np


class CartPoleOracle:
    def __init__(self) -> None:
        self.env = gymnasium.make("CartPole-v1", disable_env_checker=True)
        self.env.reset(seed=0)

    def step_from(
        self, body: np.ndarray, elapsed: int, action: int
    ) -> tuple[np.ndarray, float, bool, bool, np.ndarray]:
        """Observation, reward, terminated, truncated and float64 state after one step from `body` [4]."""
        core = self.env.unwrapped
        core.state = np.array(body, np.float64)
        core.steps_beyond_terminated = None
        self.env._elapsed_steps = elapsed  # the TimeLimit wrapper's own counter
        obs, reward, terminated, truncated, _ = self.env.step(action)
        return obs, reward, terminated, truncated, core.state
