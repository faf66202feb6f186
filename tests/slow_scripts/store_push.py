"""Transitions leave their tensors one number at a time. Remedy: hotloop's Replay, one call for all envs."""

from collections import deque

import numpy as np
import torch
from training import Ring, arguments, train

import hotloop


class Pushed(Ring):
    def __init__(self):
        super().__init__()
        self.history = deque(maxlen=20_000)

    def add(self, obs, action, reward, next_obs):
        super().add(obs, action, reward, next_obs)
        obs, action, reward, next_obs = map(torch.from_numpy, (obs, action, reward, next_obs))
        for i in range(len(reward)):
            self.history.append((obs[i].numpy(), action[i].item(), reward[i].item(), next_obs[i].numpy()))


class Stored(Ring):
    def __init__(self):
        super().__init__()
        self.never = np.zeros(64, bool)
        nothing = np.zeros((64, 4), np.float32)
        self.replay = self.made()
        self.store(nothing, np.zeros(64, np.int64), nothing[:, 0].copy(), nothing)  # compiled before the clock starts
        self.replay = self.made()

    def made(self):
        return hotloop.Replay(20_000, obs=(4,), num_envs=64, gamma=0.9)

    def add(self, obs, action, reward, next_obs):
        super().add(obs, action, reward, next_obs)
        self.store(obs, action, reward, next_obs)

    def store(self, obs, action, reward, next_obs):
        self.replay.add(obs, action, reward, next_obs, self.never, self.never)


options = arguments(env_calls=3000)
train(options.env_calls, ring=Stored() if options.healthy else Pushed())
