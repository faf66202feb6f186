"""Gymnasium's CartPole that reads the clock at two env steps: the same measurement inside any training loop.

Everything before the first (start-up, compilation, first updates) and after the second is left out, whatever the
library does there. The other scripts of this folder import it by its bare name, being run by path.
"""

from __future__ import annotations

import argparse
import json
import time
from importlib.metadata import version
from typing import Any

import gymnasium
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

ENV_ID = "ClockedCartPole-v1"
LEARNING_STARTS = 500
SETTINGS = {"lr": 1e-3, "batch": 32, "capacity": 100_000, "gamma": 0.99, "epsilon": 0.1, "target_every": 500}
"""Equal for all: hidden layers 64-64, Adam, gradients clipped at norm 10; the target is copied by env steps."""
HIDDEN = (64, 64)
MAX_GRADIENT_NORM = 10.0


class Window:
    """Processor and wall seconds between the calls of env step `start` and env step `start + length`."""

    def __init__(self) -> None:
        self.start = self.end = self.count = 0
        self.readings: list[tuple[float, float]] = []

    def step_begins(self, env_steps: int = 1) -> None:
        if self.count == self.start or self.count == self.end:
            self.readings.append((time.process_time(), time.perf_counter()))
        self.count += env_steps


WINDOW = Window()


class ClockedCartPole(CartPoleEnv):
    def step(self, action: Any) -> Any:
        WINDOW.step_begins()
        return super().step(action)


def read_arguments() -> argparse.Namespace:
    """What every script is told; `total` is how many env steps it must make."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--warm-up", type=int, default=1_000, help="env steps before the clock starts")
    parser.add_argument("--env-steps", type=int, default=5_000, help="env steps that are timed")
    parser.add_argument("--update-every", type=int, default=1, help="env steps per update")
    parser.add_argument("--native-env", action="store_true", help="the library's own CartPole")
    parser.add_argument("--size", default="", help="of SAC: hidden layers and batch, 64x64-b64")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    WINDOW.start, WINDOW.end = arguments.warm_up, arguments.warm_up + arguments.env_steps
    arguments.total = WINDOW.end + arguments.update_every - WINDOW.end % arguments.update_every
    make: Any = ClockedCartPole
    gymnasium.register(ENV_ID, make, max_episode_steps=500, disable_env_checker=True)
    return arguments


def report(package: str, updates: int) -> None:
    """One JSON line; `updates` shows that every library did its work."""
    (processor, wall), (processor_end, wall_end) = WINDOW.readings
    print_line(package, WINDOW.end - WINDOW.start, processor_end - processor, wall_end - wall, updates)


def print_line(package: str, env_steps: int, seconds: float, wall_seconds: float, updates: int) -> None:
    line = {"version": version(package), "env_steps": env_steps, "seconds": seconds, "wall_seconds": wall_seconds}
    print(json.dumps({**line, "updates": updates}), flush=True)
