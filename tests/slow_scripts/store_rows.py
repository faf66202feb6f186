"""Batches are stacked from rows drawn from a deque. Remedy: gathered from arrays."""

import random
from collections import deque

import numpy as np
import torch
from training import Ring, arguments, train


class Rows:
    def __init__(self):
        self.rows = deque(maxlen=20_000)

    def add(self, obs, action, reward, next_obs):
        self.rows.extend(zip(obs, action, reward, next_obs, strict=True))

    def sample(self, size):
        obs, action, reward, next_obs = zip(*random.sample(self.rows, size), strict=True)
        return (
            torch.tensor(np.array(obs)),
            torch.tensor(np.array(action)),
            torch.tensor(np.array(reward)),
            torch.tensor(np.array(next_obs)),
        )


class Gathered(Ring):
    """The same rows are drawn: the oldest is number 0."""

    def sample(self, size):
        held = min(self.added, self.capacity)
        rows = (self.added - held + np.array(random.sample(range(held), size))) % self.capacity
        fields = self.obs[rows], self.action[rows], self.reward[rows], self.next_obs[rows]
        return tuple(torch.from_numpy(field) for field in fields)


random.seed(0)
options = arguments(env_calls=3000)
train(options.env_calls, ring=Gathered() if options.healthy else Rows(), updates_every=2, batch_size=128)
