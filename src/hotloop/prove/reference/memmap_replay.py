"""Experience replay on disk: one numpy.memmap per field, a write position, fancy indexing."""

import os

import numpy as np


class MemmapReplayBuffer:
    def __init__(self, folder, capacity, obs_size, seed=0):
        def make(name, dtype, *shape):
            return np.memmap(os.path.join(folder, name), dtype=dtype, mode="w+", shape=(capacity, *shape))

        self.capacity = capacity
        self.obs = make("obs", np.float32, obs_size)
        self.action = make("action", np.int64)
        self.reward = make("reward", np.float32)
        self.next_obs = make("next_obs", np.float32, obs_size)
        self.done = make("done", np.float32)
        self.position = 0
        self.size = 0
        self.random = np.random.default_rng(seed)

    def add(self, obs, action, reward, next_obs, done):
        """One transition from each of several environments."""
        count = len(action)
        rows = (self.position + np.arange(count)) % self.capacity
        self.obs[rows] = obs
        self.action[rows] = action
        self.reward[rows] = reward
        self.next_obs[rows] = next_obs
        self.done[rows] = done
        self.position = (self.position + count) % self.capacity
        self.size = min(self.size + count, self.capacity)

    def sample(self, batch_size):
        return self.gather(self.random.integers(self.size, size=batch_size))

    def gather(self, rows):
        return self.obs[rows], self.action[rows], self.reward[rows], self.next_obs[rows], self.done[rows]
