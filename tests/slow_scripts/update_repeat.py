"""The network is asked for the same rows again for a statistic and for the log. Remedy: the answer is kept."""

import numpy as np
import torch
from training import OUTCOME, Learner, arguments, network, train

options = arguments(env_calls=1500)


class Asking(Learner):
    def __init__(self):
        super().__init__(network(256))
        self.mean, self.spread = torch.zeros(()), torch.zeros(())

    def loss(self, obs, action, reward, next_obs):
        q, next_q = (self.net(part) for part in (obs, next_obs))
        self.mean = (q if options.healthy else self.net(obs)).detach().max(dim=1)[0].mean()
        self.spread = (next_q if options.healthy else self.net(next_obs)).detach().std()
        target = reward + 0.9 * next_q.detach().max(dim=1)[0]
        return ((q.gather(1, action[:, None])[:, 0] - target) ** 2).mean()


learner = Asking()
train(options.env_calls, learner=learner, updates_every=1, batch_size=512)
OUTCOME["statistics"] = np.array([learner.mean.item(), learner.spread.item()])
