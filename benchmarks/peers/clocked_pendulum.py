"""Gymnasium's Pendulum that reads the same clock, and what every SAC script trains with."""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium
from clocked_cartpole import WINDOW, read_arguments, report
from gymnasium.envs.classic_control.pendulum import PendulumEnv

ENV_ID = "ClockedPendulum-v1"
LEARNING_STARTS = 100
SETTINGS = {"lr": 3e-4, "capacity": 100_000, "gamma": 0.99, "tau": 0.005}
"""Equal for all: Adam on actor, twin critics and temperature, no clipping, an update for every env step."""


class ClockedPendulum(PendulumEnv):
    def step(self, action: Any) -> Any:
        WINDOW.step_begins()
        return super().step(action)


def read_sac_arguments() -> tuple[argparse.Namespace, tuple[int, ...], int]:
    """What a script is told, the hidden layers and the batch: `--size 256x256-b256`."""
    arguments = read_arguments()
    make: Any = ClockedPendulum
    gymnasium.register(ENV_ID, make, max_episode_steps=200, disable_env_checker=True)
    hidden, batch = arguments.size.split("-b")
    return arguments, tuple(int(width) for width in hidden.split("x")), int(batch)


def train_like_stable_baselines3(sac: Any, package: str) -> None:
    """`SAC("MlpPolicy", env_id).learn(...)` of a library with that interface, which steps one env."""
    arguments, hidden, batch = read_sac_arguments()
    model = sac(
        "MlpPolicy",
        ENV_ID,
        learning_rate=SETTINGS["lr"],
        buffer_size=SETTINGS["capacity"],
        learning_starts=LEARNING_STARTS,
        batch_size=batch,
        gamma=SETTINGS["gamma"],
        tau=SETTINGS["tau"],
        policy_kwargs={"net_arch": list(hidden)},
        seed=arguments.seed,
        device="cpu",
        verbose=0,
    )
    model.learn(arguments.total + 1, log_interval=10**9)
    report(package, model._n_updates)
