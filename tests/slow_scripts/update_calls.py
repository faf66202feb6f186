"""A small Q-network with a target learns through hundreds of calls of PyTorch. Remedy: hotloop's native lane."""

import copy

import numpy as np
import torch
from training import Learner, Ring, arguments, train

from hotloop import DQNSettings
from hotloop.core.settings import build
from hotloop.core.types import ArraySpec, Batch
from hotloop.learners.dqn import DQNLearner

TARGET_EVERY = 20


class Target(Learner):
    def __init__(self):
        super().__init__()
        self.target, self.updates = copy.deepcopy(self.net), 0

    def loss(self, obs, action, reward, next_obs):
        with torch.no_grad():
            target = reward + 0.9 * self.target(next_obs).max(dim=1)[0]
        return torch.nn.functional.smooth_l1_loss(self.net(obs).gather(1, action[:, None])[:, 0], target)

    def update(self, batch):
        super().update(batch)
        self.updates += 1
        if self.updates % TARGET_EVERY == 0:
            self.target.load_state_dict(self.net.state_dict())


class Native(Learner):
    def __init__(self):
        tree = {
            "optimizer": {"learning_rate": 1e-3, "max_grad_norm": 0},
            "target": {"every": TARGET_EVERY},
            "batch_size": 32,
        }
        settings = build(DQNSettings, {**tree, "loss": "huber", "network": {"hidden": [64, 64]}})
        self.learner = DQNLearner(settings, ArraySpec((4,)), num_actions=2)
        self.learner.start_from(Learner().net)
        self.net = self.learner.network
        self.discount, self.weight = np.full((1, 32), 0.9, np.float32), np.ones((1, 32), np.float32)
        self.index = np.zeros((1, 32), np.int64)

    def update(self, batch):
        obs, action, reward, next_obs = (field.numpy()[None] for field in batch)
        self.learner.update(Batch(obs, action, reward, self.discount, next_obs, self.weight, self.index))


options = arguments(env_calls=2000)
train(options.env_calls, ring=Ring(), learner=Native() if options.healthy else Target(), updates_every=2, batch_size=32)
