"""SAC on Pendulum in Stable-Baselines3, with as many threads as the environment variables say."""

from __future__ import annotations

from clocked_pendulum import train_like_stable_baselines3
from stable_baselines3 import SAC

if __name__ == "__main__":
    train_like_stable_baselines3(SAC, "stable-baselines3")
