"""Episode accounting for N envs in one call, with a look at what they answered: two calls would cost twice as much."""

from __future__ import annotations

import math

from hotloop.core.kernels import inline_kernel, kernel

NOT_FINITE = -1


@inline_kernel
def _all_finite(rows):
    bad = 0
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            bad += not math.isfinite(rows[i, j])
    return bad == 0


@kernel
def account(obs, final_obs, reward, terminated, truncated, returns, lengths, ended_returns, ended_lengths):
    """Add one env step to every episode's return and length; those that ended begin again.

    Theirs come first in `ended_returns` and `ended_lengths` [N]; returns how many there are, or `NOT_FINITE`, with
    nothing added, if a number of obs [N, F], final_obs [N, F] or reward is not.
    """
    if not _all_finite(obs) or not _all_finite(final_obs):
        return NOT_FINITE
    for i in range(reward.shape[0]):
        if not math.isfinite(reward[i]):
            return NOT_FINITE
    num_ended = 0
    for i in range(reward.shape[0]):
        returns[i] += reward[i]
        lengths[i] += 1
        if terminated[i] or truncated[i]:
            ended_returns[num_ended], ended_lengths[num_ended] = returns[i], lengths[i]
            returns[i], lengths[i] = 0.0, 0
            num_ended += 1
    return num_ended
