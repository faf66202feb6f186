"""The error of every row is read with .item() after every update. Remedy: all at once."""

import numpy as np
import torch
from training import OUTCOME, Learner, arguments, train


class Reading(Learner):
    def __init__(self):
        super().__init__()
        self.priorities = [0.0] * 256

    def loss(self, obs, action, reward, next_obs):
        q, next_q = self.net(torch.cat([obs, next_obs])).chunk(2)
        error = q.gather(1, action[:, None])[:, 0] - reward - 0.9 * next_q.detach().max(dim=1)[0]
        self.read(error.detach().abs())
        return (error**2).mean()

    def read(self, error):
        if options.healthy:
            self.priorities = error.tolist()
            return
        for i in range(len(error)):
            self.priorities[i] = error[i].item()


options = arguments(env_calls=1500)
learner = Reading()
train(options.env_calls, learner=learner, updates_every=2, batch_size=256)
OUTCOME["priorities"] = np.array(learner.priorities)
