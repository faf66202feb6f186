"""A function calls itself over all paths to find the longest. Remedy: each node's answer once, kept."""

from functools import cache

import numpy as np
from training import Drift, arguments, train

WAYS = {node: [other for other in range(node + 1, min(node + 4, 13))] for node in range(13)}


def longest(node):
    return max((1 + longest(other) for other in WAYS[node]), default=0)


@cache
def longest_kept(node):
    return max((1 + longest_kept(other) for other in WAYS[node]), default=0)


class Levels(Drift):
    def step(self, action):
        state, reward, terminated, truncated, info = super().step(action)
        level = longest_kept(1) if options.healthy else longest(1)
        return state, reward + np.float32(0.01 * level), terminated, truncated, info


options = arguments(env_calls=800)
train(options.env_calls, env=Levels(count=8))
