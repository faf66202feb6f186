"""The whole buffer is copied into an array for every batch. Remedy: arrays from the beginning."""

import numpy as np
import torch
from training import Ring, arguments, train

options = arguments(env_calls=400)


class Lists:
    """The same rows are drawn as from the ring."""

    def __init__(self):
        self.obs, self.action, self.reward, self.next_obs = [], [], [], []
        self.rng = np.random.default_rng(1)

    def add(self, obs, action, reward, next_obs):
        self.obs.extend(obs)
        self.action.extend(action)
        self.reward.extend(reward)
        self.next_obs.extend(next_obs)

    def sample(self, size):
        rows = self.rng.integers(len(self.reward), size=size)
        obs, next_obs = np.array(self.obs), np.array(self.next_obs)
        action, reward = np.array(self.action), np.array(self.reward)
        return tuple(torch.from_numpy(field[rows]) for field in (obs, action, reward, next_obs))


train(options.env_calls, ring=Ring(100_000) if options.healthy else Lists())
