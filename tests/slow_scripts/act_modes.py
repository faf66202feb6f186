"""The network is switched to `eval()` and back to `train()` for every action. Remedy: neither, it has no such layer."""

import torch
from training import Drift, Learner, arguments, network, train


class Switching(Learner):
    def act(self, obs):
        self.net.eval()
        with torch.inference_mode():
            action = self.net(torch.from_numpy(obs)).argmax(dim=1).numpy()
        self.net.train()
        return action


options = arguments(env_calls=12_000)
train(options.env_calls, env=Drift(count=4), learner=(Learner if options.healthy else Switching)(network()))
