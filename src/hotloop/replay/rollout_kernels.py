"""One env step of N envs into a rollout, in one call."""

from __future__ import annotations

from hotloop.core.kernels import kernel


@kernel
def add_row(at, reward, terminated, truncated, valid, rewards, terminations, truncations, weights):
    """Fill row `at` of the slabs [T, N]; `valid` is empty where all rows are. Returns how many were truncated."""
    num_truncated = 0
    for n in range(reward.size):
        rewards[at, n] = reward[n]
        terminations[at, n] = terminated[n]
        truncations[at, n] = truncated[n]
        weights[at, n] = 1.0 if valid.size == 0 or valid[n] else 0.0
        num_truncated += truncated[n]
    return num_truncated
