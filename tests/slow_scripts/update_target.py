"""The target network records gradients. Remedy: no_grad."""

import copy

import torch
from training import Learner, arguments, network, train


class Target(Learner):
    def __init__(self):
        net = network(width=256)
        super().__init__(net, torch.optim.RMSprop(net.parameters()))
        self.target = copy.deepcopy(self.net)

    def loss(self, obs, action, reward, next_obs):
        with torch.set_grad_enabled(not options.healthy):
            target = reward + 0.9 * self.target(next_obs).max(dim=1)[0]
        return ((self.net(obs).gather(1, action[:, None])[:, 0] - target) ** 2).mean()


options = arguments(env_calls=600)
train(options.env_calls, learner=Target(), updates_every=4, batch_size=512)
