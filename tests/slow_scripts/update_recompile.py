"""A network is compiled again for every size of batch. Remedy: one size, the missing rows left out of the loss."""

import torch
from training import Learner, Ring, arguments, network, train

options = arguments(env_calls=1600)
torch._dynamo.config.cache_size_limit = 10_000
torch._dynamo.config.accumulated_cache_size_limit = 10_000
LARGEST = 64


class Episodes(Ring):
    """Batches of whole episodes, each of another length."""

    def sample(self, size):
        rows = 16 + self.added // 4096 % 48
        return super().sample(rows)


class Compiled(Learner):
    def __init__(self):
        super().__init__(network())
        self.fast = torch.compile(self.net, backend="eager", dynamic=False)

    def loss(self, obs, action, reward, next_obs):
        rows = len(obs)
        if options.healthy:
            obs, next_obs = (torch.cat([part, part.new_zeros(LARGEST - rows, 4)]) for part in (obs, next_obs))
        q, next_q = (part[:rows] for part in self.fast(torch.cat([obs, next_obs])).chunk(2))
        target = reward + 0.9 * next_q.detach().max(dim=1)[0]
        return ((q.gather(1, action[:, None])[:, 0] - target) ** 2).mean()


train(options.env_calls, ring=Episodes(), learner=Compiled())
