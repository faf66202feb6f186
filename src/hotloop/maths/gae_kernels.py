"""Generalised advantages over a whole [T, N] slab in one backward pass, in machine code."""

from __future__ import annotations

import numpy as np

from hotloop.core.kernels import kernel

Float = np.float32


@kernel
def gae_slab(reward, terminated, truncated, value, final_value, gamma, gae_lambda, advantage, returns):
    """`maths.gae.gae` on arrays [T, N] (`value` [T + 1, N]): fills `advantage` and `returns`.

    `final_value` is read where an episode was truncated, and only there. Indexed in place: a slice per time step
    counted references for four times as long as it computed.
    """
    steps, num_envs = reward.shape
    running = np.zeros(num_envs, np.float32)  # the advantages of the step after
    rate, decay = Float(gamma), Float(gamma * gae_lambda)
    for t in range(steps - 1, -1, -1):
        for n in range(num_envs):
            follows = final_value[t, n] if truncated[t, n] else value[t + 1, n]
            follows = Float(0.0) if terminated[t, n] else follows
            carried = Float(0.0) if terminated[t, n] | truncated[t, n] else running[n]
            running[n] = reward[t, n] + rate * follows - value[t, n] + decay * carried
            advantage[t, n] = running[n]
            returns[t, n] = running[n] + value[t, n]
