"""Generalized advantages over a whole [T, N] slab in one backward pass, in machine code.

Running means and variances (Welford 1962) and the scaling by them, for all envs in one call.
"""

from __future__ import annotations

import math

import numpy as np

from hotloop.core.kernels import kernel

Float = np.float32


@kernel
def gae_numpy(reward, terminated, truncated, value, final_value, gamma, gae_lambda, advantage, returns):
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


@kernel
def gae_from_next(reward, terminated, truncated, value, next_value, gamma, gae_lambda, advantage, returns):
    """As `gae_numpy`, on arrays [T, N] of one float type; `next_value` is of what each action led to."""
    for n in range(reward.shape[1]):
        running = 0.0  # the advantage of the step after
        for t in range(reward.shape[0] - 1, -1, -1):
            follows = 0.0 if terminated[t, n] else next_value[t, n]
            carried = 0.0 if terminated[t, n] | truncated[t, n] else running
            running = reward[t, n] + gamma * follows - value[t, n] + gamma * gae_lambda * carried
            advantage[t, n] = running
            returns[t, n] = running + value[t, n]


EPSILON = 1e-8


@kernel
def absorb_rows(rows, count, mean, squares):
    """Take rows [N, F] into `count` [1], `mean` [F] and the sum of squared deviations `squares` [F]."""
    for n in range(rows.shape[0]):
        count[0] += 1.0
        share = 1.0 / count[0]
        for f in range(rows.shape[1]):
            before = rows[n, f] - mean[f]
            mean[f] += before * share
            squares[f] += before * (rows[n, f] - mean[f])


@kernel
def normalize_rows(rows, mean, scale, limit, out):
    """out [N, F] = (rows - mean) * scale, held between -limit and limit."""
    bound = np.float32(limit)
    for n in range(rows.shape[0]):
        for f in range(rows.shape[1]):
            value = (rows[n, f] - mean[f]) * scale[f]
            out[n, f] = min(max(value, -bound), bound)


@kernel
def scale_rewards(reward, ended, weight, gamma, returns, moments, limit):
    """Divide rewards [T, N] in place by the standard deviation of discounted returns, held within the limit.

    `returns` [N] run on from rollout to rollout; `moments` [3] are count, mean and summed squares of all of them.
    Rows of weight 0 are left out.
    """
    for t in range(reward.shape[0]):
        for n in range(reward.shape[1]):
            if weight[t, n] > 0.0:
                returns[n] = returns[n] * gamma + reward[t, n]
                moments[0] += 1.0
                before = returns[n] - moments[1]
                moments[1] += before / moments[0]
                moments[2] += before * (returns[n] - moments[1])
                if ended[t, n]:
                    returns[n] = 0.0
    deviation = math.sqrt(moments[2] / max(moments[0], 1.0) + EPSILON)
    for t in range(reward.shape[0]):
        for n in range(reward.shape[1]):
            reward[t, n] = min(max(reward[t, n] / deviation, -limit), limit)
