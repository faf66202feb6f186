"""Sixty-four points are moved one after another by methods in Python. Remedy: all at once on arrays."""

import numpy as np
from training import Drift, arguments, train


class Point:
    def __init__(self, rng):
        self.rng = rng
        self.state = self.rng.normal(size=4).astype(np.float32)

    def reset(self):
        self.state = np.zeros(4, np.float32)

    def push(self, action):
        self.state = self.state * 0.98
        self.state[0] += 0.1 * (action - 0.5)
        self.drift()
        return -abs(self.state[0]), bool(self.state[1] > 3.0)

    def drift(self):
        self.state[1:] += 0.1 * self.rng.random(3, dtype=np.float32)


class Points:
    def __init__(self, count=64):
        rng = np.random.default_rng(0)
        self.points = [Point(rng) for _ in range(count)]

    def reset(self):
        return np.stack([point.state for point in self.points]), {}

    def step(self, action):
        answers = [point.push(one) for point, one in zip(self.points, action, strict=True)]
        reward, terminated = (np.array(part) for part in zip(*answers, strict=True))
        for point, ended in zip(self.points, terminated, strict=True):
            if ended:
                point.reset()
        state = np.stack([point.state for point in self.points])
        return state, reward.astype(np.float32), terminated, np.zeros(len(reward), bool), {}


options = arguments(env_calls=2000)
train(options.env_calls, env=Drift() if options.healthy else Points())
