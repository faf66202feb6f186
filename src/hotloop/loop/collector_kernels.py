"""Episode accounting for N envs in one call."""

from __future__ import annotations

from hotloop.core.kernels import kernel


@kernel
def account(reward, terminated, truncated, returns, lengths):
    """Add one env step to every episode's return and length; returns how many episodes ended."""
    num_ended = 0
    for i in range(reward.shape[0]):
        returns[i] += reward[i]
        lengths[i] += 1
        num_ended += terminated[i] | truncated[i]
    return num_ended
