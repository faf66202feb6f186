"""Distributions check their arguments and every sample, all the time. Remedy: without the checks."""

import torch
from torch.distributions import Categorical, Normal
from training import Drift, Learner, arguments, network, train

options = arguments(env_calls=1500)
if options.healthy:
    torch.distributions.Distribution.set_default_validate_args(False)


class Policy(Learner):
    """Advantage-weighted log probabilities of two heads: which way, and how far."""

    def distributions(self, logits):
        return Categorical(logits=logits), Normal(logits[:, 0], torch.ones(len(logits)))

    def loss(self, obs, action, reward, next_obs):
        way, force = self.distributions(self.net(obs))
        log_prob = way.log_prob(action) + force.log_prob(reward)
        entropy = way.entropy() + force.entropy()
        return -(reward * log_prob).mean() - 0.01 * entropy.mean()

    def act(self, obs):
        with torch.inference_mode():
            way, force = self.distributions(self.net(torch.from_numpy(obs)))
            action = way.sample()
            self.log_prob = way.log_prob(action) + force.log_prob(force.sample())
            return action.numpy()


train(options.env_calls, env=Drift(16), learner=Policy(network(16)))
