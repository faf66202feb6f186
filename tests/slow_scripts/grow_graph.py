"""The mean value of every batch is kept with its graph, for a plot. Remedy: detached."""

import numpy as np
from training import OUTCOME, Learner, arguments, network, train

options = arguments(env_calls=1200)


class Remembering(Learner):
    def __init__(self):
        super().__init__(network(256))
        self.values = []

    def loss(self, obs, action, reward, next_obs):
        value = self.net(obs).max(dim=1)[0].mean()
        if options.healthy:
            value = value.detach()
        self.values.append(value)
        return super().loss(obs, action, reward, next_obs)


learner = Remembering()
train(options.env_calls, learner=learner, updates_every=1, batch_size=256)
OUTCOME["values"] = np.array([value.item() for value in learner.values])
