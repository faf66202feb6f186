"""A multivariate normal with a diagonal covariance. Remedy: independent normals."""

import torch
from torch.distributions import Independent, MultivariateNormal, Normal
from training import Drift, Learner, arguments, network, train

options = arguments(env_calls=1500)
torch.distributions.Distribution.set_default_validate_args(False)


class Policy(Learner):
    def __init__(self):
        super().__init__(network(16))
        self.variance = torch.tensor([0.5, 0.3])

    def distribution(self, mean):
        if options.healthy:
            return Independent(Normal(mean, self.variance.sqrt()), 1)
        return MultivariateNormal(mean, torch.diag(self.variance))

    def loss(self, obs, action, reward, next_obs):
        wanted = torch.stack([action.float(), reward], dim=1)
        return -self.distribution(self.net(obs)).log_prob(wanted).mean()

    def act(self, obs):
        with torch.inference_mode():
            policy = self.distribution(self.net(torch.from_numpy(obs)))
            pushes = policy.sample()
            self.log_prob = policy.log_prob(pushes)
            return (pushes[:, 0] > pushes[:, 1]).long().numpy()


train(options.env_calls, env=Drift(16), learner=Policy())
