"""A wide network computes in float64. Remedy: float32."""

import torch
from training import Learner, arguments, network, train


class Precise(Learner):
    def __init__(self):
        super().__init__(network(width=256).double())

    def loss(self, obs, action, reward, next_obs):
        return super().loss(obs.double(), action, reward.double(), next_obs.double())

    def act(self, obs):
        with torch.inference_mode():
            return self.net(torch.from_numpy(obs).double()).argmax(dim=1).numpy()


options = arguments(env_calls=400)
learner = Learner(network(width=256)) if options.healthy else Precise()
train(options.env_calls, learner=learner, updates_every=2, batch_size=512)
