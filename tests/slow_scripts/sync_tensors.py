"""Six small tensors are made of every env step. Remedy: arrays until the update."""

import torch
from training import Drift, Ring, arguments, train


class Wrapped(Ring):
    def add(self, obs, action, reward, next_obs):
        self.last = [
            torch.tensor(obs[0].tolist()),
            torch.tensor([action[0].item()]),
            torch.tensor([float(reward[0])]),
            torch.tensor(next_obs[0].tolist()),
            torch.tensor([1.0]),
            torch.tensor([0.9]),
        ]
        super().add(obs, action, reward, next_obs)


class Plain(Ring):
    def add(self, obs, action, reward, next_obs):
        self.last = obs[0], action[0], reward[0], next_obs[0], 1.0, 0.9
        super().add(obs, action, reward, next_obs)


options = arguments(env_calls=8000)
train(options.env_calls, env=Drift(count=1), ring=Plain() if options.healthy else Wrapped(), updates_every=32)
