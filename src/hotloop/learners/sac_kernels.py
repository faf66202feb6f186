"""Actions of N envs in units of -1 to 1, drawn in one call from a generator whose state is one counter."""

from __future__ import annotations

import math

from hotloop.core.kernels import kernel, next_uniform
from hotloop.maths.action_kernels import next_normal


@kernel
def draw_evenly(state, action):
    """Fill `action` [N, A] evenly over -1 to 1."""
    for row in range(action.shape[0]):
        for i in range(action.shape[1]):
            action[row, i] = 2.0 * next_uniform(state, 0) - 1.0


@kernel
def draw_squashed(state, outputs, lowest, highest, action):
    """tanh(mean + std * normal) of outputs [N, 2A]: means, then log std, held between `lowest` and `highest`."""
    num = action.shape[1]
    for row in range(action.shape[0]):
        for i in range(num):
            log_std = min(max(outputs[row, num + i], lowest), highest)
            action[row, i] = math.tanh(outputs[row, i] + math.exp(log_std) * next_normal(state))


@kernel
def draw_around(state, outputs, deviation, action):
    """tanh(output) + deviation * normal, held between -1 and 1."""
    for row in range(action.shape[0]):
        for i in range(action.shape[1]):
            shifted = math.tanh(outputs[row, i]) + deviation * next_normal(state)
            action[row, i] = min(max(shifted, -1.0), 1.0)


@kernel
def best_squashed(outputs, action):
    """tanh of the means."""
    for row in range(action.shape[0]):
        for i in range(action.shape[1]):
            action[row, i] = math.tanh(outputs[row, i])
