"""Experience replay: a deque of tuples, random.sample, np.stack."""

import random
from collections import deque

import numpy as np


class ReplayBuffer:
    def __init__(self, capacity):
        self.buffer: deque = deque(maxlen=capacity)

    def add(self, obs, action, reward, next_obs, done):
        self.buffer.append((obs, action, reward, next_obs, done))

    def add_many(self, obs, action, reward, next_obs, done):
        """One transition from each of several environments."""
        for i in range(len(action)):
            self.buffer.append((obs[i], action[i], reward[i], next_obs[i], done[i]))

    def sample(self, batch_size, rng=random):
        return self.collate(rng.sample(self.buffer, batch_size))

    @staticmethod
    def collate(transitions):
        obs, action, reward, next_obs, done = zip(*transitions, strict=True)
        return (
            np.stack(obs),
            np.array(action, dtype=np.int64),
            np.array(reward, dtype=np.float32),
            np.stack(next_obs),
            np.array(done, dtype=np.float32),
        )

    def __len__(self):
        return len(self.buffer)
