"""The optimizer's averages of a dead network have decayed into denormals. Remedy: flush them."""

import torch
from training import Learner, arguments, network, train


class Decayed(Learner):
    """As after a long run: most units receive no gradient any more."""

    def loss(self, obs, action, reward, next_obs):
        return 0.0 * super().loss(obs, action, reward, next_obs)

    def warm_up(self):
        super().warm_up()
        for state in self.optimiser.state.values():
            state["square_avg"].fill_(1e-39)
            state["momentum_buffer"].fill_(1e-39)


options = arguments(env_calls=5000)
torch.set_flush_denormal(options.healthy)
net = network(width=512)
optimiser = torch.optim.RMSprop(net.parameters(), lr=0.0, alpha=0.99999, momentum=0.99999)
train(options.env_calls, learner=Decayed(net, optimiser), updates_every=2, batch_size=8)
