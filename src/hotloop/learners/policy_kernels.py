"""Epsilon-greedy draws for N envs in one call."""

from __future__ import annotations

from hotloop.core.kernels import kernel, next_below, next_uniform


@kernel
def draw_exploration(state, epsilon, num_actions, action):
    """Fill `action` [N] with a random action where env i explores, -1 where it does not; returns how many do not."""
    num_greedy = 0
    for i in range(action.shape[0]):
        if next_uniform(state, 0) < epsilon:
            action[i] = next_below(state, 0, num_actions)
        else:
            action[i] = -1
            num_greedy += 1
    return num_greedy


@kernel
def draw_masked_exploration(state, epsilon, mask, action):
    """The same, uniform over the actions that `mask` [N, A] allows."""
    num_greedy = 0
    for i in range(action.shape[0]):
        if next_uniform(state, 0) >= epsilon:
            action[i] = -1
            num_greedy += 1
            continue
        allowed = 0
        for a in range(mask.shape[1]):
            allowed += mask[i, a]
        left = next_below(state, 0, allowed)
        for a in range(mask.shape[1]):
            if mask[i, a]:
                if left == 0:
                    action[i] = a
                    break
                left -= 1
    return num_greedy
