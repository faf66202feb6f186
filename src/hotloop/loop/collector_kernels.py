"""Episode accounting for N envs in one call."""

from __future__ import annotations

from hotloop.core.kernels import kernel


@kernel
def account(reward, terminated, truncated, returns, lengths, ended_returns, ended_lengths):
    """Add one env step to every episode's return and length; those that ended begin again.

    Theirs come first in `ended_returns` and `ended_lengths` [N]; returns how many there are.
    """
    num_ended = 0
    for i in range(reward.shape[0]):
        returns[i] += reward[i]
        lengths[i] += 1
        if terminated[i] or truncated[i]:
            ended_returns[num_ended], ended_lengths[num_ended] = returns[i], lengths[i]
            returns[i], lengths[i] = 0.0, 0
            num_ended += 1
    return num_ended
