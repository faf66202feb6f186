"""Actions are chosen with gradients recorded. Remedy: inference mode."""

import torch
from training import Learner, arguments, train


class Recording(Learner):
    def act(self, obs):
        return self.net(torch.from_numpy(obs)).argmax(dim=1).numpy()


options = arguments(env_calls=8000)
train(options.env_calls, learner=Learner() if options.healthy else Recording(), updates_every=64)
