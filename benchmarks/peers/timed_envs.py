"""Envs whose step takes a known time, for comparing what lies around it."""

from __future__ import annotations

import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

STEP_SECONDS = 200e-6
EPISODE_STEPS = 100


class Computing(gymnasium.Env):
    """A step takes 200 microseconds of processor time, however many processes share the cores."""

    observation_space: spaces.Space = spaces.Box(-1.0, 1.0, (8,), np.float32)
    action_space: spaces.Space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.count = 0
        return np.zeros(8, np.float32), {}

    def step(self, action: Any) -> Any:
        self.count += 1
        self.work()
        return np.zeros(8, np.float32), 1.0, False, self.count >= EPISODE_STEPS, {}

    def work(self) -> None:
        end = time.thread_time() + STEP_SECONDS
        while time.thread_time() < end:
            pass


class Sleeping(Computing):
    """A step waits 200 microseconds, as for a simulator elsewhere."""

    def work(self) -> None:
        time.sleep(STEP_SECONDS)
