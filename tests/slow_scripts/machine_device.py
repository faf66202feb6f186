"""A tiny network lives on a device that is meant for large ones. Remedy: on the CPU.

Without a device, PyTorch's `meta` stands in for it: it takes the calls and computes nothing, so nothing that is learned
there is read.
"""

import torch
from training import Learner, arguments, network, train

options = arguments(env_calls=1500)
device = "cpu" if options.healthy else "cuda" if torch.cuda.is_available() else "meta"


class Curious(Learner):
    """Beside the values it learns what comes next."""

    def __init__(self):
        super().__init__()
        self.model = torch.nn.Sequential(network(128), torch.nn.Linear(2, 4)).to(device)
        self.model_optimiser = torch.optim.Adam(self.model.parameters(), lr=1e-3)

    def update(self, batch):
        super().update(batch)
        obs, next_obs = batch[0].to(device), batch[3].to(device)
        loss = ((self.model(obs) - next_obs) ** 2).mean()
        self.model_optimiser.zero_grad()
        loss.backward()
        self.model_optimiser.step()


train(options.env_calls, learner=Curious(), updates_every=1, batch_size=16)
