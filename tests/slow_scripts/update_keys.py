"""Sixteen scales are looked up by a text put together at every use. Remedy: kept in a list."""

import torch
from torch import nn
from training import Learner, arguments, train

DEPTH = 16


class Keyed(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = nn.ParameterDict({f"layer_{i}_scale": torch.ones(4) for i in range(DEPTH)})
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        for i in range(DEPTH):
            x = x * self.scales[f"layer_{i}_scale"]
        return self.head(x)


class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = nn.ParameterList([torch.ones(4) for _ in range(DEPTH)])
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        for scale in self.scales:
            x = x * scale
        return self.head(x)


options = arguments(env_calls=4000)
train(options.env_calls, learner=Learner(Listed() if options.healthy else Keyed()), updates_every=32)
