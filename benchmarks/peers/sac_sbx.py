"""SAC on Pendulum in SBX: Stable-Baselines3 with the update in JAX."""

from __future__ import annotations

from clocked_pendulum import train_like_stable_baselines3
from sbx import SAC

if __name__ == "__main__":
    train_like_stable_baselines3(SAC, "sbx-rl")
