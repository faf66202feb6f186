"""What every PPO script trains with: the settings that most published PPO code has for CartPole."""

from __future__ import annotations

NUM_ENVS = 8
ROLLOUT_STEPS = 128
BATCH, EPOCHS = 256, 4
SETTINGS = {"lr": 2.5e-4, "gamma": 0.99, "gae_lambda": 0.95, "clip": 0.2, "entropy": 0.01, "value": 0.5, "norm": 0.5}
"""Equal for all: hidden layers 64-64 with tanh for policy and value each, Adam with epsilon 1e-5."""
ADAM_EPSILON = 1e-5
ROLLOUT = NUM_ENVS * ROLLOUT_STEPS


def whole_rollouts(env_steps: int) -> int:
    """The next multiple of a rollout: the clock is read between two."""
    return -(-env_steps // ROLLOUT) * ROLLOUT
