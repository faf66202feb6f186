"""Envs for the tests of the worker pool: each does something that only a process of its own survives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Steady(gymnasium.Env):
    """Counts its steps, terminates at `length`; the observation is [steps, drawn at the first reset, its seed]."""

    observation_space: spaces.Space = spaces.Box(-np.inf, np.inf, (3,), np.float64)
    action_space: spaces.Space = spaces.Discrete(2)

    def __init__(self, length: int = 1000) -> None:
        self.length = length

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        if seed is not None:
            self.seed_heard = seed % 1000
            self.drawn = self.np_random.random()
        self.count = 0
        return self.look(), {}

    def step(self, action: Any) -> Any:
        self.count += 1
        self.act()
        return self.look(), float(action), self.count >= self.length, False, {}

    def look(self) -> Any:
        return np.array([self.count, self.drawn, self.seed_heard])

    def act(self) -> None:
        pass


class AtThree(Steady):
    """Does `trouble` at its third step where its seed is `bad_seed` (of 1000); -1 is everyone."""

    def __init__(self, bad_seed: int = -1, length: int = 1000) -> None:
        super().__init__(length)
        self.bad_seed = bad_seed

    def act(self) -> None:
        if self.count == 3 and self.bad_seed in (-1, self.seed_heard):
            self.trouble()

    def trouble(self) -> None:
        raise NotImplementedError


class Raises(AtThree):
    def trouble(self) -> None:
        raise RuntimeError("the physics exploded")


class Crashes(AtThree):
    def trouble(self) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)


class Leaves(AtThree):
    def trouble(self) -> None:
        os._exit(7)


class Hangs(AtThree):
    def trouble(self) -> None:
        while True:
            time.sleep(0.01)


class HangsClosing(Steady):
    def close(self) -> None:
        while True:
            time.sleep(0.01)


class Breeds(Steady):
    """Starts a program of its own that would outlive it and keeps everything open; its number is in the observation."""

    def __init__(self) -> None:
        super().__init__()
        words = [sys.executable, "-c", "import time; time.sleep(600)"]
        self.child = subprocess.Popen(words, close_fds=False)

    def look(self) -> Any:
        return np.array([self.count, self.child.pid, self.seed_heard])


class CrashesMade(Steady):
    def __init__(self) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)


class KeepsActions(Steady):
    """Rewards with the first number of the action it was given one step before."""

    action_space = spaces.Box(-1, 1, (2,), np.float32)
    kept: Any = None

    def step(self, action: Any) -> Any:
        before, self.kept = self.kept, action
        obs, _, *rest = super().step(0)
        return obs, 0.0 if before is None else float(before[0]), *rest


class Both(Steady):
    """A choice, counted from 2, and numbers."""

    action_space = spaces.Tuple([spaces.Discrete(3, start=2), spaces.Box(-1, 1, (2,), np.float32)])

    def step(self, action: Any) -> Any:
        obs, _, *rest = super().step(0)
        return obs, float(action[0]) + float(action[1].sum()), *rest


class Moody(Steady):
    """Has another observation space in some processes."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Box(-np.inf, np.inf, (3 + os.getpid() % 1009,), np.float64)

    def look(self) -> Any:
        return np.zeros(self.observation_space.shape)


class ShowsTorch(Steady):
    """Whether its process has imported torch, as the observation's second number."""

    def look(self) -> Any:
        return np.array([self.count, "torch" in sys.modules, 0.0])
