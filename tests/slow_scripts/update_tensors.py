"""Three hundred weights are three hundred parameters. Remedy: one tensor of them."""

import torch
from torch import nn
from training import Learner, arguments, train

COUNT = 300


class Scattered(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList([torch.randn(()) for _ in range(COUNT)])
        self.head = nn.Linear(4, 2)
        self.spread = torch.randn(2, COUNT)

    def forward(self, x):
        return self.head(x) + self.spread @ self.vector()

    def vector(self):
        return torch.stack(list(self.weights.parameters()))


class Together(Scattered):
    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.stack([weight.detach() for weight in self.weights]))

    def vector(self):
        return self.weights


options = arguments(env_calls=400)
net = Together() if options.healthy else Scattered()
train(options.env_calls, learner=Learner(net, torch.optim.Adam(net.parameters(), fused=True)), updates_every=8)
